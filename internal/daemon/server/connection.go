package server

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// connection is what gRPC serves. Beside reading and writing, it keeps what the limits go by.
type connection struct {
	net.Conn
	limits   *limits
	endpoint string
	client   *process

	spoke   atomic.Bool  // the client has sent something
	active  atomic.Int64 // when it last did, or was accepted
	open    atomic.Int64 // calls that have no answer yet
	watches atomic.Int64
	// arriving counts the requests that the client still sends, by the tick at which they began.
	arriving [slots]atomic.Int64

	writing sync.Mutex
	wrote   atomic.Int64 // when the last write ended
	ended   atomic.Bool
}

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.ended.Load() {
		return 0, net.ErrClosed // gRPC does not see what came after GOAWAY
	}
	if n > 0 {
		c.spoke.Store(true)
		c.active.Store(int64(c.limits.now()))
		c.limits.moved(n)
		c.client.takeTurn()
	}
	return n, err
}

func (c *connection) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	n, err := c.Conn.Write(b)
	c.wrote.Store(int64(c.limits.now()))
	return n, err
}

// Close closes the connection and gives up its place; it can be called again.
func (c *connection) Close() error {
	c.ended.Store(true)
	c.limits.remove(c)
	return c.Conn.Close()
}

// arrive is called when the server waits for the rest of a request.
func (c *connection) arrive() (arrived func()) {
	slot := &c.arriving[c.limits.ticks.Load()%slots]
	slot.Add(1)
	return func() { slot.Add(-1) }
}

// end closes the connection because of a limit. It does not wait for the client.
func (c *connection) end(reason string) {
	if c.ended.Swap(true) {
		return
	}
	c.limits.remove(c)
	c.limits.note(c, reason)
	go func() {
		c.goAway(reason)
		_ = c.Close() // its client sees that
	}()
}

// goAway tells a client without calls that its connection ends, and that the server has seen nothing of what it may
// have sent meanwhile: clients of gRPC repeat that by themselves. It gives up if gRPC may be in the middle of a frame.
func (c *connection) goAway(reason string) {
	const pause, timeout = 20 * time.Millisecond, 10 * time.Millisecond
	if c.open.Load() > 0 || !c.writing.TryLock() {
		return
	}
	defer c.writing.Unlock()
	if wrote := time.Duration(c.wrote.Load()); wrote > 0 && c.limits.now()-wrote > pause {
		_ = c.SetWriteDeadline(time.Now().Add(timeout))
		_ = http2.NewFramer(c.Conn, nil).WriteGoAway(0, http2.ErrCodeNo, []byte(reason)) // best effort
	}
}
