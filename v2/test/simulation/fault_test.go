package simulation

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// faults are faults that the product once had, each as a change that brings it back. docs/testing.md has their table.
var faults = []struct{ name, file, from, to string }{
	{"lost boot sector", "pkg/volume/hostapi/formatted.go", "return isEmpty, h.refuseForeign(ctx, op, id)", "return isEmpty, nil"},
	{"format after others", "pkg/volume/hostapi/format.go", "options.Force = h.formatOver", "options.Force = true"},
	{"another disk in Stage", "pkg/disk/hostapi/target.go", "if mustBe == (MustBe{}) {", "if mustBe.VolumeID == \"\" {"},
	{"another disk in Unstage", "pkg/disk/hostapi/target.go", "if mustBe == (MustBe{}) {", "if mustBe == (MustBe{}) || mustBe.VolumeID != \"\" {"},
	{"no deadline", "internal/win/bounds/bounds.go", "questionLimit = 2 * time.Minute", "questionLimit = 999 * time.Hour"},
	{"late offline", "internal/host/diskprobe/diskprobe.go", "	if !found {", "	if _ = found; true {"},
	{"late logout", "pkg/iscsi/hostapi/connect.go", "session.ID.String()); found {", `session.ID.String()); found && stuck.Doing == "" {`},
	{"early loss", "pkg/volume/hostapi/unmount.go", "silenceLimit = 6 * time.Minute", "silenceLimit = 10 * time.Second"},
	{"a stuck flush", "pkg/volume/hostapi/unmount.go", "(stuck.Silent >= silenceLimit || again)", "stuck.Silent < 0 && !again"},
	{"loss of one flush", "pkg/volume/hostapi/unmount.go", "return again && (", "return !again || ("},
	{"a failing flush", "pkg/volume/hostapi/unmount.go", "if h.failsAgain(w, lasting) {", "if h.failsAgain(w, lasting) && w.path == \"\" {"},
	{"absent is gone", "internal/host/lostvolume/lostvolume.go", "notReady != \"\" || search.Value.Volumes[id]", `notReady == "-"`},
	{"late unmount", "pkg/volume/hostapi/unmount.go", "if !queue.Awaited(ctx) {", "if !queue.Awaited(ctx) && w.path == \"\" {"},
	{"a path hangs with its target", "internal/win/hang.go", "at.Object += winpath.Separator", "at.Object += \"\""},
	{"others are offline", "internal/host/lostvolume/storage.go", "case attributes.Offline && named:", "case attributes.Offline && named && id.Number == 0:"},
	{"no record", "../mounter/begun.go", "bool { return strings.Contains(", `bool { return path == "" && strings.Contains(`},
	{"two that leave", "../mounter/iscsi.go", "!other.leaves && ", ""},
	{"links unread", "../mounter/links.go", "m.links.failed(pathKey(root)) < enough", "m.links.failed(pathKey(root)) < 0"},
}

var fault = flag.String("fault", "", "look for seeds that find the mended fault of this `name`, or for all")

// TestFaults_Apply: the changes fit the product, or prove nothing.
func TestFaults_Apply(t *testing.T) {
	for _, f := range faults {
		if source, err := os.ReadFile(filepath.Join("../..", f.file)); err != nil || bytes.Count(source, []byte(f.from)) != 1 {
			t.Errorf("%s: %s does not have %q once, %v", f.name, f.file, f.from, err)
		}
	}
}

// TestFaults runs seeds on the product with each fault, until one fails.
func TestFaults(t *testing.T) {
	for _, f := range faults {
		if *fault != f.name && *fault != "all" {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			file, err := filepath.Abs(filepath.Join("../..", f.file))
			source, readErr := os.ReadFile(file)
			changed, overlay := filepath.Join(t.TempDir(), "changed.go"), filepath.Join(t.TempDir(), "overlay.json")
			replace, jsonErr := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
			for _, err := range []error{err, readErr, jsonErr, os.WriteFile(changed, bytes.Replace(source, []byte(f.from), []byte(f.to), 1), 0o600), os.WriteFile(overlay, replace, 0o600)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.CommandContext(t.Context(), "go", "test", "-timeout=1h", "-overlay="+overlay, "-run=^TestSimulation$", ".", "-seeds=2000", "-most=1").CombinedOutput()
			if found := regexp.MustCompile(`seed \d+: I\d[^:]*`).Find(out); found == nil {
				t.Errorf("2,000 seeds do not find it (%v):\n%s", err, out)
			} else {
				t.Logf("%s", found)
			}
		})
	}
}
