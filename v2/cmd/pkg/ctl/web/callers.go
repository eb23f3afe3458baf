package web

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// callers are the open connections, at most maxConnections. One more displaces the oldest that has not shown the token:
// every user of the machine can open connections, and those that say nothing would keep others waiting.
type callers struct {
	mu  sync.Mutex
	all []caller // the oldest first
}

type caller struct {
	conn    net.Conn
	trusted bool // has shown the token
}

// callerKey is where the context of a request has its connection.
type callerKey struct{}

// changed is called by net/http.
func (c *callers) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.all = append(c.all, caller{conn: conn})
		if len(c.all) <= maxConnections {
			return
		}
		if i := slices.IndexFunc(c.all, func(other caller) bool { return !other.trusted }); i >= 0 { // or the new one
			c.all[i].conn.Close()
			c.all = slices.Delete(c.all, i, i+1)
		}
	case http.StateClosed, http.StateHijacked:
		c.all = slices.DeleteFunc(c.all, func(other caller) bool { return other.conn == conn })
	default:
	}
}

// trust keeps a connection whose request had the token.
func (c *callers) trust(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.all {
		if c.all[i].conn == conn {
			c.all[i].trusted = true
		}
	}
}
