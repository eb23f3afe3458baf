package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/web"
)

func (a *app) web() *cobra.Command {
	var listen string
	var interval time.Duration
	var v view
	c := a.leaf(page{
		use:   "web",
		short: "Serve the node as a web page that updates itself, on this machine only",
		long: `Serve the page of 'csi-proxyctl node -o html' on a loopback address and print its address.
The page updates itself. It cannot change the node.

The address contains a random token. Programs of other users on this machine need it to read the
page, so keep it to yourself. To reach the page from another machine, use a tunnel such as
'ssh -L 8080:127.0.0.1:8080 node', and --listen 8080.

The command ends with Ctrl-C and with its terminal. If standard input is not a terminal, it also
ends when standard input ends. --timeout limits each description of the node. While the page is
open nowhere, the node is not asked.`,
		example: `  csi-proxyctl web
  csi-proxyctl web --listen 8080 --interval 10s`,
	}, 0, nil)
	c.RunE = func(c *cobra.Command, _ []string) error {
		a.started = true
		if interval <= 0 {
			return usagef("--interval must be positive, got %s", interval)
		}
		return a.serveWeb(c.Context(), listen, &web.Server{
			Interval: interval, Now: time.Now, After: a.env.After,
			Describe: func(ctx context.Context) (node inventory.Node, err error) {
				s := a.session()
				defer s.client.Close()
				err = a.bounded(ctx, func(ctx context.Context) error {
					node, err = v.look(ctx, s)
					return err
				})
				if err != nil && ctx.Err() == nil {
					err = describeError{err, sentence(ctx, err)}
				}
				return node, err
			},
		})
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "loopback address and port, or only a port; port 0 means any that is free")
	c.Flags().DurationVar(&interval, "interval", 2*time.Second, "pause between updates")
	v.flags(c)
	return c
}

// describeError is an error that the page shows as the command would.
type describeError struct {
	error
	text string
}

func (e describeError) Error() string { return e.text }
func (e describeError) Unwrap() error { return e.error }

func (a *app) serveWeb(ctx context.Context, address string, server *web.Server) error {
	address, err := web.Loopback(address)
	if err != nil {
		return usagef("--listen: %w", err)
	}
	server.Prepare()
	started := make(chan error, 1)
	go func() { started <- server.Start(ctx) }()
	wait := func(limit <-chan time.Time) (bool, error) {
		select {
		case err := <-started:
			if d, ok := errors.AsType[describeError](err); ok {
				err = d.error
			}
			return true, err
		case <-limit:
			return false, nil
		}
	}
	// A node in trouble takes seconds to describe: meanwhile the user can open the page, which waits.
	ready, err := wait(a.env.After(time.Second))
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.env.Out, server.Address(listener)); err != nil {
		return err
	}
	fmt.Fprintf(a.env.Err, "%s: open this address in a browser; press Ctrl-C to end\n", name)
	if !ready {
		if _, err := wait(nil); err != nil {
			return err
		}
	}
	serving, end := context.WithCancel(ctx)
	defer end()
	if a.env.ReadSecret == nil { // not a terminal, which ends us by a signal
		go func() {
			_, _ = io.Copy(io.Discard, a.env.In)
			end()
		}()
	}
	return server.Serve(serving, listener)
}
