//go:build unix

package command_test

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/live"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestNode_Picture keeps the picture of the README up to date; -update draws it.
func TestNode_Picture(t *testing.T) {
	n := startNode(t, winsim.Busy())
	var out, errs bytes.Buffer
	code := command.Run(t.Context(), []string{"node", "--endpoint-dir", n.dir}, command.Environment{
		Out: &out, Err: &errs, Terminal: true, Width: func() int { return 90 },
		Getenv: func(string) string { return "" }, Host: "win-1", Now: noon,
	})
	if code != 0 {
		t.Fatal(errs.String())
	}
	compare(t, "../../../../../docs/node.svg", picture("csi-proxyctl node", out.String()))
}

// TestWatch_Picture keeps the picture of the manual up to date; -update draws it.
func TestWatch_Picture(t *testing.T) {
	n := startNode(t, winsim.Busy())
	at := endpoint.Node{Dir: n.dir}
	client := call.New(at, noon)
	defer client.Close()
	node, err := inventory.Source{Client: client, Host: "win-1", Now: noon}.Node(t.Context())
	require.NoError(t, err)
	printer := &output.Printer{Colour: true}
	view := live.View{In: strings.NewReader(""), Printer: printer, Now: noon}
	frame := view.Frame(node, 90, 24)
	compare(t, "../../../../../docs/watch.svg", picture("csi-proxyctl watch", frame))
}

func noon() time.Time { return time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC) }

// The picture, in pixels. Fonts differ in the width of their characters, so each run of text is
// stretched to the width of its cells.
const (
	cellWidth, cellHeight = 8.4, 19
	margin                = 16
)

// attributes are those of SVG for the escapes of a terminal.
var attributes = map[string]string{
	"0": ``, "1": ` font-weight="bold"`, "2": ` fill="#8b949e"`,
	"31": ` fill="#ff7b72"`, "32": ` fill="#7ee787"`, "33": ` fill="#e3b341"`,
}

var textRun = regexp.MustCompile(`(?:\x1b\[(\d+)m)?([^\x1b]*)`)

// cells are what stands between gaps. Browsers do not draw spaces at the ends of a text, nor more than one
// in it, and would stretch the rest.
var cells = regexp.MustCompile(`[^ ]+(?: [^ ]+)*`)

// picture draws what a command has printed on a terminal.
func picture(typed, printed string) string {
	lines := strings.Split("\x1b[2m$\x1b[0m "+typed+"\n"+strings.TrimRight(printed, "\n"), "\n")
	columns := 0
	var text strings.Builder
	for i, line := range lines {
		column, attribute := 0, ""
		for _, part := range textRun.FindAllStringSubmatch(line, -1) {
			if part[1] != "" {
				attribute = attributes[part[1]]
			}
			for _, at := range cells.FindAllStringIndex(part[2], -1) {
				word, before := part[2][at[0]:at[1]], utf8.RuneCountInString(part[2][:at[0]])
				fmt.Fprintf(&text, "<text x=\"%.1f\" y=\"%d\" textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\"%s>%s</text>\n",
					margin+float64(column+before)*cellWidth, margin+14+i*cellHeight, float64(utf8.RuneCountInString(word))*cellWidth, attribute, html.EscapeString(word))
			}
			column += utf8.RuneCountInString(part[2])
		}
		columns = max(columns, column)
	}
	width, height := 2*margin+float64(columns)*cellWidth, 2*margin+len(lines)*cellHeight
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" font-family="ui-monospace, Consolas, Menlo, 'DejaVu Sans Mono', monospace" font-size="14">
<title>Output of %s on an emulated node. picture_test.go draws it.</title>
<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>
<g fill="#e6edf3">
%s</g>
</svg>
`, width, height, html.EscapeString(typed), text.String())
}
