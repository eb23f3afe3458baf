package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) watch() *cobra.Command {
	var paths []string
	var interval time.Duration
	var count int
	c := a.leaf(page{
		use:   "watch",
		short: "Show the node repeatedly",
		long: `Repeat 'csi-proxyctl node' until interrupted. While the daemon restarts, watch shows the
error and continues. --timeout limits each request.`,
		example: "  csi-proxyctl watch\n  csi-proxyctl watch --interval 10s",
	}, 0, nil)
	c.RunE = func(c *cobra.Command, _ []string) error {
		a.started = true
		if interval <= 0 {
			return usagef("--interval must be positive, got %s", interval)
		}
		for shown := 1; ; shown++ {
			if err := a.refresh(c.Context(), paths); err != nil {
				return err
			}
			if shown == count {
				return nil
			}
			select {
			case <-c.Context().Done():
				return c.Context().Err()
			case <-a.env.After(interval):
			}
		}
	}
	c.Flags().StringArrayVar(&paths, "path", nil, pathsHelp)
	c.Flags().DurationVar(&interval, "interval", 2*time.Second, "pause between updates")
	c.Flags().IntVar(&count, "count", 0, "number of updates; 0 means no limit")
	return c
}

// clearScreen moves to the top left corner and clears the screen.
const clearScreen = "\x1b[H\x1b[2J"

// refresh shows the node once, for watch, or the error if it does not answer.
func (a *app) refresh(ctx context.Context, paths []string) error {
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if a.timeout > 0 {
		bounded, cancel = context.WithTimeout(ctx, a.timeout)
	}
	defer cancel()
	s := a.session()
	defer s.client.Close()
	node, err := s.source.Node(bounded, paths, false)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if a.env.Terminal && !a.format.ForScripts() {
		_, _ = io.WriteString(a.env.Out, clearScreen)
	}
	if err != nil {
		_, err = fmt.Fprintf(a.env.Err, "%s: %s\n", name, sentence(ctx, err))
		return err
	}
	return a.draw(s, node)
}
