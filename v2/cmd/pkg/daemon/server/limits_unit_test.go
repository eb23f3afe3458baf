package server

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// testLimits has room for a number of connections.
func testLimits(connections int) *limits {
	return newLimits(klog.Background(), Config{MaxConnections: connections, MaxMemory: 1 << 40})
}

// join adds a connection of a process, and reports whether it has a place.
func (l *limits) join(t *testing.T, pid int) (c *connection, ok bool) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	c = &connection{Conn: ours, limits: l}
	return c, l.admit(c, pid)
}

// TestAdmit_Most: the process with most connections loses one, the one that was silent for longest. Processes with few
// are equal.
func TestAdmit_Most(t *testing.T) {
	l := testLimits(60)
	few, _ := l.join(t, 1)
	few.active.Store(-1) // it is silent for longer than any other
	var many []*connection
	for i := range 59 {
		c, _ := l.join(t, 2)
		c.active.Store(int64(i) + 1)
		many = append(many, c)
	}
	many[0].active.Store(1000)
	for i := range 40 {
		if _, ok := l.join(t, 3+i); !ok {
			t.Fatalf("process %d has no place", 3+i)
		}
		if len(l.open) > 60 {
			t.Fatalf("%d connections", len(l.open))
		}
	}
	if few.ended.Load() || many[0].ended.Load() || !many[1].ended.Load() {
		t.Errorf("ended: %v, %v, %v", few.ended.Load(), many[0].ended.Load(), many[1].ended.Load())
	}
	for range 4 {
		l.join(t, 50)
	}
	if !few.ended.Load() {
		t.Error("a process with few connections keeps the idlest of all")
	}
}

// TestAdmit_Calls: a connection with calls goes last, and only for a process that has fewer.
func TestAdmit_Calls(t *testing.T) {
	l := testLimits(20)
	var busy []*connection
	for range 20 {
		c, _ := l.join(t, 1)
		c.open.Add(1)
		busy = append(busy, c)
	}
	if _, ok := l.join(t, 1); ok {
		t.Error("a process ends its own call with a connection")
	}
	if _, ok := l.join(t, 2); !ok {
		t.Error("a process has all places for itself")
	}
	busy[7].open.Add(-1)
	l.join(t, 3)
	if !busy[7].ended.Load() {
		t.Error("another one than the one without calls had to go")
	}
}

// TestTick_Suspended: however long the server is suspended, a request has its time to arrive. The clock of the system
// has no say.
func TestTick_Suspended(t *testing.T) {
	l := testLimits(2)
	l.memory = 1 // is in use
	c, _ := l.join(t, 1)
	second, _ := l.join(t, 2)
	second.arrive()
	arrived := c.arrive()
	l.start = l.start.Add(-time.Hour)
	for range arrivalTicks {
		l.tick()
	}
	if c.ended.Load() {
		t.Fatalf("the connection has ended within %d ticks", arrivalTicks)
	}
	l.tick()
	if !c.ended.Load() || !second.ended.Load() {
		t.Errorf("connections have ended: %v, %v", c.ended.Load(), second.ended.Load())
	}
	arrived()
	other, _ := l.join(t, 1)
	other.arrive()()
	for range 3 * arrivalTicks {
		l.tick()
	}
	if other.ended.Load() {
		t.Error("a connection has ended whose request has arrived")
	}
}

// TestTick_Plenty: while memory is plenty, a request has all the time of the world.
func TestTick_Plenty(t *testing.T) {
	l := testLimits(1)
	c, _ := l.join(t, 1)
	c.arrive()
	for range 5 * arrivalTicks {
		l.tick()
	}
	if c.ended.Load() {
		t.Error("the connection has ended")
	}
}

// TestProcess_Begin: requests that have ended do not count, unless their handlers still run.
func TestProcess_Begin(t *testing.T) {
	var p process
	for range 10 * maxRequests {
		done, cancel := context.WithCancel(t.Context())
		if !p.begin(done) {
			t.Fatalf("with %d requests in the list, one is refused", len(p.requests))
		}
		cancel()
	}
	ctx, end := context.WithCancel(t.Context())
	for i := range maxRequests {
		if !p.begin(ctx) {
			t.Fatalf("request %d is refused", i)
		}
	}
	for range 3 {
		if p.begin(t.Context()) {
			t.Errorf("%d requests are not enough", maxRequests)
		}
	}
	end()
	if !p.begin(ctx) {
		t.Error("requests that have ended count")
	}
	p.running.Add(maxRequests)
	if p.begin(ctx) {
		t.Errorf("%d handlers are not enough", maxRequests)
	}
}

// TestLimits_Gone: a process without connections counts as long as its handlers run.
func TestLimits_Gone(t *testing.T) {
	l := testLimits(1)
	c, _ := l.join(t, 1)
	c.client.running.Add(1)
	_ = c.Close()
	l.tick()
	if again, _ := l.join(t, 1); again.client != c.client {
		t.Error("the handler of a client that is gone is forgotten")
	} else {
		_ = again.Close()
	}
	c.client.running.Add(-1)
	l.tick()
	if len(l.processes) > 0 {
		t.Error("the process is kept")
	}
}

// TestConnection_Unread: a client that does not read for more than a tick takes more than one that does.
func TestConnection_Unread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testLimits(1)
		c, _ := l.join(t, 1)
		go func() { _, _ = c.Write([]byte("answer")) }()
		synctest.Wait()
		for tick := range 3 {
			if got, want := c.weight() > 1, tick == 2; got != want {
				t.Errorf("after %d ticks, it takes much: %v", tick, got)
			}
			l.tick()
		}
	})
}

// TestConnection_End: a client without calls learns that its connection ends and that it is not to blame. What it sent
// meanwhile is not seen, as documented.
func TestConnection_End(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testLimits(1)
		ours, theirs := net.Pipe()
		c := &connection{Conn: ours, limits: l}
		l.admit(c, 1)
		time.Sleep(time.Second)
		go func() { _ = http2.NewFramer(c, nil).WriteSettings() }()
		client := http2.NewFramer(io.Discard, theirs)
		if _, err := client.ReadFrame(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		read := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 10))
			read <- err
		}()
		synctest.Wait()
		c.end(reasonConnections)
		go func() { _, _ = theirs.Write([]byte("request")) }()
		if err := <-read; err == nil {
			t.Error("the server has seen what came after the end")
		}
		frame, err := client.ReadFrame()
		require.NoError(t, err)
		if away, ok := frame.(*http2.GoAwayFrame); !ok || string(away.DebugData()) != reasonConnections || away.ErrCode != http2.ErrCodeNo || away.LastStreamID != 0 {
			t.Errorf("got %v", frame)
		}
		if _, err := client.ReadFrame(); err == nil {
			t.Error("the connection is still open")
		}
		theirs.Close()
	})
}

// observed counts what an observer sees.
type observed struct {
	Observer
	mu              sync.Mutex
	open, limitsMet int
}

func (o *observed) ConnectionOpened(string)     { o.count(1, 0) }
func (o *observed) ConnectionClosed(string)     { o.count(-1, 0) }
func (o *observed) LimitReached(string, string) { o.count(0, 1) }

func (o *observed) count(open, limitsMet int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open += open
	o.limitsMet += limitsMet
}

// TestNote: the metrics have each limit that was reached, and the log a line a minute.
func TestNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		o := &observed{}
		l := newLimits(logger, Config{MaxConnections: 2, MaxMemory: 1 << 40, Observer: o})
		for minute := range 3 {
			for range 10 {
				l.join(t, 1)
			}
			synctest.Wait()
			if got := strings.Count(logger.GetSink().(ktesting.Underlier).GetBuffer().String(), "A client has reached a limit"); got != minute+1 {
				t.Errorf("minute %d: %d lines", minute, got)
			}
			time.Sleep(notePeriod + time.Second)
		}
		if o.open != 2 || o.limitsMet != 28 {
			t.Errorf("%d connections are open, and %d limits were reached", o.open, o.limitsMet)
		}
	})
}

// TestLimits_Monotonic: what limits remember, and for how long, does not depend on the clock of the machine, which can
// be set: Go measures from a time with a monotonic reading.
func TestLimits_Monotonic(t *testing.T) {
	if start := newLimits(klog.Background(), Config{}).start.String(); !strings.Contains(start, " m=") {
		t.Errorf("limits begin at %s, which a step of the clock moves", start)
	}
}
