package server

import (
	"container/list"
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
	silentCost     = 8 << 10  // a goroutine, until the client greets
	connectionCost = 64 << 10 // then goroutines and buffers of gRPC, and the buffers of a pipe
	streamCost     = 16 << 10 // a goroutine, and headers within their limits
	frameCost      = 128      // what gRPC keeps for a frame of a message, beside its bytes
)

// maxArriving is the number of requests of one process that have begun and that the client has not sent
// completely. More are refused before gRPC spends a goroutine on them. Clients of gRPC send a request at
// once, but may begin many before they send the first message.
const maxArriving = 1024

// farTooManyArriving is the number of such requests at which a connection ends that begins more. It spends no
// time on their headers: 200 connections send 100,000 a second.
const farTooManyArriving = 2 * maxArriving

// maxOpen is the number of requests of one process that have no answer yet, or whose answer is not read.
// Each is a goroutine that competes with those of other clients: with 7,000 of them, others wait for
// half a second.
const maxOpen = 1024

// maxResets is the number of requests without an answer that one process can cancel in a second: one by one,
// by mistakes for which gRPC cancels them, or with a connection. gRPC begins to work on a request before it
// sees that it is canceled. 500 callers with a deadline of half a second each are below it.
const maxResets = 2000

// maxArrivingBytes is the limit of such requests of one connection. It is enough for maxConcurrentStreams
// paths of the greatest length, which clients send in turns, and for sixteen of the largest requests.
const maxArrivingBytes = 24 << 20

// maxWatches is the number of health watches of one connection. A client needs one.
const maxWatches = 4

// maxRefused is how many requests of a process are refused because of a limit. For a while, each further one
// costs it a connection. A client that begins maxConcurrentStreams at once learns that they are refused.
const maxRefused = 200

// goAwayTimeout limits the attempt to tell a client why its connection ends.
const goAwayTimeout = 10 * time.Millisecond

// connection is an accepted connection. It counts what its client makes the server hold.
type connection struct {
	net.Conn
	owner   *connections
	pid     int      // of the process at the other end; 0: unknown
	client  *process // the same
	entered int64    // when it was accepted, in nanoseconds
	begin   []byte   // received before gRPC reads

	counted bool   // by the observer; the crowd's mutex protects it
	name    string // of the process, known when gRPC gets the connection

	// The places' mutex protects these.
	tenant                    *tenant
	asStranger, asItsStranger *list.Element // of all strangers and of those of its process; nil: it is none

	received atomic.Int64 // bytes, counted only up to the greeting
	heard    atomic.Int64 // when something was last received, in nanoseconds
	stranger atomic.Bool  // it has never had an answer, and waits for none
	working  atomic.Int64 // requests that have arrived and have no answer
	watches  atomic.Int64
	cost     atomic.Int64 // of all streams and the connection itself, in bytes

	ended atomic.Pointer[string] // why; nil: it is open
	close sync.Once
	over  chan struct{} // closed with the connection

	mu            sync.Mutex
	preface       int // bytes still to come
	in            frames
	streams       []stream
	lastStream    uint32
	closed        bool
	answered      bool  // it has had an answer
	spent         int64 // for the streams
	unsent        int64 // a part of spent: for answers
	arriving      int   // streams that have not arrived
	arrivingBytes int64 // spent for these

	writeMu sync.Mutex
	out     frames
	writes  atomic.Int64 // odd during a write

	// What the last sweep saw.
	blocked int64 // writes
	unread  bool  // answers
}

func newConnection(raw net.Conn, owner *connections, pid int, now time.Time) *connection {
	c := &connection{Conn: raw, owner: owner, pid: pid, entered: now.UnixNano(), preface: len(http2.ClientPreface), over: make(chan struct{})}
	c.heard.Store(c.entered)
	c.stranger.Store(true)
	return c
}

// enter takes a place. It returns the connection that has to go for it, which may be itself.
func (c *connection) enter() (loser *connection, reason string) {
	c.owner.crowd.join(c)
	if c.client.waiting.Load() >= maxWaiting {
		return c, reasonRefused
	}
	loser, reason = c.owner.places.enter(c)
	c.owner.crowd.charge(c, silentCost)
	return loser, reason
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
	if c.ended.Load() != nil {
		return 0, net.ErrClosed
	}
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
		return 0, net.ErrClosed
	}
	return n, err
}

// tally is what a connection holds.
type tally struct {
	spent          int64
	arriving, open int
}

func (c *connection) lock() tally {
	c.mu.Lock()
	return tally{c.spent, c.arriving, len(c.streams)}
}

// unlock passes on what has changed since lock.
func (c *connection) unlock(before tally) {
	spent := c.spent - before.spent
	c.count(c.arriving-before.arriving, len(c.streams)-before.open)
	stranger := !c.answered && c.working.Load() == 0
	changed := c.stranger.Swap(stranger) != stranger
	c.mu.Unlock()
	if changed {
		c.owner.places.settle(c)
	}
	c.owner.crowd.charge(c, spent)
}

// observe follows the requests in what the client sends, and returns why the connection must end.
func (c *connection) observe(b []byte, now int64) (problem string) {
	before := c.lock()
	canceled := int64(0)
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
		if c.in.whole() && c.frameEnds() {
			canceled++
		}
	}
	if canceled > 0 && c.client.cancel(canceled, time.Unix(0, now)) > maxResets {
		problem = reasonReset
	}
	begun := int64(c.arriving - before.arriving)
	if c.arrivingBytes > maxArrivingBytes || begun > 0 && c.client.arriving.Load()+begun > farTooManyArriving {
		problem = reasonArriving
	}
	c.unlock(before)
	return problem
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

// frameEnds looks at a frame from the client that is complete. It reports whether the client has canceled
// a request that has no answer.
func (c *connection) frameEnds() (canceled bool) {
	switch c.in.kind() {
	case http2.FrameData, http2.FrameHeaders:
		if i := c.find(c.in.stream()); i >= 0 && c.in.has(http2.FlagDataEndStream) && !c.streams[i].arrived {
			c.arrive(&c.streams[i])
		}
	case http2.FrameRSTStream:
		canceled = c.finish(c.in.stream())
	default:
	}
	return canceled
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

// arrive is called when a request is complete, and gRPC calls its handler.
func (c *connection) arrive(s *stream) {
	s.arrived = true
	c.arriving--
	c.arrivingBytes -= s.cost
	if s.answered == 0 {
		c.working.Add(1)
	}
}

// finish forgets a stream, and reports whether it has no answer.
func (c *connection) finish(id uint32) (unanswered bool) {
	i := c.find(id)
	if i < 0 {
		return false
	}
	s := &c.streams[i]
	unanswered = s.answered == 0
	switch {
	case !s.arrived:
		c.arriving--
		c.arrivingBytes -= s.cost
	case s.answered == 0:
		c.working.Add(-1)
	}
	c.spent -= s.cost
	c.streams = slices.Delete(c.streams, i, i+1)
	if len(c.streams) == 0 { // what is not sent now will not be
		c.spent -= c.unsent
		c.unsent = 0
	}
	return unanswered
}

// holdAnswer is called with the size of an answer that gRPC will send as soon as the client lets it.
func (c *connection) holdAnswer(bytes int) {
	before := c.lock()
	if len(c.streams) > 0 {
		c.unsent += int64(bytes)
		c.spent += int64(bytes)
	}
	c.unlock(before)
}

func (c *connection) Write(b []byte) (int, error) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	// Count answers before they are sent: when a client has them, its next requests are under way.
	if !c.countAnswers(b) {
		c.end(reasonReset)
		return 0, net.ErrClosed
	}
	c.writes.Add(1)
	n, err := c.Conn.Write(b)
	c.writes.Add(1)
	return n, err
}

// countAnswers looks at what gRPC sends. It reports false if gRPC has canceled too many requests, because of
// what the client sent.
func (c *connection) countAnswers(b []byte) bool {
	before := c.lock()
	canceled := int64(0)
	for len(b) > 0 {
		var began bool
		_, b, began = c.out.next(b)
		if began && c.answer() {
			canceled++
		}
	}
	c.unlock(before)
	return canceled == 0 || c.client.cancel(canceled, time.Now()) <= maxResets
}

// answer looks at the header of a frame to the client. It reports whether it cancels a request without an
// answer.
func (c *connection) answer() (canceled bool) {
	id, ends := c.out.stream(), c.out.has(http2.FlagHeadersEndStream)
	switch c.out.kind() {
	case http2.FrameRSTStream:
		return c.finish(id)
	case http2.FrameHeaders:
		i := c.find(id)
		if i < 0 {
			return false
		}
		s := &c.streams[i]
		if ends {
			c.answered = c.answered || s.arrived
			c.finish(id)
			return false
		}
		if s.arrived && s.answered == 0 {
			c.working.Add(-1)
		}
		s.answered = c.owner.crowd.ticks.Load()
	case http2.FrameData:
		sent := min(c.unsent, int64(c.out.length()))
		c.unsent -= sent
		c.spent -= sent
	default:
	}
	return false
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
	if c.client.refused.Add(1) > maxRefused {
		c.end(reason)
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
	// The answers to watches never end. A watch that has just ended is in neither number, so look twice.
	before := c.unread
	c.unread = unread > int(c.watches.Load())
	if c.unread && before {
		return reasonNotReading
	}
	return ""
}

// end closes the connection for a reason, which it tells the client and the operator. It does not wait.
func (c *connection) end(reason string) {
	if !c.ended.CompareAndSwap(nil, &reason) {
		return
	}
	c.owner.crowd.note(c, reason)
	c.owner.leave(c)
	go c.Close() // its client, if there still is one, reconnects
}

// sayWhy sends GOAWAY. Clients of gRPC show its text, and repeat calls that the server has not seen.
func (c *connection) sayWhy(reason string) {
	// A client that does not read does not need to know.
	if !c.writeMu.TryLock() {
		return
	}
	defer c.writeMu.Unlock()
	if !c.out.whole() {
		return
	}
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

// closedByClient is why a connection ends that the server does not end.
var closedByClient = ""

// Close closes the connection, and tells its client why if the server has ended it.
func (c *connection) Close() (err error) {
	c.ended.CompareAndSwap(nil, &closedByClient)
	c.owner.leave(c)
	c.close.Do(func() {
		c.mu.Lock()
		c.count(-c.arriving, -len(c.streams))
		c.closed = true
		c.mu.Unlock()
		if canceled := c.working.Load(); canceled > 0 && *c.ended.Load() == closedByClient && c.client.cancel(canceled, time.Now()) > maxResets {
			c.owner.crowd.note(c, reasonReset) // so that its next connections wait
		}
		if reason := *c.ended.Load(); reason != "" && c.greeted() {
			c.sayWhy(reason)
		}
		err = c.Conn.Close()
		close(c.over)
	})
	return err
}
