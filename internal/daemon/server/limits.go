package server

import (
	"cmp"
	"context"
	"maps"
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

// Only administrators can connect, so limits are for drivers with a fault, and protect the other clients. The
// settings of gRPC limit what one connection can make the server hold, see newGRPCServer. These do the rest.
// None of them is for a client that is slow, pauses or cancels calls.
const (
	reasonConnections = "too many connections"   // of the process with most, the idlest makes room for another one
	reasonRequests    = "too many requests"      // of a process at once; more are refused
	reasonWatches     = "too many watches"       // of a connection; more are refused
	reasonArrival     = "requests do not arrive" // in time; their connection ends
	reasonMemory      = "too much memory"        // in use; the process that takes most loses connections

	fewConnections = 16                     // processes with no more count as equal
	maxRequests    = 2048                   // a node has a few hundred volumes
	manyRequests   = 256                    // that are new; with more, the connections of a process take turns
	newTime        = 250 * time.Millisecond // in which a request is new: one that hangs costs others nothing
	turnTime       = 5 * time.Millisecond
	maxWatches     = 4                      // a client needs one
	arrivalTicks   = 6                      // in ArrivalTimeout; they count the time in which the server runs
	slots          = arrivalTicks + 2       // to tell requests that arrive in time from others
	lookEvery      = 4 << 20                // bytes that clients send and get between two looks at the memory
	requestBytes   = 16 << 10               // what a request counts there: its goroutine and headers
	fairShare      = 64                     // connections and calls that no process loses
	reliefTime     = 200 * time.Millisecond // in which the memory of connections that were ended comes back
	notePeriod     = time.Minute            // between two lines in the log
)

// limits are those of all endpoints together.
type limits struct {
	logger      klog.Logger
	observer    ConnectionObserver // may be nil
	connections int                // at most
	memory      uint64             // in use, in bytes; beyond it is short
	start       time.Time
	ticks       atomic.Int64
	traffic     atomic.Int64 // in bytes
	noted       atomic.Int64 // when there was a line in the log

	mu        sync.Mutex
	open      map[*connection]struct{}
	processes map[int]*process

	relieving sync.Mutex
	relief    time.Duration // until then memory comes back
}

// process is a client with connections.
type process struct {
	pid         int // 0: unknown
	describe    func() (name, user string)
	connections int // protected by limits.mu

	mu       sync.Mutex
	requests []request   // some may have ended
	many     atomic.Bool // of them are new
	turn     sync.Mutex
}

// request is a request that has begun. gRPC ends its context with it.
type request struct {
	context.Context
	begun time.Duration
}

func newLimits(logger klog.Logger, cfg Config) *limits {
	l := &limits{
		logger: logger, connections: cfg.MaxConnections, memory: cfg.MaxMemory, start: time.Now(),
		open: map[*connection]struct{}{}, processes: map[int]*process{},
	}
	l.observer, _ = cfg.Observer.(ConnectionObserver)
	l.noted.Store(-int64(notePeriod))
	return l
}

// now is the time on the monotonic clock.
func (l *limits) now() time.Duration { return time.Since(l.start) }

// admit gives a connection a place, and reports whether there is one.
func (l *limits) admit(c *connection, pid int) bool {
	l.mu.Lock()
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
	if c.client.connections--; c.client.connections == 0 {
		delete(l.processes, c.client.pid)
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

// tick ends the connections whose requests do not arrive in time.
func (l *limits) tick() {
	tick := l.ticks.Add(1)
	for _, c := range l.all() {
		if c.arriving[(tick+1)%slots].Load() > 0 {
			c.end(reasonArrival)
		}
	}
}

// begin is called with the headers of a request, before gRPC spends a goroutine on it.
func begin(ctx context.Context, _ *tap.Info) (context.Context, error) {
	c := caller(ctx)
	c.limits.moved(requestBytes)
	if !c.client.begin(request{ctx, c.limits.now()}) {
		c.limits.note(c, reasonRequests)
		return nil, status.Errorf(codes.ResourceExhausted, "this process has %d requests without an answer; make fewer at once", maxRequests)
	}
	return ctx, nil
}

// begin adds a request, and reports false if there are too many. Now and then it forgets those that have ended.
func (p *process) begin(r request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.requests) >= manyRequests {
		p.requests = slices.DeleteFunc(p.requests, func(old request) bool { return old.Err() != nil })
		old, _ := slices.BinarySearchFunc(p.requests, r.begun-newTime, func(r request, at time.Duration) int { return cmp.Compare(r.begun, at) })
		p.many.Store(len(p.requests)-old >= manyRequests)
	}
	if len(p.requests) >= maxRequests {
		return false
	}
	p.requests = append(p.requests, r)
	return true
}

// takeTurn is called for each part of a connection that was read. With many requests at once, a process slows itself
// down rather than others.
func (p *process) takeTurn() {
	if p.many.Load() {
		p.turn.Lock()
		defer p.turn.Unlock()
		time.Sleep(turnTime)
	}
}

// moved counts bytes that clients send or get, and looks at the memory from time to time.
func (l *limits) moved(bytes int) {
	if total := l.traffic.Add(int64(bytes)); total/lookEvery != (total-int64(bytes))/lookEvery {
		l.relieve()
	}
}

// relieve ends connections if memory is short: of the process that takes most, those that take most, up to half of
// what it takes.
func (l *limits) relieve() {
	l.relieving.Lock()
	defer l.relieving.Unlock()
	if used, live := memoryInUse(); used <= max(l.memory, live+l.memory/2) {
		return
	}
	runtime.GC() // much may be garbage
	if used, _ := memoryInUse(); used <= l.memory || l.now() < l.relief {
		return
	}
	conns, weights, most := l.all(), map[*process]int64{}, &process{}
	for _, c := range conns {
		if weights[c.client] += 1 + c.open.Load(); weights[c.client] > max(fairShare, weights[most]) {
			most = c.client
		}
	}
	slices.SortFunc(conns, func(a, b *connection) int { return cmp.Compare(b.open.Load(), a.open.Load()) })
	left := weights[most] / 2
	for _, c := range conns {
		if c.client == most && left > 0 {
			left -= 1 + c.open.Load()
			l.relief = l.now() + reliefTime
			c.end(reasonMemory)
		}
	}
}

// memoryInUse returns the bytes of all objects and stacks, and those of the objects that the runtime last found in use.
func memoryInUse() (used, live uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() + samples[1].Value.Uint64(), samples[2].Value.Uint64()
}

// note tells the operator that a limit was reached: in the metrics, and once a minute in the log.
func (l *limits) note(c *connection, reason string) {
	name, user := c.client.describe()
	if l.observer != nil {
		l.observer.LimitReached(name, reason)
	}
	if last, now := l.noted.Load(), int64(l.now()); now-last >= int64(notePeriod) && l.noted.CompareAndSwap(last, now) {
		l.logger.Info("A client has reached a limit", "reason", reason, "endpoint", c.endpoint, "process", name, "pid", c.client.pid, "user", user)
	}
}
