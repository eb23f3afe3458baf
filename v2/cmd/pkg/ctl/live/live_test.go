package live_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/live"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
)

// TestFrame_FitsEverySize: a frame has as many lines as the terminal, and none is too wide, also with
// characters of two columns.
func TestFrame_FitsEverySize(t *testing.T) {
	node := inventory.Node{Node: &extensionv1.Node{}, Serial: "NODE"}
	for i := range uint32(30) {
		node.Disks = append(node.Disks, &extensionv1.Disk{Number: &i, SerialNumber: "盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤"})
		node.Problems = append(node.Problems, problem.Problem{
			Object: problem.Object{Type: problem.Disk, ID: fmt.Sprint(i)}, Text: strings.Repeat("long ", 30), Advice: "second line",
		})
	}
	view := live.View{In: strings.NewReader(""), Printer: &output.Printer{Colour: true}, Now: func() time.Time { return time.Unix(0, 0).UTC() }}
	for width := 1; width <= 100; width += 9 {
		for height := 1; height <= 30; height += 3 {
			lines := strings.Split(view.Frame(node, width, height), "\n")
			if len(lines) > height {
				t.Fatalf("%d x %d: %d lines", width, height, len(lines))
			}
			for i, line := range lines {
				if got := ansi.StringWidth(line); got > width {
					t.Fatalf("%d x %d: line %d has %d columns: %q", width, height, i, got, line)
				}
			}
			if width > 40 && (!strings.HasSuffix(lines[0], "00:00:00") || !strings.Contains(lines[0], "30 disks, 0 volumes")) {
				t.Fatalf("%d x %d: header %q", width, height, lines[0])
			}
		}
	}
}
