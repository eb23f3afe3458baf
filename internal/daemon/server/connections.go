package server

import (
	"cmp"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/pipe"
)

// connections is a listener that remembers the connections it has accepted, so that a
// stop can close those that grpc-go itself would wait for, and so that there are not more of
// them than the endpoint has room for.
type connections struct {
	net.Listener
	most int
	mu   sync.Mutex
	open map[*connection]struct{}

	newcomers atomic.Int64  // that have not greeted yet
	settled   chan struct{} // has something when there is one less
}

func track(listener net.Listener, most int) *connections {
	return &connections{Listener: listener, most: most, open: map[*connection]struct{}{}, settled: make(chan struct{}, 1)}
}

const (
	// maxNewcomers is how many connections may be about to greet before the next one has to
	// wait: a flood of them, each with a goroutine of its own, keeps the processor from the
	// calls of others.
	maxNewcomers = 16
	// newcomerPause is how long it waits at most. Clients that never greet must not lock
	// out those that do.
	newcomerPause = 5 * time.Millisecond
)

// awaitNewcomers returns when there is time for another connection.
func (c *connections) awaitNewcomers() {
	if c.newcomers.Load() < maxNewcomers {
		return
	}
	timer := time.NewTimer(newcomerPause)
	defer timer.Stop()
	for c.newcomers.Load() >= maxNewcomers {
		select {
		case <-c.settled:
		case <-timer.C:
			return
		}
	}
}

// Accept returns the next connection, remembered until it is closed.
func (c *connections) Accept() (net.Conn, error) {
	c.awaitNewcomers()
	raw, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &connection{Conn: raw, owner: c}
	conn.pid, _ = pipe.PeerPID(raw) // asked once: it is for every line in the log
	conn.heard.Store(time.Now().UnixNano())
	c.newcomers.Add(1)
	c.mu.Lock()
	var surplus *connection
	if len(c.open) >= c.most {
		surplus = c.longestSilent()
		if surplus.calls.Load() > 0 {
			surplus = conn // all are at work, and a call is not given up for somebody who only knocks
		}
	}
	c.open[conn] = struct{}{}
	c.mu.Unlock()
	if surplus != nil {
		_ = surplus.Close() // its client, if it is still there, connects again
	}
	return conn, nil
}

// longestSilent is the connection that has the least to lose, of the process that has most of
// them: whoever opens connections without end replaces his own. c.mu is held.
func (c *connections) longestSilent() *connection {
	byProcess, most := map[int]int{}, 0
	for conn := range c.open {
		byProcess[conn.pid]++
		most = max(most, byProcess[conn.pid])
	}
	var longest *connection
	for conn := range c.open {
		if byProcess[conn.pid] == most && (longest == nil || conn.before(longest)) {
			longest = conn
		}
	}
	return longest
}

// closeSilent closes the connections that have not said enough to be HTTP/2.
func (c *connections) closeSilent() {
	c.closeIf(func(conn *connection) bool { return !conn.greeted() })
}

// greeting is how many bytes an HTTP/2 client sends at least before anything else: the
// preface and the header of its settings.
const greeting = int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + 9)

func (c *connections) closeAll() {
	c.closeIf(func(*connection) bool { return true })
}

func (c *connections) closeIf(match func(*connection) bool) {
	c.mu.Lock()
	var matched []*connection
	for conn := range c.open {
		if match(conn) {
			matched = append(matched, conn)
		}
	}
	c.mu.Unlock()
	for _, conn := range matched {
		_ = conn.Close() // we are done with it either way
	}
}

// connection is an accepted connection that knows whether its client ever greeted.
type connection struct {
	net.Conn
	owner    *connections
	pid      int          // of the process at the other end; 0: unknown
	received atomic.Int64 // bytes, counted only up to the greeting
	heard    atomic.Int64 // when something was last received, in nanoseconds
	settled  atomic.Bool  // it is no newcomer any more
	calls    atomic.Int64 // that are being carried out
	useful   atomic.Bool  // there was one
}

// settle is called when the connection has greeted, or was closed.
func (c *connection) settle() {
	if c.settled.Swap(true) {
		return
	}
	c.owner.newcomers.Add(-1)
	select {
	case c.owner.settled <- struct{}{}:
	default: // whoever waits knows already
	}
}

func (c *connection) greeted() bool { return c.received.Load() >= greeting }

// served is called when a call on the connection is over.
func (c *connection) served() {
	c.useful.Store(true)
	c.calls.Add(-1)
}

// worth is what would be lost with the connection: nothing, a greeting, a client that comes
// back, or calls.
func (c *connection) worth() int {
	switch {
	case c.calls.Load() > 0:
		return 3
	case c.useful.Load():
		return 2
	case c.greeted():
		return 1
	default:
		return 0
	}
}

// before reports whether the connection is to be closed before another one: if it is worth
// less, or as much and was heard of longer ago.
func (c *connection) before(other *connection) bool {
	return cmp.Or(cmp.Compare(c.worth(), other.worth()), cmp.Compare(c.heard.Load(), other.heard.Load())) < 0
}

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.Store(time.Now().UnixNano())
		if !c.greeted() && c.received.Add(int64(n)) >= greeting {
			c.settle()
		}
	}
	return n, err
}

func (c *connection) Close() error {
	c.settle()
	c.owner.mu.Lock()
	delete(c.owner.open, c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}
