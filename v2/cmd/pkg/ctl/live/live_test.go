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
			if width > 40 && (!strings.HasSuffix(lines[0], "00:00:00") || !strings.HasPrefix(ansi.Strip(lines[0]), "NODE  30") || !strings.Contains(lines[0], "30 problems")) {
				t.Fatalf("%d x %d: header %q", width, height, lines[0])
			}
		}
	}
}

// TestFrame_Remedy: on a small terminal, the node still has its name and the problem its whole remedy.
func TestFrame_Remedy(t *testing.T) {
	const run = `csi-proxyctl fs rmdir C:/var/lib/kubelet/pods/00000000-0000-4000-a000-000000000001/volumes/kubernetes.io~csi/pvc-1/mount`
	node := inventory.Node{Node: &extensionv1.Node{}, Host: "win-node-17"}
	for i := range uint32(300) {
		node.Disks = append(node.Disks, &extensionv1.Disk{Number: &i})
	}
	for i, severity := range []problem.Severity{problem.Hurts, problem.WillHurt, problem.Note} {
		node.Problems = append(node.Problems, problem.Problem{Severity: severity, Object: problem.Object{Type: problem.Disk, ID: fmt.Sprint(i)}, Text: "stale", Run: run})
	}
	view := live.View{Printer: &output.Printer{}, Now: func() time.Time { return time.Unix(0, 0).UTC() }}
	lines := strings.Split(view.Frame(node, 80, 24), "\n")
	if !strings.HasPrefix(lines[0], "win-node-17  3 problems: 1 hurt 0 pods, 1 will hurt, 1 note") {
		t.Error(lines[0])
	}
	shown := ""
	for _, line := range lines[2:] {
		shown += strings.TrimLeft(line, " │├─└")
	}
	if strings.Count(shown, run) != 3 {
		t.Error(strings.Join(lines, "\n"))
	}
}
