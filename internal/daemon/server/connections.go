package server

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/pipe"
)

// connections is a listener that hands its connections to gRPC when they have greeted. It limits their
// number, and on stop it closes those that grpc-go would wait for.
type connections struct {
	net.Listener
	name    string // of the endpoint
	crowd   *crowd
	most    int
	count   int           // of open connections; the crowd's mutex protects it
	timeout time.Duration // for the greeting

	newcomers atomic.Int64  // connections that have not greeted yet
	settled   chan struct{} // receives when there is one newcomer less
	accepting bool          // acceptAll runs
	accepted  chan accepted
	closed    chan struct{}
	close     sync.Once
}

// accepted is the result of an Accept.
type accepted struct {
	conn *connection
	err  error
}

func track(listener net.Listener, name string, cfg Config, crowd *crowd) *connections {
	return &connections{
		Listener: listener, name: name, crowd: crowd, most: cfg.MaxConnections, timeout: cfg.ConnectionTimeout,
		settled: make(chan struct{}, 1), accepted: make(chan accepted), closed: make(chan struct{}),
	}
}

const (
	// maxNewcomers is the number of connections that have not greeted. Beyond it the next one waits,
	// or replaces another one.
	maxNewcomers = 256
	// newcomerPause is the longest wait for one newcomer less.
	newcomerPause = 5 * time.Millisecond
	// newcomerGrace is the time in which no newcomer is replaced.
	newcomerGrace = 50 * time.Millisecond
)

// makeRoom waits until there are few newcomers. If they are silent, one has to go: clients that never
// greet must not lock out others.
func (c *connections) makeRoom() {
	for c.newcomers.Load() >= maxNewcomers {
		oldest := c.crowd.longestSilent(c)
		if oldest == nil {
			return
		}
		if time.Since(time.Unix(0, oldest.heard.Load())) >= newcomerGrace {
			oldest.end(reasonSilent)
			return
		}
		timer := time.NewTimer(newcomerPause)
		select {
		case <-c.settled:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Accept returns the next connection that has greeted. It is called by one goroutine.
func (c *connections) Accept() (net.Conn, error) {
	// The first connection uses the caller's goroutine, so that an endpoint without clients needs no
	// other.
	if !c.accepting {
		if err := c.acceptOne(); err != nil {
			return nil, err
		}
		c.accepting = true
		go c.acceptAll()
	}
	select {
	case next := <-c.accepted:
		if next.err != nil {
			return nil, next.err
		}
		return next.conn, nil
	case <-c.closed:
		return nil, net.ErrClosed
	}
}

// acceptAll accepts connections until the listener is closed. gRPC decides what to do about errors.
func (c *connections) acceptAll() {
	for {
		c.makeRoom()
		if err := c.acceptOne(); err != nil {
			select {
			case c.accepted <- accepted{err: err}:
			case <-c.closed:
				return
			}
		}
	}
}

// acceptOne accepts a connection, and makes another one go if there are too many.
func (c *connections) acceptOne() error {
	raw, err := c.Listener.Accept()
	if err != nil {
		return err
	}
	conn := &connection{Conn: raw, owner: c, preface: len(http2.ClientPreface)}
	conn.pid, _ = pipe.PeerPID(raw)
	conn.heard.Store(time.Now().UnixNano())
	if surplus, reason := c.crowd.enter(conn); surplus != nil {
		surplus.end(reason)
		if surplus == conn {
			return nil
		}
	}
	c.newcomers.Add(1)
	go c.welcome(conn)
	return nil
}

// welcome passes on a connection that greets.
func (c *connections) welcome(conn *connection) {
	err := conn.awaitGreeting(c.timeout)
	if wait := c.crowd.wait(conn.pid); err == nil && wait > 0 {
		select {
		case <-time.After(wait):
		case <-c.closed:
		}
	}
	c.newcomers.Add(-1)
	select {
	case c.settled <- struct{}{}:
	default: // already signalled
	}
	if err != nil {
		_ = conn.Close() // its client has left, or has nothing to say
		return
	}
	c.crowd.greet(conn)
	select {
	case c.accepted <- accepted{conn: conn}:
	case <-c.closed:
		_ = conn.Close()
	}
}

// Close stops listening. Connections that gRPC has accepted stay open.
func (c *connections) Close() error {
	c.close.Do(func() { close(c.closed) })
	err := c.Listener.Close()
	c.closeSilent()
	return err
}

// closeSilent closes the connections that have not sent an HTTP/2 greeting.
func (c *connections) closeSilent() {
	c.closeIf(func(conn *connection) bool { return !conn.greeted() })
}

func (c *connections) closeAll() {
	c.closeIf(func(*connection) bool { return true })
}

func (c *connections) closeIf(match func(*connection) bool) {
	for _, conn := range c.crowd.of(c) {
		if match(conn) {
			_ = conn.Close() // best effort
		}
	}
}
