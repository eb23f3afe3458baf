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
	active  atomic.Int64 // when it last did, was accepted, or a call ended
	open    atomic.Int64 // calls that have no answer yet
	watches atomic.Int64
	// arriving counts the requests that the client still sends, by the tick at which they began.
	arriving [slots]atomic.Int64

	writing sync.Mutex
	blocked atomic.Int64 // the tick after the one in which the present write began; 0: none
	wrote   atomic.Int64 // when the last one ended
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
	}
	return n, err
}

func (c *connection) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.blocked.Store(c.limits.ticks.Load() + 1)
	n, err := c.Conn.Write(b)
	c.blocked.Store(0)
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

// call counts a call until it is answered.
func (c *connection) call() (answered func()) {
	c.open.Add(1)
	c.client.running.Add(1)
	return func() {
		c.active.Store(int64(c.limits.now())) // gRPC has still to write the answer
		c.open.Add(-1)
		c.client.running.Add(-1)
	}
}

// weight is what the connection takes: itself, its calls and, if the client does not read, all answers it can have.
func (c *connection) weight() int64 {
	if since := c.blocked.Load(); since != 0 && c.limits.ticks.Load() > since {
		return 1 + c.open.Load() + maxConcurrentStreams
	}
	return 1 + c.open.Load()
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
	if last := max(c.wrote.Load(), c.active.Load()); c.wrote.Load() > 0 && c.limits.now()-time.Duration(last) > pause {
		_ = c.SetWriteDeadline(time.Now().Add(timeout))
		_ = http2.NewFramer(c.Conn, nil).WriteGoAway(0, http2.ErrCodeNo, []byte(reason)) // best effort
	}
}
