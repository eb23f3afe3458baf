package server

import (
	"cmp"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// What a client makes the server hold, in bytes. These are estimates, and larger than measured on
// Linux: on Windows every goroutine has at least 8 KiB.
const (
	silentCost     = 8 << 10  // a goroutine that waits for the greeting
	connectionCost = 32 << 10 // goroutines and buffers of gRPC, and the buffers of a pipe
	streamCost     = 8 << 10  // a goroutine and the headers
	frameCost      = 128      // what gRPC keeps for a frame of a message, beside its bytes
)

// maxArriving is the number of requests of one process that have begun and that the client has not sent
// completely. More are refused before gRPC spends a goroutine on them. Clients of gRPC send a request at
// once, but may begin many before they send the first message.
const maxArriving = 1024

// maxOpen is the number of requests of one process that have no answer yet, or whose answer is not read.
const maxOpen = 7 << 10

// Limits of such requests of one connection.
const (
	// maxArrivingBytes is enough for maxConcurrentStreams paths of the greatest length, and for sixteen
	// of the largest requests.
	maxArrivingBytes = 16 << 20
	// maxSlow requests can take longer than slowAfter to arrive. Clients begin many at once, and
	// send their messages only then, so there is no limit for the first moments.
	maxSlow   = 32
	slowAfter = 2 * time.Second
)

// maxWatches is the number of health watches of one connection. A client needs one.
const maxWatches = 4

// maxRefused is how many requests are refused because of a limit before the client loses its connection.
const maxRefused = 256

// goAwayTimeout limits the attempt to tell a client why its connection ends.
const goAwayTimeout = 10 * time.Millisecond

// connection is an accepted connection. It counts what its client makes the server hold.
type connection struct {
	net.Conn
	owner  *connections
	pid    int      // of the process at the other end; 0: unknown
	client *process // the same
	begin  []byte   // received before gRPC reads

	counted bool   // by the observer; the crowd's mutex protects it
	name    string // of the process, known when gRPC gets the connection

	received atomic.Int64 // bytes, counted only up to the greeting
	heard    atomic.Int64 // when something was last received, in nanoseconds
	calls    atomic.Int64 // requests without an answer
	useful   atomic.Bool  // it has had a call
	watches  atomic.Int64
	refused  atomic.Int64 // requests
	ended    atomic.Bool
	cost     atomic.Int64 // of all streams and the connection itself, in bytes

	mu            sync.Mutex
	preface       int // bytes still to come
	in            frames
	streams       []stream
	lastStream    uint32
	closed        bool
	spent         int64 // for the streams
	arriving      int   // streams that have not arrived
	arrivingBytes int64 // spent for these

	writeMu sync.Mutex
	out     frames
	writes  atomic.Int64 // odd during a write
	blocked int64        // writes, as the last sweep saw it
}

// greeting is the number of bytes that every HTTP/2 client sends first: the preface and the header
// of its settings.
const greeting = int64(len(http2.ClientPreface) + frameHeader)

func (c *connection) greeted() bool { return c.received.Load() >= greeting }

// awaitGreeting reads what every client sends first. A client that sends nothing costs a goroutine,
// but none of the buffers of gRPC.
func (c *connection) awaitGreeting(timeout time.Duration) error {
	if err := c.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	begin := make([]byte, greeting)
	for have := 0; have < len(begin); {
		n, err := c.Conn.Read(begin[have:])
		if err != nil {
			return err
		}
		have += n
		c.received.Add(int64(n))
	}
	c.begin = begin
	return c.SetReadDeadline(time.Time{})
}

func (c *connection) Read(b []byte) (n int, err error) {
	if len(c.begin) > 0 {
		n = copy(b, c.begin)
		c.begin = c.begin[n:]
	} else if n, err = c.Conn.Read(b); n <= 0 {
		return n, err
	}
	now := time.Now().UnixNano()
	c.heard.Store(now)
	if problem := c.observe(b[:n], now); problem != "" {
		c.end(problem)
	}
	return n, err
}

// observe follows the requests in what the client sends, and returns why the connection must end.
func (c *connection) observe(b []byte, now int64) (problem string) {
	c.mu.Lock()
	before, arriving, open := c.spent, c.arriving, len(c.streams)
	for len(b) > 0 {
		if c.preface > 0 {
			n := min(c.preface, len(b))
			c.preface, b = c.preface-n, b[n:]
			continue
		}
		var payload []byte
		var began bool
		payload, b, began = c.in.next(b)
		if began {
			c.frameBegins(now)
		} else if i := c.find(c.in.stream()); i >= 0 && c.in.kind() == http2.FrameData {
			c.spend(&c.streams[i], int64(len(payload)))
		}
		if c.in.whole() {
			c.frameEnds()
		}
	}
	switch {
	case c.arrivingBytes > maxArrivingBytes:
		problem = reasonArriving
	case c.arriving > maxSlow && c.streams[maxSlow].since < now-int64(slowAfter) && c.slow(now) > maxSlow:
		problem = reasonArriving
	}
	delta := c.spent - before
	c.count(c.arriving-arriving, len(c.streams)-open)
	c.mu.Unlock()
	c.charge(delta)
	return problem
}

// slow counts the requests that have been arriving for long.
func (c *connection) slow(now int64) (n int) {
	for i := range c.streams {
		if !c.streams[i].arrived && c.streams[i].since < now-int64(slowAfter) {
			n++
		}
	}
	return n
}

// frameBegins looks at the header of a frame from the client.
func (c *connection) frameBegins(now int64) {
	id := c.in.stream()
	switch c.in.kind() {
	case http2.FrameHeaders:
		if id <= c.lastStream {
			return // trailers, or an error that gRPC finds
		}
		c.lastStream = id
		c.streams = append(c.streams, stream{id: id, cost: streamCost, since: now})
		c.calls.Add(1)
		c.spent += streamCost
		c.arriving++
		c.arrivingBytes += streamCost
	case http2.FrameData:
		if i := c.find(id); i >= 0 {
			c.spend(&c.streams[i], frameCost+slack(c.in.length()))
		}
	default:
	}
}

// slack is by how much the buffer of gRPC for a frame of a message is larger than the frame. The sizes
// are those of mem.DefaultBufferPool; frames below 1 KiB get a buffer of their own size.
func slack(length int) int64 {
	if length < 1<<10 {
		return 0
	}
	for _, size := range []int{4 << 10, 16 << 10, 32 << 10, 1 << 20} {
		if length <= size {
			return int64(size - length)
		}
	}
	return 0
}

// frameEnds looks at a frame from the client that is complete.
func (c *connection) frameEnds() {
	switch c.in.kind() {
	case http2.FrameData, http2.FrameHeaders:
		if i := c.find(c.in.stream()); i >= 0 && c.in.has(http2.FlagDataEndStream) && !c.streams[i].arrived {
			c.arrive(&c.streams[i])
		}
	case http2.FrameRSTStream:
		c.finish(c.in.stream())
	default:
	}
}

// find returns the index of a stream, or -1. Most streams are the last one.
func (c *connection) find(id uint32) int {
	for i, s := range slices.Backward(c.streams) {
		if s.id == id {
			return i
		}
	}
	return -1
}

func (c *connection) spend(s *stream, bytes int64) {
	s.cost += bytes
	c.spent += bytes
	if !s.arrived {
		c.arrivingBytes += bytes
	}
}

func (c *connection) arrive(s *stream) {
	s.arrived = true
	c.arriving--
	c.arrivingBytes -= s.cost
}

// finish forgets a stream.
func (c *connection) finish(id uint32) {
	i := c.find(id)
	if i < 0 {
		return
	}
	s := &c.streams[i]
	if !s.arrived {
		c.arrive(s)
	}
	c.spent -= s.cost
	c.streams = slices.Delete(c.streams, i, i+1)
	c.calls.Add(-1)
	c.useful.Store(true)
}

func (c *connection) Write(b []byte) (int, error) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	c.writes.Add(1)
	n, err := c.Conn.Write(b)
	c.writes.Add(1)
	c.mu.Lock()
	before, arriving, open := c.spent, c.arriving, len(c.streams)
	for rest := b[:max(0, n)]; len(rest) > 0; {
		var began bool
		_, rest, began = c.out.next(rest)
		if began {
			c.answer()
		}
	}
	delta := c.spent - before
	c.count(c.arriving-arriving, len(c.streams)-open)
	c.mu.Unlock()
	c.charge(delta)
	return n, err
}

// answer looks at the header of a frame to the client.
func (c *connection) answer() {
	switch kind := c.out.kind(); {
	case kind == http2.FrameRSTStream, kind == http2.FrameHeaders && c.out.has(http2.FlagHeadersEndStream):
		c.finish(c.out.stream())
	case kind == http2.FrameHeaders:
		if i := c.find(c.out.stream()); i >= 0 {
			c.streams[i].answered = c.owner.crowd.ticks.Load()
		}
	}
}

// count counts requests for the client's process. The caller holds c.mu.
func (c *connection) count(arriving, open int) {
	if c.closed {
		return
	}
	if arriving != 0 {
		c.client.arriving.Add(int64(arriving))
	}
	if open != 0 {
		c.client.open.Add(int64(open))
	}
}

// refuse is called when a request is refused because of a limit.
func (c *connection) refuse(reason string) {
	if c.refused.Add(1) > maxRefused {
		c.end(reason)
	}
}

// charge adds to the cost of the connection.
func (c *connection) charge(bytes int64) {
	if bytes != 0 {
		c.owner.crowd.charge(c, bytes)
	}
}

// overdue returns why a connection must end whose client is too slow, or "". The sweeps of the crowd
// call it, one at a time.
func (c *connection) overdue(now, tick int64, timeout time.Duration) string {
	writes := c.writes.Load()
	stuck := writes%2 == 1 && writes == c.blocked
	c.blocked = writes
	if stuck {
		return reasonNotReading
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	unread := 0
	for i := range c.streams {
		s := &c.streams[i]
		if !s.arrived && s.since < now-int64(timeout) {
			return reasonArriving
		}
		if s.answered != 0 && s.answered < tick-1 {
			unread++
		}
	}
	if unread > maxWatches {
		return reasonNotReading
	}
	return ""
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

// end closes the connection for a reason, which it tells the client and the operator.
func (c *connection) end(reason string) {
	if c.ended.Swap(true) {
		return
	}
	c.owner.crowd.note(c, reason)
	// A client that does not read does not need to know.
	if c.writeMu.TryLock() {
		if c.out.whole() {
			c.sayWhy(reason)
		}
		c.writeMu.Unlock()
	}
	_ = c.Close() // its client, if there still is one, reconnects
}

// sayWhy sends GOAWAY. Clients of gRPC show its text, and repeat calls that the server has not seen.
func (c *connection) sayWhy(reason string) {
	_ = c.SetWriteDeadline(time.Now().Add(goAwayTimeout))
	framer := http2.NewFramer(c.Conn, nil)
	if c.writes.Load() == 0 {
		_ = framer.WriteSettings() // a server's first frame
	}
	c.mu.Lock()
	last := c.lastStream
	c.mu.Unlock()
	_ = framer.WriteGoAway(last, http2.ErrCodeEnhanceYourCalm, []byte(reason))
}

func (c *connection) Close() error {
	c.ended.Store(true)
	c.mu.Lock()
	c.count(-c.arriving, -len(c.streams))
	c.closed = true
	c.mu.Unlock()
	c.owner.crowd.leave(c)
	return c.Conn.Close()
}
