package main

import (
	"context"
	"os"
	"time"

	"golang.org/x/term"
	"k8s.io/client-go/tools/remotecommand"
)

// terminal returns the streams of a program that asks questions, and what ends it. Without a terminal on both sides, standard input
// is passed on as it is.
func (c *cluster) terminal(ctx context.Context, node string, args []string) (streams, func() error, error) {
	in, inOK := c.in.(*os.File)
	out, outOK := c.out.(*os.File)
	if !inOK || !outOK || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		s, done := c.plain(node, args)
		s.in = c.in
		return s, done, nil
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return streams{}, nil, err
	}
	return streams{in: in, out: out, sizes: &sizes{ctx: ctx, of: int(out.Fd())}}, func() error { return term.Restore(int(in.Fd()), before) }, nil
}

// plain returns the streams of csi-proxyctl with arguments, if it asks nothing.
func (c *cluster) plain(node string, args []string) (streams, func() error) {
	out := &lines{to: c.out, run: c.prefix(node), format: format(args)}
	errs := &lines{to: c.err, run: out.run}
	return streams{out: out, err: errs}, func() error {
		if err := errs.Close(); err != nil {
			return err
		}
		return out.Close()
	}
}

// sizes are those that the terminal has here.
type sizes struct {
	ctx  context.Context //nolint:containedctx // Next has none
	of   int             // its descriptor: a File gives it to one goroutine only
	last remotecommand.TerminalSize
}

// Next implements remotecommand.TerminalSizeQueue. Windows has no signal for a new size.
func (s *sizes) Next() *remotecommand.TerminalSize {
	for {
		width, height, err := term.GetSize(s.of)
		if err != nil {
			return nil
		}
		if size := (remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)}); size != s.last {
			s.last = size
			return &size
		}
		select {
		case <-s.ctx.Done():
			return nil
		case <-time.After(250 * time.Millisecond):
		}
	}
}
