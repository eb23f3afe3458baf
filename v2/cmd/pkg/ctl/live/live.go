// Package live shows a node on the whole terminal and keeps it current.
package live

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
)

// View is what to show, and where.
type View struct {
	In      io.Reader // keys; nil: none
	Out     io.Writer // a terminal
	Printer *output.Printer
	// Look describes the node. Run shows its error in one line and goes on.
	Look func(ctx context.Context) (inventory.Node, error)
	// Interval is the pause between two looks.
	Interval time.Duration
	// Count is after how many looks Run ends; 0 means never.
	Count int
	// Now and After are those of package time, except in tests.
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
}

// ErrInterrupted says that the user pressed Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// Frame returns what a terminal of a size shows at first, as text with colours.
func (v View) Frame(node inventory.Node, width, height int) string {
	m := &model{view: v, width: width, height: height}
	m.learn(looked{node: node})
	return m.View().Content
}

// Run shows the node until the user quits. It returns the last description, or nil if there is none.
func (v View) Run(ctx context.Context) (*inventory.Node, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the look that is under way
	options := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithInput(v.In), tea.WithOutput(v.Out),
		tea.WithoutSignalHandler(), // ctx ends with the signal
	}
	final, err := tea.NewProgram(&model{view: v, ctx: ctx}, options...).Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	m := final.(*model)
	if m.interrupted {
		return m.node, ErrInterrupted
	}
	return m.node, nil
}
