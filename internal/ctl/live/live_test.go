package live_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/live"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
)

// TestFrame_FitsEverySize: a frame has as many lines as the terminal, and none is too wide, also with
// characters of two columns.
func TestFrame_FitsEverySize(t *testing.T) {
	var branches []output.Branch
	for i := range 30 {
		branches = append(branches, output.Branch{
			Text:     fmt.Sprintf("disk %d  盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤盤  \x1b[33mserial\x1b[0m", i),
			Branches: []output.Branch{{Text: "! " + strings.Repeat("long ", 30) + "\nsecond line"}},
		})
	}
	picture := live.Picture{Name: "NODE", Disks: 30, Warnings: 30, Draw: func(int) output.Branch { return output.Branch{Branches: branches} }}
	view := live.View{In: strings.NewReader(""), Printer: &output.Printer{Colour: true}, Now: func() time.Time { return time.Unix(0, 0).UTC() }}
	for width := 1; width <= 100; width += 3 {
		for height := 1; height <= 30; height++ {
			lines := strings.Split(view.Frame(picture, width, height), "\n")
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
