package mounter_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"k8s.io/mount-utils"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestVersions takes a volume through its life in both modes. With GOWORK=off, as 'make test' runs it a second time, the
// mounter has the oldest versions that it requires, and talks to a daemon that has the newest. The other tests of the
// mounter are those of package mountertest, with the newest versions.
func TestVersions(t *testing.T) {
	if testing.Short() {
		t.Skip("with the newest versions it shows nothing that the tests of mountertest do not, and it builds a program")
	}
	node, err := winsim.New(winsim.Default())
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]func(*testing.T) []mounter.Option{"library": func(*testing.T) []mounter.Option { return []mounter.Option{emulated(node)} }}
	if runtime.GOOS != "windows" { // where all daemons have the same pipes
		modes["daemon"] = daemonProcess
	}
	for name, option := range modes {
		t.Run(name, func(t *testing.T) {
			options := option(t) // which can take minutes, to build the daemon
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			m, err := mounter.New(ctx, options...)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			var utils mount.Interface = mounter.NewSafeFormatAndMount(m.WithContext(ctx))
			const staging, target = `C:\var\lib\kubelet\plugins\test\globalmount`, `C:\var\lib\kubelet\pods\1\mount`
			for step, err := range []error{
				utils.Mount("1", staging, "ntfs", nil), m.Publish(ctx, staging, target), errOf(m.Expand(ctx, target, 1)), errOf(m.Stats(ctx, target)), errOf(utils.List()),
				utils.Unmount(target), m.Unstage(ctx, mounter.UnstageRequest{Path: staging, Offline: true}),
				errOf(m.Stage(ctx, mounter.StageRequest{Path: staging, Source: mounter.SMB{Remote: `\\files\data`, Username: "csi", Password: "csi-Pa55"}})),
				m.Unstage(ctx, mounter.UnstageRequest{Path: staging}),
			} {
				if err != nil {
					t.Errorf("step %d: %v", step+1, err)
				}
			}
		})
	}
}

func errOf[T any](_ T, err error) error { return err }

// daemonProcess starts csi-proxy-sim, built with the newest versions.
func daemonProcess(t *testing.T) []mounter.Option {
	t.Helper()
	dir, err := os.MkdirTemp("", "mounter") // short, because names of sockets must be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "csi-proxy-sim")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./csi-proxy-sim")
	build.Dir, build.Env = filepath.Join("..", "v2", "cmd"), append(os.Environ(), "GOWORK=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sim := exec.CommandContext(t.Context(), program, "-socket-dir", dir)
	sim.Stderr = t.Output()
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Wait() }) // the end of the context kills it
	path := func(group, version string) string {
		return filepath.Join(dir, "csi-proxy-"+group+"-"+version+".sock")
	}
	return []mounter.Option{mounter.WithPipePaths(path), mounter.WithWait()}
}
