package main

import (
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

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
	return streams{in: in, out: &screen{to: out}, sizes: &sizes{ctx: ctx, of: int(out.Fd())}}, func() error { return term.Restore(int(in.Fd()), before) }, nil
}

// screen passes on what csi-proxyctl draws with: text, colours, what moves the cursor, erases or scrolls, and modes for it. Nothing
// else that a terminal obeys comes from a node, such as a title, or a question that the terminal would answer as if it were typed.
type screen struct {
	to   io.Writer
	rest []byte // of a character or a sequence
}

const (
	escape = 0x1b
	// longestSequence is more than any that sets colours.
	longestSequence = 100
)

// harmless has no 3J, which erases what was there before. Its modes: wrap lines, show the cursor, second screen, mark what is pasted.
var harmless = regexp.MustCompile("^\x1b(\\[[0-9;:]*[@A-IK-MPSTXZ`abdefmrsu]|\\[[0-2]?J|\\[\\?(7|25|1049|2004)[hl]|[78DEM])$")

func (s *screen) Write(text []byte) (int, error) {
	var shown []byte
	for _, b := range text {
		shown = s.add(shown, b)
	}
	_, err := s.to.Write(shown)
	return len(text), err
}

func (s *screen) add(shown []byte, b byte) []byte {
	if b < ' ' || b == 0x7f { // ends what is not complete
		s.rest = s.rest[:0]
		switch b {
		case escape:
			s.rest = append(s.rest, b)
		case '\b', '\t', '\n', '\r':
			shown = append(shown, b)
		}
		return shown
	}
	s.rest = append(s.rest, b)
	if s.rest[0] != escape {
		if utf8.FullRune(s.rest) {
			shown = append(shown, printable(string(s.rest))...)
			s.rest = s.rest[:0]
		}
		return shown
	}
	switch kind := s.rest[1]; {
	case strings.IndexByte("]PX^_", kind) >= 0: // a text, such as a title, which a control character ends
		s.rest = s.rest[:2]
		return shown
	case len(s.rest) < longestSequence && (b < '0' || kind == '[' && (b < '@' || len(s.rest) == 2)): // there is more
		return shown
	case harmless.Match(s.rest):
		shown = append(shown, s.rest...)
	}
	s.rest = s.rest[:0]
	return shown
}

// plain returns the streams of csi-proxyctl with arguments, if it asks nothing.
func (c *cluster) plain(node string, args []string) (streams, func() error) {
	out := &lines{to: c.out, run: c.prefix(node), format: format(args)}
	errs := &lines{to: c.err, run: out.run}
	return streams{out: out, err: errs}, func() error { return both(errs.Close(), out.Close()) }
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
