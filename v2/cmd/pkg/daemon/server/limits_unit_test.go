package server

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
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
	if again, _ := l.join(t, 1); again.client != c.client {
		t.Error("the handler of a client that is gone is forgotten")
	} else {
		_ = again.Close()
	}
	c.client.running.Add(-1)
	if l.join(t, 2); len(l.processes) != 1 {
		t.Error("the process is kept")
	}
}

// TestConnection_Unread: a client that does not read takes more than one that does.
func TestConnection_Unread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := testLimits(1).join(t, 1)
		time.Sleep(time.Second)
		go func() { _, _ = c.Write([]byte("answer")) }()
		for _, want := range []bool{false, true} {
			synctest.Wait()
			if got := c.weight() > 1; got != want {
				t.Errorf("it takes much: %v", got)
			}
			time.Sleep(unreadTime + time.Second)
		}
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
