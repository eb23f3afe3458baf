package server

import (
	"cmp"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/pipe"
)

// connections is a listener that knows the connections it accepted. It limits their number, and on
// stop it closes those that grpc-go would wait for.
type connections struct {
	net.Listener
	most int
	mu   sync.Mutex
	open map[*connection]struct{}

	newcomers atomic.Int64  // connections that have not greeted yet
	settled   chan struct{} // receives when there is one newcomer less
}

func track(listener net.Listener, most int) *connections {
	return &connections{Listener: listener, most: most, open: map[*connection]struct{}{}, settled: make(chan struct{}, 1)}
}

const (
	// maxNewcomers is the number of connections that have not greeted, beyond which the next one
	// waits. A flood of them, each with its own goroutine, would starve the calls of others.
	maxNewcomers = 16
	// newcomerPause is the longest wait. Clients that never greet must not lock out others.
	newcomerPause = 5 * time.Millisecond
)

// awaitNewcomers waits until there are few newcomers, but at most newcomerPause.
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

// Accept returns the next connection, and tracks it until it is closed.
func (c *connections) Accept() (net.Conn, error) {
	c.awaitNewcomers()
	raw, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &connection{Conn: raw, owner: c}
	conn.pid, _ = pipe.PeerPID(raw) // asked once, for every line in the log
	conn.heard.Store(time.Now().UnixNano())
	c.newcomers.Add(1)
	c.mu.Lock()
	var surplus *connection
	if len(c.open) >= c.most {
		surplus = c.longestSilent()
		if surplus.calls.Load() > 0 {
			surplus = conn // every connection has a call: refuse the new one
		}
	}
	c.open[conn] = struct{}{}
	c.mu.Unlock()
	if surplus != nil {
		_ = surplus.Close() // its client, if there still is one, reconnects
	}
	return conn, nil
}

// longestSilent returns the connection with the least worth, of the process that has the most
// connections: a client that opens them without end replaces its own. The caller holds c.mu.
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

// closeSilent closes the connections that have not sent an HTTP/2 greeting.
func (c *connections) closeSilent() {
	c.closeIf(func(conn *connection) bool { return !conn.greeted() })
}

// greeting is the number of bytes that every HTTP/2 client sends first: the preface and the header
// of its settings.
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
		_ = conn.Close() // best effort
	}
}

// connection is an accepted connection.
type connection struct {
	net.Conn
	owner    *connections
	pid      int          // of the process at the other end; 0: unknown
	received atomic.Int64 // bytes, counted only up to the greeting
	heard    atomic.Int64 // when something was last received, in nanoseconds
	settled  atomic.Bool  // no longer a newcomer
	calls    atomic.Int64 // calls in flight
	useful   atomic.Bool  // it has had a call
}

// settle is called when the connection has greeted or is closed.
func (c *connection) settle() {
	if c.settled.Swap(true) {
		return
	}
	c.owner.newcomers.Add(-1)
	select {
	case c.owner.settled <- struct{}{}:
	default: // already signalled
	}
}

func (c *connection) greeted() bool { return c.received.Load() >= greeting }

// served is called when a call on the connection is over.
func (c *connection) served() {
	c.useful.Store(true)
	c.calls.Add(-1)
}

// worth ranks what closing the connection would lose: nothing, a greeting, an active client, or
// calls.
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

// before reports whether to close the connection before another one: if its worth is less, or equal
// and it was silent longer.
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
