package server

import (
	"net"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/pipe"
)

// connections is a listener that hands its connections to gRPC when they have greeted. It limits their
// number, and on stop it closes those that grpc-go would wait for.
type connections struct {
	net.Listener
	name    string // of the endpoint
	crowd   *crowd
	places  *places
	timeout time.Duration // for the greeting

	accepting bool // acceptAll runs
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
	c := &connections{
		Listener: listener, name: name, crowd: crowd, places: newPlaces(cfg.MaxConnections), timeout: cfg.ConnectionTimeout,
		accepted: make(chan accepted), closed: make(chan struct{}),
	}
	crowd.add(c.places)
	return c
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

// acceptAll accepts connections until the listener is closed. It never waits for a client: those that are
// not accepted yet would be refused by the system. gRPC decides what to do about errors.
func (c *connections) acceptAll() {
	for {
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
	pid, _ := pipe.PeerPID(raw)
	conn := newConnection(raw, c, pid, time.Now())
	if loser, reason := conn.enter(); loser != nil {
		loser.end(reason)
	}
	if conn.ended.Load() == nil {
		go c.welcome(conn)
	}
	return nil
}

// welcome passes on a connection that greets.
func (c *connections) welcome(conn *connection) {
	if err := conn.awaitGreeting(c.timeout); err != nil {
		_ = conn.Close() // its client has left, or has nothing to say
		return
	}
	if wait := c.crowd.wait(conn.pid); wait > 0 {
		conn.client.waiting.Add(1)
		select {
		case <-time.After(wait):
		case <-conn.over:
		case <-c.closed:
		}
		conn.client.waiting.Add(-1)
	}
	c.crowd.greet(conn)
	if conn.ended.Load() != nil {
		return // another client needs its place
	}
	select {
	case c.accepted <- accepted{conn: conn}:
	case <-c.closed:
		_ = conn.Close()
	}
}

// leave gives up a connection's place and what it holds; it can be called again.
func (c *connections) leave(conn *connection) {
	c.places.leave(conn)
	c.crowd.leave(conn)
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
	for _, conn := range c.places.all() {
		if match(conn) {
			_ = conn.Close() // best effort
		}
	}
}
