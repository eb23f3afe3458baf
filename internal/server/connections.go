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

// closeSilent closes the connections on which no byte has arrived yet.
func (c *connections) closeSilent() {
	c.closeIf(func(conn *connection) bool { return !conn.spoke.Load() })
}

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

// connection is an accepted connection that knows whether its client ever spoke.
type connection struct {
	net.Conn
	owner *connections
	spoke atomic.Bool
}

// NetConn returns the connection underneath, whose type knows the peer's process.
func (c *connection) NetConn() net.Conn { return c.Conn }

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.spoke.Load() {
		c.spoke.Store(true)
	}
	return n, err
}

func (c *connection) Close() error {
	c.owner.mu.Lock()
	delete(c.owner.open, c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}
