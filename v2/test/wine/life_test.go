//go:build linux && wine

package wine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/rig"
)

// TestRig_Life takes a volume and a share through their lives, with a restart of the machine in the middle:
// mounted folders, links and files are Wine's, disks and volumes those of the emulated node. The module
// mounter does what drivers do, through the daemon and through the library.
func TestRig_Life(t *testing.T) {
	build(t)
	for _, mode := range []string{"daemon", "library"} {
		t.Run(mode, func(t *testing.T) {
			p := newPrefix(t)
			if links, err := p.StoresLinks(t.Context()); err != nil {
				t.Fatal(err)
			} else if !links {
				t.Skip("this Wine stores no links; Wine 11 does")
			}
			compileMounter(t, p)
			r := startIn(t, p, rig.Config{Preset: "default", Files: true, NoDaemon: mode == "library"})
			step := func(name string) {
				t.Helper()
				process, err := p.Launch(t.Context(), prefix.Program{
					Path: `C:\mounter.test.exe`, Args: []string{"-test.v", "-test.run=^" + name + "$"},
					Environment: []string{"WINE_RIG_MODE=" + mode},
				})
				require.NoError(t, err)
				if err := process.Wait(); err != nil {
					t.Fatalf("%v\n%s\n%s", err, r.DaemonLog(), r.Requests())
				}
				t.Log(process.Output())
				if !strings.Contains(process.Output(), "--- PASS: "+name+" ") {
					t.Fatalf("%s has not passed, although this Wine has what it needs", name)
				}
			}
			step("TestRig_BeforeRestart")
			if mounts := countRequests(r.Requests(), mountPointCreated); mounts != 1 {
				t.Errorf("the mount manager was notified of %d mounts, want 1", mounts)
			}
			require.NoError(t, r.Reboot(t.Context()))
			step("TestRig_AfterRestart")
			if requests := r.Requests(); countRequests(requests, mountPointCreated) != 2 || countRequests(requests, mountPointDeleted) != 2 {
				t.Errorf("the mount manager was notified of %d mounts and %d unmounts, want 2 of each", countRequests(requests, mountPointCreated), countRequests(requests, mountPointDeleted))
			}
			step("TestRig_Share")
		})
	}
}

// countRequests counts how often the mount manager was sent a control code.
func countRequests(requests, code string) int { return strings.Count(requests, "code "+code+" ") }

// IOCTL_MOUNTMGR_VOLUME_MOUNT_POINT_CREATED and IOCTL_MOUNTMGR_VOLUME_MOUNT_POINT_DELETED.
const (
	mountPointCreated = "0x6dc018"
	mountPointDeleted = "0x6dc01c"
)

// compileMounter builds the tests of the mounter, which is a module of its own.
func compileMounter(t *testing.T, p *prefix.Prefix) {
	t.Helper()
	root, err := prefix.Root()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-trimpath", "-tags=wine,"+prefix.Tags, "-o", p.Path(`C:\mounter.test.exe`), "./mounter/mountertest")
	cmd.Dir = filepath.Clean(root)
	cmd.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}
