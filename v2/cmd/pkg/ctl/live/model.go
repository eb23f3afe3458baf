package live

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
)

// markTime is how long a line stays marked after it changed.
const markTime = 10 * time.Second

// sideways is how many columns an arrow key moves.
const sideways = 8

// model is the state of the view. Only the event loop of the library uses it.
type model struct {
	view View
	ctx  context.Context //nolint:containedctx // looks end with the view

	width, height int
	node          *inventory.Node
	taken         time.Time // when the node was so
	looks         int
	err           error // of the last look

	// Lines of the last look, and since when those that changed are as they are.
	known   map[string]bool
	changed map[string]time.Time
	// latest is when something changed last, and what.
	latest     time.Time
	latestText string

	top, left    int // the first line and column that are visible
	problemsOnly bool
	unfolded     bool
	filter       string
	typing       bool // the filter

	interrupted bool
}

// Messages of our own commands.
type (
	looked struct {
		node inventory.Node
		err  error
	}
	lookNow struct{}
	tick    struct{}
)

func (m *model) Init() tea.Cmd { return tea.Batch(m.look, m.wait(time.Second, tick{})) }

func (m *model) look() tea.Msg {
	node, err := m.view.Look(m.ctx)
	return looked{node, err}
}

func (m *model) wait(d time.Duration, then tea.Msg) tea.Cmd {
	return func() tea.Msg {
		select {
		case <-m.view.After(d):
			return then
		case <-m.ctx.Done():
			return nil
		}
	}
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.relearn()
	case tick:
		return m, m.wait(time.Second, tick{})
	case lookNow:
		return m, m.look
	case looked:
		m.learn(msg)
		if m.looks++; m.looks == m.view.Count {
			return m, tea.Quit
		}
		return m, m.wait(m.view.Interval, lookNow{})
	case tea.PasteMsg:
		if m.typing {
			m.filter += output.Printable(msg.Content)
		}
	case tea.KeyPressMsg:
		if msg.String() == "ctrl+c" {
			m.interrupted = true
			return m, tea.Quit
		}
		if m.typing {
			m.typed(msg)
			return m, nil
		}
		return m, m.press(msg.String())
	}
	return m, nil
}

// learn takes a new description and finds out what has changed.
func (m *model) learn(msg looked) {
	m.err = msg.err
	if msg.err != nil {
		return
	}
	first := m.node == nil
	m.node, m.taken = &msg.node, m.view.Now()
	before := m.known
	m.relearn()
	if first {
		return
	}
	added, gone := 0, 0
	for key := range m.known {
		if !before[key] {
			m.changed[key] = m.taken
			added++
		}
	}
	for key := range before {
		if !m.known[key] {
			delete(m.changed, key)
			gone++
		}
	}
	if added+gone > 0 {
		m.latest = m.taken
		m.latestText = inventory.Count(added, "new or changed line") + ", " + inventory.Count(gone, "line") + " gone"
	}
}

// relearn takes the lines of the node for known. The texts depend on the width.
func (m *model) relearn() {
	m.known = map[string]bool{}
	if m.changed == nil {
		m.changed = map[string]time.Time{}
	}
	if m.node == nil {
		return
	}
	for _, line := range m.view.Printer.Lines(m.branches()) {
		m.known[key(line)] = true
	}
}

// key identifies a line: its text, and the objects that it belongs to.
func key(line output.Line) string {
	var b strings.Builder
	for _, branch := range line.Path[:len(line.Path)-1] {
		words := strings.Fields(ansi.Strip(branch.Text))
		b.WriteString(strings.Join(words[:min(2, len(words))], " ") + "\n") // such as "disk 3"
	}
	return b.String() + ansi.Strip(line.Path[len(line.Path)-1].Text)
}

func (m *model) typed(key tea.KeyPressMsg) {
	switch key.String() {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		if runes := []rune(m.filter); len(runes) > 0 {
			m.filter = string(runes[:len(runes)-1])
		}
	default:
		m.filter += output.Printable(key.Key().Text)
	}
	m.top = 0
}

func (m *model) press(key string) tea.Cmd {
	page := max(1, m.bodyHeight()-1)
	switch key {
	case "q":
		return tea.Quit
	case "up", "k":
		m.top--
	case "down", "j":
		m.top++
	case "pgup":
		m.top -= page
	case "pgdown", "space":
		m.top += page
	case "home", "g":
		m.top, m.left = 0, 0
	case "end", "G":
		m.top = len(m.lines())
	case "left", "h":
		m.left = max(0, m.left-sideways)
	case "right", "l":
		m.left += sideways
	case "p":
		m.problemsOnly, m.top = !m.problemsOnly, 0
	case "f":
		m.unfolded, m.top = !m.unfolded, 0
		m.relearn()
	case "/":
		m.typing = true
	case "esc":
		m.filter, m.top = "", 0
	}
	m.top = max(0, min(m.top, len(m.lines())-m.bodyHeight()))
	return nil
}

func (m *model) branches() []output.Branch {
	node := *m.node
	node.Unfolded = node.Unfolded || m.unfolded || m.filter != ""
	branches := node.Tree(m.view.Printer, m.bodyWidth()).Branches
	for i := range branches { // a remedy is whole, on as many lines as it takes
		branches[i].Text = ansi.Hardwrap(branches[i].Text, max(1, m.bodyWidth()-treeWidth), true)
	}
	return branches
}

// treeWidth is how wide the lines of the tree beside a problem are.
const treeWidth = 3

// lines returns the lines of the body that are not filtered out.
func (m *model) lines() []output.Line {
	if m.node == nil {
		return nil
	}
	branches := m.branches()
	problems, healthy := []output.Branch{}, []output.Branch{}
	for _, branch := range branches {
		if hasProblem(branch) {
			problems = append(problems, branch)
		} else {
			healthy = append(healthy, branch)
		}
	}
	if m.problemsOnly {
		branches = problems
	} else {
		branches = append(problems, healthy...)
	}
	if m.filter != "" {
		branches = matching(branches, strings.ToLower(m.filter))
	}
	return m.view.Printer.Lines(branches)
}

// hasProblem reports whether a branch, or one below it, is a problem.
func hasProblem(branch output.Branch) bool {
	return strings.HasPrefix(ansi.Strip(branch.Text), "! ") || slices.ContainsFunc(branch.Branches, hasProblem)
}

// matching returns the branches that contain a text, with everything above and below them.
func matching(branches []output.Branch, text string) []output.Branch {
	var found []output.Branch
	for _, branch := range branches {
		if strings.Contains(strings.ToLower(ansi.Strip(branch.Text)), text) {
			found = append(found, branch)
			continue
		}
		if branch.Branches = matching(branch.Branches, text); len(branch.Branches) > 0 {
			found = append(found, branch)
		}
	}
	return found
}
