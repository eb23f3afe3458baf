package live

import (
	"cmp"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
)

const (
	// gutter is the width of the column with the marks.
	gutter = 2
	// headerHeight and footerHeight surround the body.
	headerHeight, footerHeight = 2, 1
)

func (m *model) bodyWidth() int  { return max(1, m.width-gutter) }
func (m *model) bodyHeight() int { return max(0, m.height-headerHeight-footerHeight) }

// View draws a frame: exactly as many lines as the terminal has, none of them too wide.
func (m *model) View() tea.View {
	all := m.lines()
	lines := []string{m.header(), m.status()}
	lines = append(lines, m.body(all)...)
	lines = append(lines, m.footer(len(all)))
	for i, line := range lines {
		lines[i] = ansi.Truncate(output.KeepColours(line), m.width, "…")
	}
	view := tea.NewView(strings.Join(lines[:min(len(lines), max(0, m.height))], "\n"))
	view.AltScreen = true
	return view
}

// header has the name and the counts on the left, and the clock on the right. If there is no room, the problems count.
func (m *model) header() string {
	clock := m.view.Now().Format("15:04:05")
	room := m.width - len(clock) - gutter
	left := "looking at the node"
	if n := m.node; n != nil {
		style := output.Good
		if len(n.Problems) > 0 {
			style = inventory.Style(n.Problems[0].Severity)
		}
		name := m.paint(output.Bold, m.name()) + strings.Repeat(" ", gutter)
		summary := m.paint(style, n.Summary())
		if left = name + n.Counts() + ", " + summary; ansi.StringWidth(left) > room {
			left = name + summary
		}
		if m.err != nil {
			left = name + m.paint(output.Bad, "not current: this is the state of "+m.taken.Format("15:04:05"))
		}
	}
	left = ansi.Truncate(left, max(0, room), "…")
	return left + strings.Repeat(" ", max(0, m.width-ansi.StringWidth(left)-len(clock))) + clock
}

func (m *model) name() string {
	if m.node == nil {
		return ""
	}
	return output.Printable(cmp.Or(m.node.Host, m.node.Serial))
}

// status says what is wrong with the look itself, or what has changed.
func (m *model) status() string {
	switch {
	case m.err != nil:
		return m.paint(output.Bad, "run csi-proxyctl doctor: "+m.err.Error())
	case !m.latest.IsZero():
		return m.paint(output.Faint, fmt.Sprintf("last change at %s: %s", m.latest.Format("15:04:05"), m.latestText))
	case m.node != nil:
		return m.paint(output.Faint, m.node.Programs()+"  no change so far")
	}
	return ""
}

// body has the lines that are visible, and empty ones up to the footer.
func (m *model) body(all []output.Line) []string {
	top := max(0, min(m.top, len(all)-m.bodyHeight()))
	body := make([]string, m.bodyHeight())
	for i := range min(len(body), len(all)-top) {
		line := all[top+i]
		mark := strings.Repeat(" ", gutter)
		if since, ok := m.changed[key(line)]; ok && m.view.Now().Sub(since) < markTime {
			mark = m.paint(output.Bold, "* ")
		}
		text := line.Text
		if m.left > 0 {
			text = ansi.TruncateLeft(text, m.left, "")
		}
		body[i] = mark + text
	}
	if len(all) == 0 && len(body) > 0 && m.node != nil {
		body[0] = strings.Repeat(" ", gutter) + "nothing matches"
		if m.filter == "" {
			body[0] = strings.Repeat(" ", gutter) + "no problems; p shows everything"
		}
	}
	return body
}

// footer has the keys, or the filter while it is typed, and the position.
func (m *model) footer(all int) string {
	keys := "↑↓ ←→ PgUp PgDn scroll  / filter  p problems  f unfold  q quit"
	if m.unfolded {
		keys = strings.Replace(keys, "unfold", "fold", 1)
	}
	switch {
	case m.view.In == nil:
		keys = ""
	case m.typing:
		return "/" + m.filter + "█" + m.paint(output.Faint, "  Enter keeps it, Esc clears it")
	case m.filter != "":
		keys = "filter " + m.filter + "  (Esc clears it)"
	case m.problemsOnly:
		keys = "problems only  (p shows everything)"
	}
	top := max(0, min(m.top, all-m.bodyHeight()))
	position := fmt.Sprintf("%d-%d of %d", min(top+1, all), min(top+m.bodyHeight(), all), all)
	room := m.width - ansi.StringWidth(keys) - len(position)
	if room < 1 {
		keys = ansi.Truncate(keys, max(0, m.width-len(position)-1), "…")
		room = m.width - ansi.StringWidth(keys) - len(position)
	}
	return m.paint(output.Faint, keys+strings.Repeat(" ", max(0, room))+position)
}

func (m *model) paint(style output.Style, text string) string {
	return m.view.Printer.Paint(style, text)
}
