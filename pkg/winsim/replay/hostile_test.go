package replay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/replay"
)

// crafted is a recording of the default node, followed by lines.
func crafted(t *testing.T, calls ...string) string {
	t.Helper()
	text := recorded(t, newNode(t, "default"), record.Options{}, func(win.Machine) {})
	return string(text) + strings.Join(calls, "\n") + "\n"
}

// TestCompare_Deep: listings within listings are followed up to a limit, because each takes a part of the stack.
func TestCompare_Deep(t *testing.T) {
	const depth = 2000
	calls := []string{`{"call":{"seq":1,"method":"OpenDirectory","in":{"path":{"Base":"C:\\"}},"out":1}}`}
	for i := range depth {
		calls = append(calls, fmt.Sprintf(`{"call":{"seq":%d,"on":%d,"method":"ListDirectory","in":{"name":""},"out":{"Directory":%d,"Batches":[[{"Name":"w","Directory":true}]]}}}`, i+2, i+1, i+2))
	}
	report, err := replay.Compare(t.Context(), strings.NewReader(crafted(t, calls...)))
	if err != nil {
		t.Fatal(err)
	}
	const note = "listings within listings are replayed up to 128 deep; the calls further down are skipped"
	if report.Calls+len(report.Skipped) != len(calls) || report.Calls < 100 || len(report.Notes) != 1 || report.Notes[0] != note {
		t.Errorf("%d calls were compared, %d skipped, notes %q", report.Calls, len(report.Skipped), report.Notes)
	}
}

// TestCompare_NotCalls: a recording cannot make the node do what is never recorded. Methods that a newer program
// may have are skipped as well, and the other calls are compared.
func TestCompare_NotCalls(t *testing.T) {
	for _, test := range []struct{ call, note string }{
		{`{"call":{"seq":48,"method":"Now"}}`, "1 calls are skipped because this program does not know their methods, the first is Now; use a newer program"},
		{`{"call":{"seq":48,"method":"Sleep","in":{"d":3600000000000}}}`, "1 calls are skipped because this program does not know their methods, the first is Sleep; use a newer program"},
		{`{"call":{"seq":48,"method":"ResizeDisk","in":{"d":"x"}}}`, "1 calls are skipped because this program does not know their methods, the first is ResizeDisk; use a newer program"},
		{`{"call":{"seq":48,"method":"RemoveLink","in":{"name":"x"}}}`, ""},
	} {
		text := crafted(t, `{"call":{"seq":47,"method":"FlushVolume","in":{"id":"\\\\?\\Volume{0c51a9e0-0000-0000-0000-100000000000}\\"}}}`, test.call)
		report, err := replay.Compare(t.Context(), strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", test.call, err)
			continue
		}
		if len(report.Skipped) != 1 || report.Skipped[0].Reason != "the seam has no such call" || strings.Join(report.Notes, "\n") != test.note || report.Calls != 1 {
			t.Errorf("%s: %d calls compared, skipped %v, notes %q", test.call, report.Calls, report.Skipped, report.Notes)
		}
	}
}

// TestCompare_LongPath: paths that Windows cannot have are skipped, also if a listing, an open directory or a link
// makes them, and no text of the report is as long as they are.
func TestCompare_LongPath(t *testing.T) {
	long := strings.Repeat(`a\\`, 100_000) + "a"
	half := strings.Repeat(strings.Repeat("a", 98)+`\\`, 200) + "a" // of a path that is too long
	text := crafted(
		t,
		`{"call":{"seq":1,"method":"FileInfo","in":{"path":{"Base":"C:\\","Rest":"`+long+`"}},"out":{"Directory":true}}}`,
		`{"call":{"seq":2,"method":"OpenDirectory","in":{"path":{"Base":"C:\\`+half+`"}},"out":1}}`,
		`{"call":{"seq":3,"on":1,"method":"Open","in":{"name":"`+half+`"},"out":2}}`,
		`{"call":{"seq":4,"on":1,"method":"ListDirectory","in":{"name":""},"out":{"Directory":3,"Batches":[[{"Name":"`+long+`","Directory":true}]]}}}`,
		`{"call":{"seq":5,"on":1,"method":"CreateDirectoryLink","in":{"name":"x","target":"`+long+`"}}}`,
		`{"call":{"seq":6,"method":"`+long+`"}}`,
		`{"call":{"seq":7,"method":"ServiceStatus","in":{"name":"`+long+`"},"error":{"kind":"`+long+`","text":"`+long+`"}}}`,
	)
	// With and without the emulator's own state: then files are learnt from the calls.
	for _, text := range []string{text, string(withoutSnapshot(t, []byte(text)))} {
		report, err := replay.Compare(t.Context(), strings.NewReader(text))
		if err != nil {
			t.Fatalf("%.1000s", err)
		}
		if all := fmt.Sprintf("%+v", report); len(all) > 10_000 {
			t.Errorf("the report has %d characters: %.1000s", len(all), all)
		}
		if len(report.Skipped) < 3 || report.Skipped[1].Reason != "a path of it has more than 32766 units, which Windows does not take" {
			t.Errorf("skipped: %+v", report.Skipped)
		}
	}
	text = crafted(t, `{"call":{"seq":1,"method":"DriveLayout","in":["`+long+`"]}}`)
	if _, err := replay.Compare(t.Context(), strings.NewReader(text)); err == nil || len(err.Error()) > 1000 {
		t.Errorf("%.1000v", err)
	}
}

// TestCompare_Interrupted: each part of a replay ends with its context.
func TestCompare_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := replay.Compare(ctx, strings.NewReader(crafted(t))); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
