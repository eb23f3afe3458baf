package machines_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/test/machines"
)

// TestDifferences_Calls shows that a recorded answer that differs is found in each file of a recording, and that
// a note explains it.
func TestDifferences_Calls(t *testing.T) {
	same := recordCalls(t, func(_ *winsim.Node, m win.Machine) { _ = m.FlushVolume(t.Context(), winsim.SystemVolume) })
	other := recordCalls(t, func(node *winsim.Node, m win.Machine) {
		if _, err := node.Inject(winsim.Fault{Call: "FlushVolume", Times: 2, Error: 1117}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_ = m.FlushVolume(t.Context(), winsim.SystemVolume)
		}
	})
	refused := recordOn(t, refusing{newNode(t)}, func(m win.Machine) { _ = m.FlushVolume(t.Context(), winsim.SystemVolume) })
	const differs = `planted differs from the emulator in 2 answers to FlushVolume; the first is call 1, FlushVolume {"id":"\\\\?\\Volume{0c51a9e0-0000-0000-0000-100000000000}\\"}: ` +
		`code: recorded the device reported an I/O error (Windows error 1117), emulated success; change the emulator, or explain the call "FlushVolume" in test/machines/planted/notes.json`
	for _, test := range []struct {
		name    string
		files   map[string]string
		notes   map[string]int // how many answers to a call a note explains
		problem string         // a part of it; empty if there is none
	}{
		{"same", map[string]string{"calls.jsonl.gz": same}, nil, ""},
		{"other", map[string]string{"calls.jsonl.gz": other}, nil, differs},
		{"other before", map[string]string{"calls.jsonl.gz": same, "calls.1.jsonl.gz": other}, nil, differs},
		{"refused by a decoder", map[string]string{"calls.jsonl.gz": refused}, nil, `recorded replay: volume of 3 bytes: the data ends too early, emulated success`},
		{"explained", map[string]string{"calls.jsonl.gz": other}, map[string]int{"FlushVolume": 2}, ""},
		{"one more", map[string]string{"calls.jsonl.gz": other}, map[string]int{"FlushVolume": 1}, "explains call FlushVolume, for 1 answers, and 2 differ"},
		{"one less", map[string]string{"calls.jsonl.gz": other}, map[string]int{"FlushVolume": 3}, "explains call FlushVolume, for 3 answers, and 2 differ"},
		{"explained twice", map[string]string{"calls.jsonl.gz": other}, map[string]int{"FlushVolume": 2, "DiskDevices": 1}, "explains call DiskDevices, which does not differ"},
		{"nothing to explain", map[string]string{"calls.jsonl.gz": same}, map[string]int{"FlushVolume": 1}, "explains call FlushVolume, which does not differ"},
		{"no recording", nil, map[string]int{"FlushVolume": 1}, "explains call FlushVolume, which does not differ"},
		{"not a recording", map[string]string{"calls.jsonl.gz": "calls"}, nil, "test/machines/planted/calls.jsonl.gz cannot be replayed: replay "},
		{"no calls", map[string]string{"calls.jsonl.gz": recordCalls(t, func(*winsim.Node, win.Machine) {})}, nil, "cannot be replayed: no call was compared"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			answers, err := os.ReadFile("emulator/answers.json")
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "emulator", "answers.json"), answers)
			write(t, filepath.Join(dir, "planted", "answers.json"), answers)
			for name, content := range test.files {
				write(t, filepath.Join(dir, "planted", name), []byte(content))
			}
			if test.notes != nil {
				notes, err := json.Marshal([]machines.Note{{Text: "planted", Calls: test.notes}})
				if err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, "planted", "notes.json"), notes)
			}
			list, err := machines.Load(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			problems := machines.Check(list)
			if test.problem == "" && len(problems) > 0 || test.problem != "" && (len(problems) != 1 || !strings.Contains(problems[0], test.problem)) {
				t.Errorf("the problems are %q, want one with %q", problems, test.problem)
			}
			const row = "| FlushVolume | planted | 2, the first: recorded the device reported an I/O error (Windows error 1117), emulated success"
			differ := test.files["calls.jsonl.gz"] == other || test.files["calls.1.jsonl.gz"] == other
			if page := machines.Page(list); strings.Contains(page, row) != differ {
				t.Errorf("that a call differs is on the page: %t", !differ)
			}
		})
	}
}

// recordCalls is a compressed recording of an emulated node.
func recordCalls(t *testing.T, use func(*winsim.Node, win.Machine)) string {
	t.Helper()
	node := newNode(t)
	return recordOn(t, node, func(m win.Machine) { use(node, m) })
}

func newNode(t *testing.T) *winsim.Node {
	t.Helper()
	node, err := winsim.New(winsim.Default())
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// refusing is a machine with a driver whose answer a decoder refuses.
type refusing struct{ win.Machine }

func (refusing) FlushVolume(context.Context, win.VolumeID) error {
	return fmt.Errorf("volume of 3 bytes: %w", winlayout.ErrTruncated)
}

// recordOn is a compressed recording of a machine.
func recordOn(t *testing.T, machine win.Machine, use func(win.Machine)) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	r := record.New(t.Context(), machine, w, record.Options{})
	use(r.Machine())
	r.Close()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
