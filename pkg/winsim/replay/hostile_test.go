package replay_test

import (
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
