//go:build unix

package command_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// fakeClock is a clock that tests set.
type fakeClock struct {
	mu      sync.Mutex
	now     time.Time
	waiters []waiter
	waiting chan struct{} // receives a value when something begins to wait
}

type waiter struct {
	at   time.Time
	then chan time.Time
}

func newFakeClock() *fakeClock {
	return &fakeClock{now: time.Unix(0, 0), waiting: make(chan struct{}, 100)}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := waiter{c.now.Add(d), make(chan time.Time, 1)}
	c.waiters = append(c.waiters, w)
	c.waiting <- struct{}{}
	return w.then
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	left := c.waiters[:0]
	for _, w := range c.waiters {
		if w.at.After(c.now) {
			left = append(left, w)
		} else {
			w.then <- c.now
		}
	}
	c.waiters = left
}

// sharedOutput is a terminal with both outputs of a program.
type sharedOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *sharedOutput) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *sharedOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// slowRun is a command that runs while the test sets its clock.
type slowRun struct {
	clock *fakeClock
	out   *sharedOutput
	done  chan int
}

func startSlow(ctx context.Context, n *node, term string, args ...string) *slowRun {
	return startSlowIn(ctx, n, term, 0, args...)
}

func startSlowIn(ctx context.Context, n *node, term string, width int, args ...string) *slowRun {
	r := &slowRun{newFakeClock(), &sharedOutput{}, make(chan int, 1)}
	go func() {
		r.done <- command.Run(ctx, append([]string{"--endpoint-dir", n.dir}, args...), command.Environment{
			ErrWidth: func() int { return width },
			In:       strings.NewReader(""), Out: r.out, Err: r.out, ErrTerminal: true, Now: r.clock.Now, After: r.clock.After,
			Getenv: func(name string) string { return map[string]string{"TERM": term}[name] },
		})
	}()
	return r
}

// advanceUntil lets seconds pass until the output has a text.
func (r *slowRun) advanceUntil(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(r.out.String(), text) {
		select {
		case <-r.clock.waiting:
			r.clock.advance(2 * time.Second)
		case code := <-r.done:
			r.done <- code
			if !strings.Contains(r.out.String(), text) {
				t.Fatalf("it has ended without %q:\n%q", text, r.out)
			}
		}
	}
}

// TestProgress_NamesTheDisk: a command that waits says for what, before its result, and leaves no
// trace on the terminal.
func TestProgress_NamesTheDisk(t *testing.T) {
	n := startNode(t, winsim.Default())
	for args, want := range map[string]struct{ waits, result string }{
		"disk partition 3": {" for disk 3 (PartitionDisk)", "partitioned"},
		"disk list":        {" for disks and volumes", "WINSIM0003"},
	} {
		t.Run(args, func(t *testing.T) {
			require.NoError(t, n.emulated.HangDisk(3))
			r := startSlow(t.Context(), n, "xterm", strings.Fields(args)...)
			r.advanceUntil(t, want.waits)
			if strings.Contains(r.out.String(), want.result) {
				t.Errorf("the result came first: %q", r.out)
			}
			require.NoError(t, n.emulated.HealDisk(3))
			code := <-r.done
			before, after, _ := strings.Cut(r.out.String(), want.result)
			if last := strings.LastIndex(before, "\r\x1b[K"); code != command.ExitOK || strings.Contains(before[last:], "waiting") || strings.Contains(after, "waiting") {
				t.Errorf("exit code %d, output %q", code, r.out)
			}
		})
	}
}

// TestProgress_NarrowTerminal: the line never wraps, because only one line can be erased.
func TestProgress_NarrowTerminal(t *testing.T) {
	n := startNode(t, winsim.Default())
	require.NoError(t, n.emulated.HangDisk(3))
	const narrow = 24
	r := startSlowIn(t.Context(), n, "xterm", narrow, "disk", "partition", "3")
	r.advanceUntil(t, "…")
	require.NoError(t, n.emulated.HealDisk(3))
	<-r.done
	for line := range strings.SplitSeq(r.out.String(), "\r\x1b[K") {
		if strings.Contains(line, "waiting") && utf8.RuneCountInString(line) >= narrow {
			t.Errorf("%q has %d characters, want fewer than %d", line, utf8.RuneCountInString(line), narrow)
		}
	}
}

// TestProgress_PlainOutput: what is not a capable terminal gets no progress.
func TestProgress_PlainOutput(t *testing.T) {
	n := startNode(t, winsim.Default())
	require.NoError(t, n.emulated.HangDisk(3))
	// The meter would wait on the clock of the test, which nothing sets.
	r := startSlow(t.Context(), n, "dumb", "disk", "partition", "3", "--timeout", "300ms")
	if code := <-r.done; code != command.ExitFailure || len(r.clock.waiting) > 0 || strings.Contains(r.out.String(), "\x1b") {
		t.Errorf("exit code %d, %q", code, r.out)
	}
}

// TestTimeout_NamesTheDisk: the error of a call that took too long names the object.
func TestTimeout_NamesTheDisk(t *testing.T) {
	n := startNode(t, winsim.Default())
	require.NoError(t, n.emulated.HangDisk(3))
	r := run(t.Context(), n.dir, "", "disk", "partition", "3", "--timeout", "300ms")
	const want = "csi-proxyctl: PartitionDisk: disk 3 did not answer in time (DeadlineExceeded); run 'csi-proxyctl node' to see what does not answer, or increase --timeout\n"
	if r.code != command.ExitFailure || r.err != want {
		t.Errorf("got %+v, want %s", r, want)
	}
}
