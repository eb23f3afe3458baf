package server

import (
	"net"
	"sync"
	"sync/atomic"
)

// connections is a listener that remembers the connections it has accepted, so that a
// stop can close those that grpc-go itself would wait for.
type connections struct {
	net.Listener
	mu   sync.Mutex
	open map[*connection]struct{}
}

func track(listener net.Listener) *connections {
	return &connections{Listener: listener, open: map[*connection]struct{}{}}
}

// Accept returns the next connection, remembered until it is closed.
func (c *connections) Accept() (net.Conn, error) {
	raw, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &connection{Conn: raw, owner: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = struct{}{}
	return conn, nil
}

// closeSilent closes the connections that have not said enough to be HTTP/2.
func (c *connections) closeSilent() {
	c.closeIf(func(conn *connection) bool { return conn.received.Load() < greeting })
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
	received atomic.Int64 // bytes, counted only up to the greeting
}

// NetConn returns the connection underneath, whose type knows the peer's process.
func (c *connection) NetConn() net.Conn { return c.Conn }

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.received.Load() < greeting {
		c.received.Add(int64(n))
	}
	return n, err
}

func (c *connection) Close() error {
	c.owner.mu.Lock()
	delete(c.owner.open, c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}
