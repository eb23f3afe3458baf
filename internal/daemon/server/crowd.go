package server

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/pipe"
)

// maxHeld is what all clients of all endpoints can make the server hold, in bytes. A node of a few
// dozen drivers is far below it.
const maxHeld = 64 << 20

// notePeriod is the time between two lines in the log about connections that were ended for the same
// reason.
const notePeriod = time.Minute

// The reasons to end a connection, for the client, the log and the metrics.
const (
	reasonDisplaced  = "too many connections"         // another client needs the place
	reasonRefused    = "too many connections at work" // there was no place
	reasonSilent     = "no greeting"                  // others wait
	reasonArriving   = "requests do not arrive"       // too large or too slow
	reasonNotReading = "answers are not read"
	reasonHeld       = "requests take too much memory" // of all clients, this one has most
	reasonWatching   = "too many watches"
	reasonOpen       = "too many requests at once"
)

// ConnectionObserver is an Observer that also sees connections. Its methods are called concurrently and
// must be quick.
type ConnectionObserver interface {
	// ConnectionOpened gets the name of the client's process, which is empty if it is unknown.
	ConnectionOpened(process string)
	// ConnectionClosed is called exactly once for each ConnectionOpened.
	ConnectionClosed(process string)
	// ConnectionEnded is called if the server ends or refuses a connection because of a limit.
	ConnectionEnded(process, reason string)
}

// crowd is all connections of all endpoints. If they hold too much, or a client needs a place, the
// process that has most loses connections, and no other.
type crowd struct {
	logger   klog.Logger
	observer ConnectionObserver // may be nil
	timeout  time.Duration      // for a request to arrive
	most     int64              // bytes that clients can make the server hold
	total    atomic.Int64       // bytes that they do
	ticks    atomic.Int64       // sweeps so far, from 1

	mu        sync.Mutex
	open      map[*connection]struct{}
	processes map[int]*process
	notes     map[string]*note
	penalties map[int]time.Time // until when new connections of a process wait
	sweeping  bool
	stopped   bool
	sweeper   *time.Timer
}

// process is a client with open connections.
type process struct {
	name, user  string
	described   bool
	connections int
	arriving    atomic.Int64 // requests that are not complete
	open        atomic.Int64 // requests without an answer
}

// note is what has not been logged.
type note struct {
	count int
	next  time.Time // when the next line may be written
}

func newCrowd(logger klog.Logger, cfg Config) *crowd {
	observer, _ := cfg.Observer.(ConnectionObserver)
	c := &crowd{
		logger: logger, observer: observer, timeout: cfg.ArrivalTimeout, most: cfg.MaxHeldBytes,
		open: map[*connection]struct{}{}, processes: map[int]*process{}, notes: map[string]*note{}, penalties: map[int]time.Time{},
	}
	c.ticks.Store(1)
	return c
}

// enter adds a connection to its endpoint. It returns the one that has to go for it, which may be itself.
func (c *crowd) enter(conn *connection) (surplus *connection, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.owner.count >= conn.owner.most {
		surplus, reason = c.surplus(conn)
	}
	client := c.processes[conn.pid]
	if client == nil {
		client = &process{}
		c.processes[conn.pid] = client
	}
	client.connections++
	conn.client = client
	if conn.pid == 0 {
		conn.client = &process{} // it may be another process than the others that are unknown
	}
	conn.owner.count++
	c.open[conn] = struct{}{}
	conn.cost.Store(silentCost)
	c.total.Add(silentCost)
	if !c.sweeping && !c.stopped {
		c.sweeping = true
		c.sweeper = time.AfterFunc(c.timeout/2, c.sweep)
	}
	return surplus, reason
}

// greet is called when a client has greeted.
func (c *crowd) greet(conn *connection) {
	name, _ := c.describe(conn.pid)
	c.mu.Lock()
	conn.name = name
	if _, open := c.open[conn]; open && c.observer != nil {
		conn.counted = true
		c.observer.ConnectionOpened(name)
	}
	c.mu.Unlock()
	conn.charge(connectionCost - silentCost)
}

// describe returns the name and the user of a process. It asks the system once while the process has
// connections.
func (c *crowd) describe(pid int) (name, user string) {
	c.mu.Lock()
	client := c.processes[pid]
	if client != nil && client.described {
		defer c.mu.Unlock()
		return client.name, client.user
	}
	c.mu.Unlock()
	name, user = pipe.Describe(pid)
	name = printable(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if client = c.processes[pid]; client != nil {
		client.name, client.user, client.described = name, user, true
	}
	return name, user
}

// surplus returns the connection that makes room for a new one: that with the least worth, of the
// process with the most connections to the endpoint. If it is at work, the process of the new one must
// have fewer connections. The caller holds c.mu.
func (c *crowd) surplus(newcomer *connection) (surplus *connection, reason string) {
	byProcess, most := map[int]int{}, 0
	for conn := range c.open {
		if conn.owner == newcomer.owner {
			byProcess[conn.pid]++
			most = max(most, byProcess[conn.pid])
		}
	}
	for conn := range c.open {
		if conn.owner == newcomer.owner && byProcess[conn.pid] == most && (surplus == nil || conn.before(surplus)) {
			surplus = conn
		}
	}
	if surplus == nil || surplus.calls.Load() > 0 && byProcess[newcomer.pid] >= most {
		return newcomer, reasonRefused
	}
	return surplus, reasonDisplaced
}

// longestSilent returns the connection to an endpoint that has not greeted for longest, of the process
// with the most of them, if there are too many.
func (c *crowd) longestSilent(owner *connections) (longest *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	byProcess, most := map[int]int{}, 0
	for conn := range c.open {
		if conn.owner == owner && !conn.greeted() {
			byProcess[conn.pid]++
			most = max(most, byProcess[conn.pid])
		}
	}
	for conn := range c.open {
		if conn.owner == owner && !conn.greeted() && byProcess[conn.pid] == most &&
			(longest == nil || conn.heard.Load() < longest.heard.Load()) {
			longest = conn
		}
	}
	return longest
}

// of returns the connections to an endpoint.
func (c *crowd) of(owner *connections) (conns []*connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		if conn.owner == owner {
			conns = append(conns, conn)
		}
	}
	return conns
}

// leave removes a connection; it can be called again.
func (c *crowd) leave(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(conn)
}

// remove is leave for callers that hold c.mu.
func (c *crowd) remove(conn *connection) {
	if _, open := c.open[conn]; !open {
		return
	}
	delete(c.open, conn)
	c.total.Add(-conn.cost.Swap(gone))
	conn.owner.count--
	if p := c.processes[conn.pid]; p != nil {
		if p.connections--; p.connections == 0 {
			delete(c.processes, conn.pid)
		}
	}
	if conn.counted {
		c.observer.ConnectionClosed(conn.name)
	}
}

// gone is the cost of a connection that the crowd has removed.
const gone = math.MinInt64

// charge adds to what a connection holds.
func (c *crowd) charge(conn *connection, bytes int64) {
	for {
		cost := conn.cost.Load()
		if cost == gone {
			return
		}
		if conn.cost.CompareAndSwap(cost, cost+bytes) {
			break
		}
	}
	if c.total.Add(bytes) > c.most && bytes > 0 {
		c.relieve()
	}
}

// relieve ends connections of the process that holds most until the server holds less than its limit.
func (c *crowd) relieve() {
	var surplus []*connection
	c.mu.Lock()
	for c.total.Load() > c.most && len(c.open) > 0 {
		surplus = append(surplus, c.relieveOnce()...)
	}
	c.mu.Unlock()
	for _, conn := range surplus {
		conn.end(reasonHeld)
	}
}

// relieveOnce removes connections of the process that holds most, the most expensive first, until it no
// longer does, or there is some room. The caller holds c.mu.
func (c *crowd) relieveOnce() (removed []*connection) {
	held := map[int]int64{}
	for conn := range c.open {
		held[conn.pid] += conn.cost.Load()
	}
	var greediest int
	var most, second int64 = -1, -1
	for pid, bytes := range held {
		if bytes > most {
			greediest, most, second = pid, bytes, most
		} else {
			second = max(second, bytes)
		}
	}
	var its []*connection
	for conn := range c.open {
		if conn.pid == greediest {
			its = append(its, conn)
		}
	}
	slices.SortFunc(its, func(a, b *connection) int { return cmp.Compare(b.cost.Load(), a.cost.Load()) })
	for _, conn := range its {
		if len(removed) > 0 && (c.total.Load() < c.most/8*7 || most < second) {
			break
		}
		most -= conn.cost.Load()
		c.remove(conn)
		removed = append(removed, conn)
	}
	return removed
}

// sweep ends the connections of clients that are too slow. It runs while there are connections.
func (c *crowd) sweep() {
	tick, now := c.ticks.Add(1), time.Now()
	c.mu.Lock()
	conns := slices.Collect(maps.Keys(c.open))
	c.mu.Unlock()
	for _, conn := range conns {
		if reason := conn.overdue(now.UnixNano(), tick, c.timeout); reason != "" {
			conn.end(reason)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.penalties, func(_ int, until time.Time) bool { return now.After(until) })
	if len(c.open) == 0 || c.stopped {
		c.sweeping = false
		return
	}
	c.sweeper.Reset(c.timeout / 2)
}

// stop ends the sweeps.
func (c *crowd) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	if c.sweeper != nil {
		c.sweeper.Stop()
	}
}

// note tells the operator that a connection is ended: each one in the metrics, and in the log a line per
// reason and period.
func (c *crowd) note(conn *connection, reason string) {
	name, user := c.describe(conn.pid)
	if c.observer != nil {
		c.observer.ConnectionEnded(name, reason)
	}
	now := time.Now()
	c.mu.Lock()
	if reason != reasonDisplaced && reason != reasonRefused && reason != reasonSilent {
		c.penalties[conn.pid] = now.Add(penalty)
	}
	n := c.notes[reason]
	if n == nil {
		n = &note{}
		c.notes[reason] = n
	}
	n.count++
	count := n.count
	if now.Before(n.next) {
		c.mu.Unlock()
		return
	}
	n.count, n.next = 0, now.Add(notePeriod)
	c.mu.Unlock()
	c.logger.Info("Ending connections of a client", "reason", reason, "endpoint", conn.owner.name,
		"process", name, "pid", conn.pid, "user", user, "connections", count)
}

// penalty is how long new connections of a process wait after one was ended because of what it sent. It
// leaves time for the calls of others.
const penalty = time.Second

// wait returns how long a new connection of a process has to wait.
func (c *crowd) wait(pid int) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.penalties[pid])
}

// printable is the name of a process as the log and the metrics can have it. A process chooses its name.
func printable(name string) string {
	const longest = 64
	runes := []rune(oneLine(strings.ToValidUTF8(name, string(unicode.ReplacementChar))))
	return string(runes[:min(longest, len(runes))])
}
