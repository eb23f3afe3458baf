package command

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/call"
)

const (
	// silence is how long a command may be silent.
	silence = 2 * time.Second
	// eraseLine moves to the start of the line and erases it.
	eraseLine = "\r\x1b[K"
)

// meter shows on standard error what a command waits for, in one line that goes before anything
// else is printed. A nil meter shows nothing.
type meter struct {
	err   io.Writer
	now   func() time.Time
	after func(time.Duration) <-chan time.Time
	width func() int

	mu     sync.Mutex
	client *call.Client
	shown  bool
}

// watch shows what the command waits for until stop. It begins after some seconds.
func (m *meter) watch(ctx context.Context, client *call.Client) (stop func()) {
	if m == nil {
		return func() {}
	}
	m.mu.Lock()
	m.client = client
	m.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		wait := silence
		for {
			select {
			case <-ctx.Done():
				return
			case <-m.after(wait):
				wait = time.Second
				m.show(ctx)
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
		m.clear()
	}
}

// show writes the line, unless the command has ended.
func (m *meter) show(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	line := m.line()
	if ctx.Err() != nil || line == "" {
		return
	}
	if m.width != nil { // a line that wraps cannot be erased
		if text, room := []rune(line), m.width()-1; room > 0 && len(text) > room {
			line = string(text[:room-1]) + "…"
		}
	}
	_, _ = io.WriteString(m.err, eraseLine+line)
	m.shown = true
}

// line is the text, or nothing if nothing has taken long.
func (m *meter) line() string {
	pending, ok := m.client.Pending()
	if !ok {
		return ""
	}
	return fmt.Sprintf("waiting %s for %s", m.now().Sub(pending.Since).Round(time.Second), pending.What)
}

func (m *meter) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.erase()
}

func (m *meter) erase() {
	if m.shown {
		_, _ = io.WriteString(m.err, eraseLine)
		m.shown = false
	}
}

// before returns a writer that erases the line first.
func (m *meter) before(out io.Writer) io.Writer {
	if m == nil {
		return out
	}
	return clearingWriter{m, out}
}

type clearingWriter struct {
	meter *meter
	out   io.Writer
}

func (w clearingWriter) Write(b []byte) (int, error) {
	w.meter.mu.Lock()
	defer w.meter.mu.Unlock()
	w.meter.erase()
	return w.out.Write(b)
}
