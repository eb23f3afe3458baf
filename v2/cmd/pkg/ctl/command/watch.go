package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/live"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
)

func (a *app) watch() *cobra.Command {
	var v view
	var interval time.Duration
	var count int
	c := a.leaf(page{
		use:   "watch",
		short: "Show the node and keep it current",
		long: `Show 'csi-proxyctl node' on the whole terminal and keep it current: problems first, the
counts and the time always visible, lines that changed in the last 10 seconds marked with *.

Keys: arrows, PgUp, PgDn, Home and End scroll; / filters, Esc ends the filter; p shows only
problems; f unfolds what has no problems; q quits.

While the daemon restarts, watch shows the error and continues. --timeout limits each look.
Without a terminal, and with -o json, it prints the node again and again.`,
		example: "  csi-proxyctl watch\n  csi-proxyctl watch --interval 10s\n  csi-proxyctl watch -o json --count 3",
	}, 0, nil)
	c.RunE = func(c *cobra.Command, _ []string) error {
		a.started = true
		if interval <= 0 {
			return usagef("--interval must be positive, got %s", interval)
		}
		if a.env.Terminal && a.width() > 0 && (a.format == output.Table || a.format == output.Wide) {
			return a.watchLive(c.Context(), &v, interval, count)
		}
		return a.repeat(c.Context(), &v, interval, count)
	}
	v.flags(c)
	c.Flags().DurationVar(&interval, "interval", 2*time.Second, "pause between updates")
	c.Flags().IntVar(&count, "count", 0, "number of updates; 0 means no limit")
	return c
}

// watchLive shows the node on the whole terminal. If --count ends it, the last description stays.
func (a *app) watchLive(ctx context.Context, v *view, interval time.Duration, count int) error {
	a.meter = nil // the view has the screen
	s := a.session()
	defer s.client.Close()
	printer := *s.Printer
	view := live.View{
		Out: a.env.Out, Printer: &printer, Interval: interval, Count: count, Now: time.Now, After: a.env.After,
		Look: func(ctx context.Context) (inventory.Node, error) {
			node, err := a.lookOnce(ctx, v)
			if err != nil {
				err = errors.New(sentence(ctx, err))
			}
			return node, err
		},
	}
	if a.env.CanAsk {
		view.In = a.env.In
	}
	last, err := view.Run(ctx)
	if err != nil || last == nil || count == 0 {
		return err
	}
	return s.Value(nil, func() string { return last.Draw(s.Printer, a.width()) })
}

// lookOnce describes the node within --timeout, over connections of its own, because the server
// may have restarted.
func (a *app) lookOnce(ctx context.Context, v *view) (node inventory.Node, err error) {
	s := a.session()
	defer s.client.Close()
	err = a.bounded(ctx, func(ctx context.Context) error {
		node, err = v.look(ctx, s)
		return err
	})
	return node, err
}

// repeat prints the node again and again.
func (a *app) repeat(ctx context.Context, v *view, interval time.Duration, count int) error {
	s := a.session()
	defer s.client.Close()
	for shown := 1; ; shown++ {
		node, err := a.lookOnce(ctx, v)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			_, err = fmt.Fprintf(a.env.Err, "%s: %s\n", name, sentence(ctx, err))
		default:
			err = a.draw(s, node)
		}
		if err != nil {
			return err
		}
		if shown == count {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.env.After(interval):
		}
	}
}
