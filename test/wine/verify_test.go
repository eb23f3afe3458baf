//go:build linux && wine

package wine

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/devices"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/rig"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
)

const (
	verifier = `C:\csi-proxy-verify.exe`
	scratch  = `C:\verify`
)

// TestVerify runs csi-proxy-verify.exe, which is test/windows, on the disks of the rig: with flags that it refuses,
// killed and interrupted in the middle, and to its end. Each run removes what the one before has left.
func TestVerify(t *testing.T) {
	build(t)
	p := newPrefix(t)
	links, err := p.StoresLinks(t.Context())
	require.NoError(t, err)
	startIn(t, p, rig.Config{Preset: devices.Blank, Files: links, NoDaemon: true})
	root, err := prefix.Root()
	require.NoError(t, err)
	require.NoError(t, p.Copy(filepath.Join(root, "bin", "csi-proxy-verify.exe")))
	for name, content := range map[string]string{"password.txt": "csi-Pa55\n", "wrong.txt": "wrong-Pa55"} {
		require.NoError(t, os.WriteFile(p.Path(`C:\`+name), []byte(content), 0o600))
	}
	var disks []string
	for i := range devices.BlankDisks {
		disks = append(disks, fmt.Sprint(devices.FirstBlank+i))
	}
	onDisks := []string{"-dir", scratch, "-disk", strings.Join(disks, ",")}
	onShare := append(onDisks, "-share", `\\files\data`, "-user", "csi", "-password-file", `C:\password.txt`)
	refusals(t, p, onDisks)

	if links {
		throughLinks(t, p, onDisks)
	} else { // what remains of an end before the end does not depend on links
		endedEarly(t, p, onShare)
	}

	began := time.Now()
	args := append(onShare, "-answers", `C:\whole.jsonl`)
	if links { // Wine 10 repeats everything in a service
		args = append(args, "-test.skip=^TestInService$")
	}
	output, err := p.Run(t.Context(), verifier, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	t.Logf("took %s:\n%s", time.Since(began), output)
	if !links && !regexp.MustCompile(`Removed what was left: disk \d+\.`).MatchString(output) {
		t.Error("it does not say which disk it has cleared")
	}
	wantNothingLeft(t, p)
	for _, name := range []string{"FilesDirectoryLink", "FilesJunction", "FilesMountPoint", "FilesSwapJunction"} {
		if links && !strings.Contains(output, "--- PASS: TestLocal_"+name+" ") {
			t.Errorf("TestLocal_%s has not passed, although this Wine stores links", name)
		}
	}
	wantAnswers(t, p.Path(`C:\whole.jsonl`), !links)
	acrossRestart(t, p, onShare)
}

// throughLinks: no link leads to a folder of Windows.
func throughLinks(t *testing.T, p *prefix.Prefix, onDisks []string) {
	t.Helper()
	if output, err := p.Run(t.Context(), "cmd", "/c", "mklink", "/J", `C:\link`, `C:\windows`); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for dir, want := range map[string]string{`C:\link`: "is a link", `C:\link\verify`: "belongs to Windows"} {
		if output, err := p.Run(t.Context(), verifier, append(onDisks, "-dir", dir)...); err == nil || !strings.Contains(output, want) {
			t.Errorf("-dir %s: %v, want %q\n%s", dir, err, want, output)
		}
	}
}

// endedEarly kills runs, and interrupts them. The last one leaves something.
func endedEarly(t *testing.T, p *prefix.Prefix, args []string) {
	t.Helper()
	kill(t, p, args, "TestConformance/disk,_512-byte_sectors/SetDiskState")
	for _, test := range []string{"TestNewVolume/Q-storage-cache", "TestLocal_FilesListAndRemove", "TestShare/Q-smb-case", "TestInService"} {
		interrupt(t, p, args, test)
	}
	kill(t, p, args, "TestNewVolume/Q-storage-cache")
	if output, err := p.Run(t.Context(), verifier, "-cleanup", "-dir", scratch); err == nil || !strings.Contains(output, "To clear it, name it with -disk") {
		t.Errorf("-cleanup without the disk: %v\n%s", err, output)
	}
}

// refusals are command lines that are refused with one sentence and exit code 2. They change nothing.
func refusals(t *testing.T, p *prefix.Prefix, onDisks []string) {
	t.Helper()
	if output, err := p.Run(t.Context(), verifier, "-h"); err != nil || strings.Count(output, "\n") > 30 || !strings.Contains(output, "EVERYTHING ON THEM IS LOST") {
		t.Errorf("-h: %v\n%s", err, output)
	}
	inUse := fmt.Sprint(devices.FirstDisk)
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "name a folder"},
		{[]string{"-dir", scratch}, "say on which disks"},
		{[]string{"-dir", `C:\Windows\Temp\verify`, "-disk", "11"}, "belongs to Windows"},
		{[]string{"-dir", `C:\no\such\folder`, "-disk", "11"}, "make the folder above it first"},
		{[]string{"-dir", scratch, "-disk", "99"}, "disk 99"},
		{[]string{"-dir", scratch, "-disk", "11," + inUse}, "disk " + inUse},
		{[]string{"-dir", scratch, "-virtual-disks"}, "virtual disks"}, // Wine has none
		{append(onDisks, "-share", `\\files\data`, "-user", "csi", "-password-file", `C:\wrong.txt`), `\\files\data cannot be mapped`},
		{append(onDisks, "-share", `\\nowhere\data`), `\\nowhere\data cannot be mapped`},
		{append(onDisks, "-after-restart"), "no run with -before-restart"},
		{append(onDisks, "-answers", `C:\password.txt`), `C:\password.txt exists`},
		{append(onDisks, "-answers", `C:\no\answers.jsonl`), "in a folder that exists"},
		{append(onDisks, "-test.run=("), "-test.run"},
		{[]string{"-dir", `C:\password.txt`, "-disk", "11"}, "is a file"},
	} {
		output, err := p.Run(t.Context(), verifier, test.args...)
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != 2 || !strings.Contains(output, test.want) {
			t.Errorf("%s: %v, want exit code 2 and %q:\n%s", test.args, err, test.want, output)
		}
		wantNothingLeft(t, p)
	}
	for _, dir := range []string{`C:\windows\temp`, `C:\existing`} {
		require.NoError(t, os.MkdirAll(p.Path(dir), 0o700))
		output, err := p.Run(t.Context(), verifier, "-cleanup", "-dir", dir)
		if _, gone := os.Stat(p.Path(dir)); err != nil || gone != nil {
			t.Errorf("-cleanup of a folder without a journal: %v, %v\n%s", err, gone, output)
		}
	}
}

// interrupt ends a run with Ctrl+C. It removes what the run before has left, and what it has made.
func interrupt(t *testing.T, p *prefix.Prefix, args []string, test string) {
	t.Helper()
	const answers = `C:\interrupted.jsonl`
	process := startVerifier(t, p, test, append(args, "-answers", answers))
	require.NoError(t, process.Interrupt())
	if err := process.Wait(); err == nil || !strings.Contains(process.Output(), "What was made is removed.") {
		t.Errorf("after Ctrl+C in %s: %v\n%s", test, err, process.Output())
	}
	wantNothingLeft(t, p)
	require.NoError(t, os.Remove(p.Path(answers)))
}

// kill kills a run that uses disks.
func kill(t *testing.T, p *prefix.Prefix, args []string, test string) {
	t.Helper()
	process := startVerifier(t, p, test, append(args, "-answers", `C:\killed.jsonl`))
	require.NoError(t, process.Kill())
	<-process.Done()
	if _, err := os.Stat(p.Path(scratch)); err != nil {
		t.Fatalf("a killed run leaves nothing: %v\n%s", err, process.Output())
	}
	require.NoError(t, os.Remove(p.Path(`C:\killed.jsonl`)))
}

// startVerifier starts a run, and returns when a test begins.
func startVerifier(t *testing.T, p *prefix.Prefix, test string, args []string) *prefix.Process {
	t.Helper()
	parent, _, _ := strings.Cut(test, "/")
	process, err := p.Start(t.Context(), verifier, append(args, "-test.run=^("+parent+"|TestNewDisk|TestOffline)$")...)
	require.NoError(t, err)
	const limit = 5 * time.Minute // first it removes what is left of the run before
	for deadline := time.After(limit); !strings.Contains(process.Output(), "=== RUN   "+test); {
		select {
		case <-process.Done():
			t.Fatalf("it has ended: %v", process.Wait())
		case <-deadline:
			t.Fatalf("%s does not begin within %s:\n%s", test, limit, process.Output())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return process
}

func wantNothingLeft(t *testing.T, p *prefix.Prefix) {
	t.Helper()
	if _, err := os.Stat(p.Path(`C:\answers.jsonl`)); !os.IsNotExist(err) {
		t.Fatalf("a run that was refused has left answers: %v", err)
	}
	if entries, err := os.ReadDir(p.Path(scratch)); !os.IsNotExist(err) {
		t.Fatalf("%s is left with %v, %v", scratch, entries, err)
	}
}

// wantAnswers checks that questions of all kinds are answered, also in the service, and that no password is in them.
func wantAnswers(t *testing.T, path string, service bool) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, secret := range []string{"csi-Pa55", "wrong-Pa55word"} {
		if strings.Contains(string(content), secret) {
			t.Errorf("the answers have a password")
		}
	}
	type answer struct {
		Service                        bool
		Question, Fact, Value, Skipped string
	}
	answered, inService := map[string]bool{}, map[string]bool{}
	for lines := bufio.NewScanner(strings.NewReader(string(content))); lines.Scan(); {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		if a.Fact != "" {
			answered[a.Question] = true
			inService[a.Question] = inService[a.Question] || a.Service
		}
	}
	t.Logf("%d questions are answered", len(answered))
	for _, question := range []string{"Q-case", "Q-msr", "Q-format-codes", "Q-root-access", "Q-smb-errors", "Q-vhdx", "Q-volume-health", "Q-repair", "Q-disk-health"} {
		if !answered[question] || inService[question] != service {
			t.Errorf("%s is answered: %v, in the service: %v", question, answered[question], inService[question])
		}
	}
	for _, question := range []string{"Q-privileges", "Q-mitigations-com", "Q-strict-handles", "Q-dll-search"} {
		if answered[question] != service {
			t.Errorf("%s is answered: %v", question, answered[question])
		}
	}
}

// acrossRestart runs -before-restart and -after-restart. The node of the rig is not restarted in between: what
// matters here is that the second run finds what the first has left, and removes it.
func acrossRestart(t *testing.T, p *prefix.Prefix, args []string) {
	t.Helper()
	output, err := p.Run(t.Context(), verifier, append(args, "-before-restart", "-answers", `C:\restart.jsonl`)...)
	if err != nil || !strings.Contains(output, "Restart this machine now") {
		t.Fatalf("before a restart: %v\n%s", err, output)
	}
	output, err = p.Run(t.Context(), verifier, "-dir", scratch, "-disk", "11", "-after-restart", "-answers", `C:\restart.jsonl`)
	if err == nil || !strings.Contains(output, "had other flags") {
		t.Errorf("after a restart with other flags: %v\n%s", err, output)
	}
	output, err = p.Run(t.Context(), verifier, append(args, "-after-restart", "-answers", `C:\restart.jsonl`)...)
	if err != nil {
		t.Fatalf("after a restart: %v\n%s", err, output)
	}
	wantNothingLeft(t, p)
	content, err := os.ReadFile(p.Path(`C:\restart.jsonl`))
	for _, want := range []string{`"before the restart: open the share"`, `"question":"Q-stale-share","fact":"open the share"`, `"fact":"the mapping is there","value":"ok"`} {
		if err != nil || !strings.Contains(string(content), want) {
			t.Errorf("the answers have no %s: %v\n%s", want, err, content)
		}
	}
}
