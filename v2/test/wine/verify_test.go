//go:build linux && wine

package wine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/devices"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/rig"
)

const (
	verifier = `C:\csi-proxy-verify.exe`
	scratch  = `C:\verify`
)

// TestVerify runs csi-proxy-verify.exe, which is test/windows, on the disks of the rig: with flags that it refuses,
// interrupted in the middle, to its end, and before and after a restart. Each run removes what it makes.
func TestVerify(t *testing.T) {
	build(t)
	p := newPrefix(t)
	links, err := p.StoresLinks(t.Context())
	require.NoError(t, err)
	startIn(t, p, rig.Config{Preset: devices.Blank, Files: links, NoDaemon: true})
	root, err := prefix.Root()
	require.NoError(t, err)
	require.NoError(t, p.Copy(filepath.Join(root, "bin", "csi-proxy-verify.exe")))
	require.NoError(t, os.WriteFile(p.Path(`C:\password.txt`), []byte("csi-Pa55\n"), 0o600))
	var disks []string
	for i := range devices.BlankDisks {
		disks = append(disks, fmt.Sprint(devices.FirstBlank+i))
	}
	args := []string{"-dir", scratch, "-disk", strings.Join(disks, ","), "-share", `\\files\data`, "-user", "csi", "-password-file", `C:\password.txt`}
	brief(t, p)
	refusals(t, p)
	interrupted(t, p, args)
	whole(t, p, args, links)
	acrossRestart(t, p, args)
}

// brief runs it without flags. It changes nothing.
func brief(t *testing.T, p *prefix.Prefix) {
	t.Helper()
	output, err := p.Run(t.Context(), verifier)
	_, summary, found := strings.Cut(output, "\nSummary of ")
	if err != nil || !found || strings.Count(summary, "\n") > 20 {
		t.Errorf("without flags: %v\n%s", err, output)
	}
	for _, want := range []string{"Q-dll-search: restricted (", "Q-volume-health: statuses [0 [0x2]:", "Q-disk-health: statuses [0 [0x2]:", `removable: ["size 21, table 21"]`} {
		if !strings.Contains(summary, want) {
			t.Errorf("without flags: no %q in\n%s", want, summary)
		}
	}
}

// refusals are command lines that are refused with exit code 2. They change nothing.
func refusals(t *testing.T, p *prefix.Prefix) {
	t.Helper()
	if output, err := p.Run(t.Context(), verifier, "-h"); err != nil || !strings.Contains(output, "EVERYTHING ON THEM IS LOST") || strings.Contains(output, "-test.") {
		t.Errorf("-h: %v\n%s", err, output)
	}
	inUse := fmt.Sprint(devices.FirstDisk)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-disk", "11"}, "name a folder on it with -dir"},
		{[]string{"-dir", `C:\windows`, "-disk", "11"}, "name a new folder"},
		{[]string{"-dir", scratch, "-disk", "99"}, "disk 99"},
		{[]string{"-dir", scratch, "-disk", "11," + inUse}, "disk " + inUse},
		{[]string{"-dir", scratch, "-disk", "11", "-after-restart"}, "no run with -before-restart"},
		{[]string{"-dir", `C:\windows`, "-disk", "11", "-after-restart"}, "no run with -before-restart"},
	} {
		output, err := p.Run(t.Context(), verifier, test.args...)
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != 2 || !strings.Contains(output, test.want) {
			t.Errorf("%s: %v, want exit code 2 and %q:\n%s", test.args, err, test.want, output)
		}
		wantNothingLeft(t, p)
	}
}

// interrupted ends a run with Ctrl+C, while it has a disk with a volume.
func interrupted(t *testing.T, p *prefix.Prefix, args []string) {
	t.Helper()
	process, err := p.Start(t.Context(), verifier, append(args, "-test.run=^(TestNewVolume|TestOffline)$")...)
	require.NoError(t, err)
	const limit = 5 * time.Minute
	for deadline := time.After(limit); !strings.Contains(process.Output(), "=== RUN   TestNewVolume/Q-storage-cache"); {
		select {
		case <-process.Done():
			t.Fatalf("it has ended: %v\n%s", process.Wait(), process.Output())
		case <-deadline:
			t.Fatalf("no question within %s:\n%s", limit, process.Output())
		case <-time.After(5 * time.Millisecond):
		}
	}
	require.NoError(t, process.Interrupt())
	if err := process.Wait(); err == nil || !strings.Contains(process.Output(), "Interrupted.") {
		t.Errorf("after Ctrl+C: %v\n%s", err, process.Output())
	}
	wantNothingLeft(t, p)
}

// whole runs everything. It needs all disks: the runs before have left them empty.
func whole(t *testing.T, p *prefix.Prefix, args []string, links bool) {
	t.Helper()
	began := time.Now()
	output, err := p.Run(t.Context(), verifier, append(args, "-test.short")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	t.Logf("took %s:\n%s", time.Since(began), output)
	wantNothingLeft(t, p)
	for _, name := range []string{"FilesDirectoryLink", "FilesJunction", "FilesMountPoint", "FilesSwapJunction"} {
		if links && !strings.Contains(output, "--- PASS: TestLocal_"+name+" ") {
			t.Errorf("TestLocal_%s has not passed, although this Wine stores links", name)
		}
	}
	if strings.Contains(output, "csi-Pa55") {
		t.Error("the output has the password")
	}
	for _, question := range []string{"TestPaths/Q-case", "TestNewDisk/Q-msr", "TestNewVolume/Q-format-codes", "TestNewVolume/Q-root-access", "TestShare/Q-smb-errors", "TestHealth/Q-volume-health", "TestHealth/Q-disk-health"} {
		wantFact(t, output, "\n=== ATTR  "+question+" ")
		wantFact(t, output, "| === ATTR  "+question+" ") // in a service
	}
	for _, question := range []string{"Q-privileges", "Q-mitigations-com", "Q-strict-handles", "Q-dll-search"} {
		wantFact(t, output, "\n=== ATTR  TestInService/"+question+" ")
	}
}

func wantFact(t *testing.T, output, want string) {
	t.Helper()
	if !strings.Contains(strings.ReplaceAll(output, "\r", ""), want) {
		t.Errorf("the output lacks %q", want)
	}
}

func wantNothingLeft(t *testing.T, p *prefix.Prefix) {
	t.Helper()
	if entries, err := os.ReadDir(p.Path(scratch)); !os.IsNotExist(err) {
		t.Fatalf("%s is left with %v, %v", scratch, entries, err)
	}
}

// acrossRestart runs -before-restart and -after-restart. The node of the rig is not restarted in between: what
// matters here is that the second run finds what the first has left, and removes it.
func acrossRestart(t *testing.T, p *prefix.Prefix, args []string) {
	t.Helper()
	output, err := p.Run(t.Context(), verifier, append(args, "-before-restart")...)
	if err != nil || !strings.Contains(output, "Restart this machine now") {
		t.Fatalf("before a restart: %v\n%s", err, output)
	}
	wantFact(t, output, "=== ATTR  TestRestart_Before/Q-smb-restart before_the_restart:_open_the_share ")
	output, err = p.Run(t.Context(), verifier, append(args, "-after-restart")...)
	if err != nil {
		t.Fatalf("after a restart: %v\n%s", err, output)
	}
	wantNothingLeft(t, p)
	wantFact(t, output, "=== ATTR  TestRestart_After/Q-stale-share open_the_share ")
	wantFact(t, output, "=== ATTR  TestRestart_After/Q-smb-restart the_mapping_is_there ok")
}
