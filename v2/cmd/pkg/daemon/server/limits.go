package server

import (
	"cmp"
	"context"
	"maps"
	"net"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"k8s.io/klog/v2"
)

// Only administrators can connect, so limits are for drivers with a fault, and protect the other clients. They are not
// for a client that is slow, pauses or cancels calls. The settings of gRPC limit what one connection can hold, see there.
const (
	reasonConnections = "too many connections" // of the process with most, the idlest makes room for another one
	reasonRequests    = "too many requests"    // of a process at once; more are refused
	reasonWatches     = "too many watches"     // of a connection; more are refused
	reasonMemory      = "too much memory"      // in use; the process that takes most loses connections
	fewConnections    = 16                     // processes with no more count as equal
	maxRequests       = 1024                   // a node has a few hundred volumes
	manyWaiting       = 512                    // of them, for a processor; then a process is read once in turnTime, for the sake of others
	turnTime          = 5 * time.Millisecond
	maxWatches        = 4                      // a client needs one
	lookEvery         = 4 << 20                // bytes that clients send and get between two looks at the memory
	fairWeight        = 64                     // what no process loses, see connection.weight
	reliefTime        = 200 * time.Millisecond // in which the memory of connections that were ended comes back
	unreadTime        = 5 * time.Second        // in which a client reads something
	notePeriod        = time.Minute            // between two lines in the log
)

// limits are those of all endpoints together.
type limits struct {
	logger      klog.Logger
	observer    ConnectionObserver // may be nil
	connections int                // at most
	memory      uint64             // in use, in bytes; beyond it is short
	start       time.Time
	traffic     atomic.Int64 // in bytes
	noted       atomic.Int64 // when there was a line in the log
	relief      atomic.Int64 // until then memory comes back

	mu        sync.Mutex
	open      map[*connection]struct{}
	processes map[int]*process

	memoryMu  sync.Mutex
	collected time.Duration // when garbage was looked for
}

// process is a client that has connections, or whose requests still run.
type process struct {
	pid         int // 0: unknown
	describe    func() (name, user string)
	connections int          // protected by limits.mu
	running     atomic.Int64 // handlers, also of connections that have ended
	mu          sync.Mutex
	requests    []context.Context // that have begun; some may have ended, as their contexts say
	many        atomic.Bool       // wait for a processor
	turn        sync.Mutex
}

func newLimits(logger klog.Logger, cfg Config) *limits {
	l := &limits{logger: logger, connections: cfg.MaxConnections, memory: cfg.MaxMemory, start: time.Now(), collected: -reliefTime, open: map[*connection]struct{}{}, processes: map[int]*process{}}
	l.observer, _ = cfg.Observer.(ConnectionObserver)
	l.noted.Store(-int64(notePeriod))
	return l
}

// now is the time on the monotonic clock.
func (l *limits) now() time.Duration { return time.Since(l.start) }

// admit gives a connection a place, and reports whether there is one.
func (l *limits) admit(c *connection, pid int) bool {
	l.mu.Lock()
	maps.DeleteFunc(l.processes, func(_ int, p *process) bool { return p.connections == 0 && p.running.Load() == 0 })
	if c.client = l.processes[pid]; c.client == nil {
		c.client = &process{pid: pid, describe: sync.OnceValues(func() (string, string) { return describe(pid) })}
	}
	var idlest *connection
	if len(l.open) >= l.connections {
		// A call that runs makes room only for a process with fewer connections.
		if idlest = l.idlest(); idlest.open.Load() > 0 && c.client.connections+1 >= idlest.client.connections {
			l.mu.Unlock()
			l.note(c, reasonConnections)
			return false
		}
	}
	c.active.Store(int64(l.now()))
	c.client.connections++
	l.open[c], l.processes[pid] = struct{}{}, c.client
	if l.observer != nil {
		name, _ := c.client.describe()
		l.observer.ConnectionOpened(name)
	}
	l.mu.Unlock()
	if idlest != nil {
		idlest.end(reasonConnections)
	}
	return true
}

// idlest returns, of the process with most connections, the one without calls that was silent for longest.
func (l *limits) idlest() *connection {
	return slices.MinFunc(slices.Collect(maps.Keys(l.open)), func(a, b *connection) int {
		return cmp.Or(cmp.Compare(max(fewConnections, b.client.connections), max(fewConnections, a.client.connections)),
			cmp.Compare(min(1, a.open.Load()), min(1, b.open.Load())), cmp.Compare(a.active.Load(), b.active.Load()))
	})
}

// remove gives up the place of a connection; it can be called again.
func (l *limits) remove(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.open[c]; !open {
		return
	}
	delete(l.open, c)
	if c.client.connections--; c.client.connections == 0 { // what its last requests hold goes
		c.client.mu.Lock()
		c.client.prune()
		c.client.mu.Unlock()
	}
	if l.observer != nil {
		name, _ := c.client.describe()
		l.observer.ConnectionClosed(name)
	}
}

func (l *limits) all() []*connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.open))
}

// begin is called with the headers of a request, before gRPC spends a goroutine on it.
func begin(ctx context.Context, _ *tap.Info) (context.Context, error) {
	c := caller(ctx)
	if !c.client.begin(ctx) {
		c.limits.note(c, reasonRequests)
		return nil, status.Errorf(codes.ResourceExhausted, "this process has %d requests without an answer; make fewer at once", maxRequests)
	}
	return ctx, nil
}

// begin adds a request, and reports false if there are too many.
func (p *process) begin(ctx context.Context) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.requests) >= manyWaiting {
		p.prune()
	}
	if len(p.requests) >= maxRequests || p.running.Load() >= maxRequests {
		return false
	}
	p.requests = append(p.requests, ctx)
	return true
}

func (p *process) prune() {
	p.requests = slices.DeleteFunc(p.requests, func(ctx context.Context) bool { return ctx.Err() != nil })
	p.many.Store(int64(len(p.requests))-p.running.Load() >= manyWaiting)
}

// takeTurn is called when something was read.
func (p *process) takeTurn() {
	if p.many.Load() {
		p.turn.Lock()
		defer p.turn.Unlock()
		time.Sleep(turnTime)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.prune()
	}
}

// moved counts bytes that clients send or get, and looks at the memory now and then.
func (l *limits) moved(bytes int) {
	if total := l.traffic.Add(int64(bytes)); total/lookEvery != (total-int64(bytes))/lookEvery {
		l.relieve()
	}
}

// relieve ends connections if memory is short: the heaviest of the process that takes most, up to half of its weight.
func (l *limits) relieve() {
	if !l.inUse(l.memory) || l.now() < time.Duration(l.relief.Load()) {
		return
	}
	conns, weights, most := l.all(), map[*process]int64{}, &process{}
	for _, c := range conns {
		if weights[c.client] += c.weight(); weights[c.client] > max(fairWeight, weights[most]) {
			most = c.client
		}
	}
	slices.SortFunc(conns, func(a, b *connection) int { return cmp.Compare(b.weight(), a.weight()) })
	left := weights[most] / 2
	for _, c := range conns {
		if c.client == most && left > 0 {
			left -= c.weight()
			l.relief.Store(int64(l.now() + reliefTime))
			c.end(reasonMemory)
		}
	}
}

// inUse reports whether more than a number of bytes are in use: objects and stacks, without garbage.
func (l *limits) inUse(bytes uint64) bool {
	l.memoryMu.Lock()
	defer l.memoryMu.Unlock()
	used, live := memory()
	if used <= bytes || used <= live+bytes/2 && l.now()-l.collected < reliefTime {
		return false // or not much has changed
	}
	runtime.GC()
	l.collected = l.now()
	used, _ = memory()
	return used > bytes
}

// memory returns the bytes of all objects and stacks, and of the objects that were in use at the last collection.
func memory() (used, live uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() + samples[1].Value.Uint64(), samples[2].Value.Uint64()
}

// note reports to the operator that a limit was reached: in the metrics, and once a minute in the log.
func (l *limits) note(c *connection, reason string) {
	name, user := c.client.describe()
	if l.observer != nil {
		l.observer.LimitReached(name, reason)
	}
	if last, now := l.noted.Load(), int64(l.now()); now-last >= int64(notePeriod) && l.noted.CompareAndSwap(last, now) {
		l.logger.Info("A client has reached a limit", "reason", reason, "endpoint", c.endpoint, "process", name, "pid", c.client.pid, "user", user)
	}
}

// connection is what gRPC serves. Beside reading and writing, it keeps what the limits go by.
type connection struct {
	net.Conn
	limits   *limits
	endpoint string
	client   *process
	spoke    atomic.Bool  // the client has sent something
	active   atomic.Int64 // when it last did, was accepted, or a call ended
	open     atomic.Int64 // calls that have no answer yet
	watches  atomic.Int64
	writing  atomic.Int64 // when the present write began; 0: none
	ended    atomic.Bool
}

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.ended.Load() {
		return 0, net.ErrClosed // no call begins whose answer would be lost
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
	c.writing.Store(int64(c.limits.now()))
	defer c.writing.Store(0)
	return c.Conn.Write(b)
}

// Close closes the connection and gives up its place; it can be called again.
func (c *connection) Close() error {
	c.ended.Store(true)
	c.limits.remove(c)
	return c.Conn.Close()
}

// weight is what the connection takes: itself, its calls and, if the client does not read, all answers it can have.
func (c *connection) weight() int64 {
	weight := 1 + c.open.Load()
	if since := c.writing.Load(); since != 0 && c.limits.now()-time.Duration(since) > unreadTime {
		weight += maxConcurrentStreams
	}
	return weight
}

// end closes the connection because of a limit, without waiting for the client.
func (c *connection) end(reason string) {
	if c.ended.Swap(true) {
		return
	}
	c.limits.remove(c)
	c.limits.note(c, reason)
	go func() { _ = c.Conn.Close() }() // best effort
}
