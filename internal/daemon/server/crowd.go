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
	reasonSilent     = "no greeting"                  // another client needs the place
	reasonArriving   = "requests do not arrive"       // too large or too slow
	reasonNotReading = "answers are not read"
	reasonHeld       = "requests take too much memory" // of all clients, this one has most
	reasonFull       = "clients take too much memory"  // this one has little, as all the others
	reasonWatching   = "too many watches"
	reasonOpen       = "too many requests at once"
	reasonReset      = "too many requests canceled"
	reasonHeaders    = "too many headers"
)

// blameless are the reasons that say nothing about what the client sent.
var blameless = []string{reasonDisplaced, reasonRefused, reasonSilent, reasonFull}

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

// crowd is what the connections of all endpoints have in common: the memory that they take, their
// processes, and what the operator hears about them.
type crowd struct {
	logger   klog.Logger
	observer ConnectionObserver // may be nil
	timeout  time.Duration      // for a request to arrive
	most     int64              // bytes that clients can make the server hold
	total    atomic.Int64       // bytes that they do
	ticks    atomic.Int64       // sweeps so far, from 1

	relieving sync.Mutex

	mu        sync.Mutex
	endpoints []*places
	joined    int // connections
	processes map[int]*process
	notes     map[string]*note
	penalties map[int]time.Time // when the next connection of a process is let in
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
	refused     atomic.Int64 // requests, since the last sweep
	waiting     atomic.Int64 // connections that are not let in yet, because of a penalty

	canceledMu sync.Mutex
	second     int64 // for which canceled counts
	canceled   int64 // requests
}

// cancel counts canceled requests, and returns how many there were in this second.
func (p *process) cancel(n int64, now time.Time) int64 {
	p.canceledMu.Lock()
	defer p.canceledMu.Unlock()
	if second := now.Unix(); second > p.second {
		p.second, p.canceled = second, 0
	}
	p.canceled += n
	return p.canceled
}

// note is what has not been logged.
type note struct {
	connections int
	by          map[culprit]int
	next        time.Time // when the next line may be written
}

// culprit is a client as the log names it.
type culprit struct {
	pid                  int
	name, user, endpoint string
}

// maxCulprits is how many clients are counted between two lines about the same reason.
const maxCulprits = 64

// add counts a connection of a client.
func (n *note) add(c culprit) {
	n.connections++
	if _, known := n.by[c]; known || len(n.by) < maxCulprits {
		n.by[c]++
	}
}

// worst returns the client with most connections.
func (n *note) worst() (worst culprit) {
	for c, count := range n.by {
		if count > n.by[worst] {
			worst = c
		}
	}
	return worst
}

func newCrowd(logger klog.Logger, cfg Config) *crowd {
	observer, _ := cfg.Observer.(ConnectionObserver)
	c := &crowd{
		logger: logger, observer: observer, timeout: cfg.ArrivalTimeout, most: cfg.MaxHeldBytes,
		processes: map[int]*process{}, notes: map[string]*note{}, penalties: map[int]time.Time{},
	}
	c.ticks.Store(1)
	return c
}

// add adds the places of an endpoint.
func (c *crowd) add(p *places) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endpoints = append(c.endpoints, p)
}

// all returns the connections of all endpoints.
func (c *crowd) all() (conns []*connection) {
	c.mu.Lock()
	endpoints := c.endpoints
	c.mu.Unlock()
	for _, p := range endpoints {
		conns = append(conns, p.all()...)
	}
	return conns
}

// join is called before a connection gets a place.
func (c *crowd) join(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	client := c.processes[conn.pid]
	if client == nil {
		client = &process{}
		if conn.pid != 0 { // unknown processes may all be different
			c.processes[conn.pid] = client
		}
	}
	if client.connections == 0 {
		client.described = false // perhaps another process has its number now
	}
	client.connections++
	c.joined++
	conn.client = client
	conn.cost.Store(0)
	if !c.sweeping && !c.stopped {
		c.sweeping = true
		c.sweeper = time.AfterFunc(c.timeout/2, c.sweep)
	}
}

// greet is called when a client has greeted.
func (c *crowd) greet(conn *connection) {
	c.charge(conn, connectionCost-silentCost)
	name, _ := c.describe(conn)
	c.mu.Lock()
	conn.name = name
	if conn.cost.Load() != gone && c.observer != nil {
		conn.counted = true
		c.observer.ConnectionOpened(name)
	}
	c.mu.Unlock()
}

// describe returns the name and the user of a client's process. It asks the system once while the process
// has connections.
func (c *crowd) describe(conn *connection) (name, user string) {
	c.mu.Lock()
	client := conn.client
	if client.described {
		defer c.mu.Unlock()
		return client.name, client.user
	}
	c.mu.Unlock()
	name, user = pipe.Describe(conn.pid)
	name = printable(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	client.name, client.user, client.described = name, user, true
	return name, user
}

// leave forgets what a connection holds; it can be called again.
func (c *crowd) leave(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cost := conn.cost.Swap(gone)
	if cost == gone {
		return
	}
	c.total.Add(-cost)
	c.joined--
	conn.client.connections--
	if conn.counted {
		c.observer.ConnectionClosed(conn.name)
	}
}

// gone is the cost of a connection that has left.
const gone = math.MinInt64

// charge adds to what a connection holds.
func (c *crowd) charge(conn *connection, bytes int64) {
	if bytes == 0 {
		return
	}
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

// relieve ends connections until there is some room: strangers first if they hold more than their share,
// the oldest first. Otherwise those go that wait for no answer, and among them the one that was silent for
// longest; then the newest ones. In all cases a process that holds much goes before others, its most expensive
// connection first.
func (c *crowd) relieve() {
	c.relieving.Lock()
	defer c.relieving.Unlock()
	if c.total.Load() <= c.most {
		return // the caller before has made room
	}
	type holder struct {
		conn     *connection
		cost     int64
		process  int64 // what its process holds, or little
		stranger bool
		working  int64 // 1 if it waits for an answer
		heard    int64
	}
	little := c.most / littleShare
	conns := c.all()
	// The client to blame goes on meanwhile. Others do not pay for that: total is of now.
	holders, byProcess, total, strangers := make([]holder, 0, len(conns)), map[*process]int64{}, int64(0), int64(0)
	for _, conn := range conns {
		cost := conn.cost.Load()
		if cost == gone {
			continue
		}
		stranger := conn.stranger.Load()
		if stranger {
			strangers += cost
		}
		total += cost
		byProcess[conn.client] += cost
		holders = append(holders, holder{conn: conn, cost: cost, stranger: stranger, working: min(1, conn.working.Load()), heard: conn.heard.Load()})
	}
	for i := range holders {
		holders[i].process = max(byProcess[holders[i].conn.client], little)
	}
	enough := c.most / 8 * 7
	end := func(h holder) {
		switch {
		case !h.conn.greeted():
			h.conn.end(reasonSilent)
		case h.process > little:
			h.conn.end(reasonHeld)
		default:
			h.conn.end(reasonFull)
		}
		total -= h.cost
		if h.stranger {
			strangers -= h.cost
		}
	}
	if strangers > c.most/strangersShare {
		slices.SortFunc(holders, func(a, b holder) int {
			return cmp.Or(cmp.Compare(b.process, a.process), cmp.Compare(a.conn.entered, b.conn.entered))
		})
		for _, h := range holders {
			if h.stranger && strangers > c.most/strangersShare/2 && total > enough {
				end(h)
			}
		}
	}
	slices.SortFunc(holders, func(a, b holder) int {
		order := cmp.Compare(b.process, a.process)
		if order == 0 && a.process > little {
			order = cmp.Compare(b.cost, a.cost)
		}
		if order = cmp.Or(order, cmp.Compare(a.working, b.working)); order == 0 && a.working > 0 {
			return cmp.Compare(b.conn.entered, a.conn.entered)
		}
		return cmp.Or(order, cmp.Compare(a.heard, b.heard))
	})
	for _, h := range holders {
		if total <= enough {
			return
		}
		end(h)
	}
}

// sweep ends the connections of clients that are too slow. It runs while there are connections.
func (c *crowd) sweep() {
	tick, now := c.ticks.Add(1), time.Now()
	for _, conn := range c.all() {
		conn.client.refused.Store(0)
		if reason := conn.overdue(now.UnixNano(), tick, c.timeout); reason != "" {
			conn.end(reason)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.penalties, func(_ int, until time.Time) bool { return now.After(until) })
	maps.DeleteFunc(c.processes, func(_ int, p *process) bool { return p.connections == 0 })
	if c.joined == 0 || c.stopped {
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
	name, user := c.describe(conn)
	if c.observer != nil {
		c.observer.ConnectionEnded(name, reason)
	}
	now := time.Now()
	c.mu.Lock()
	if !slices.Contains(blameless, reason) && conn.pid != 0 {
		if until := now.Add(penalty); until.After(c.penalties[conn.pid]) {
			c.penalties[conn.pid] = until
		}
	}
	n := c.notes[reason]
	if n == nil {
		n = &note{by: map[culprit]int{}}
		c.notes[reason] = n
	}
	n.add(culprit{conn.pid, name, user, conn.owner.name})
	if now.Before(n.next) {
		c.mu.Unlock()
		return
	}
	told, worst := *n, n.worst()
	*n = note{by: map[culprit]int{}, next: now.Add(notePeriod)}
	c.mu.Unlock()
	c.logger.Info("Ending connections of a client", "reason", reason, "endpoint", worst.endpoint,
		"process", worst.name, "pid", worst.pid, "user", worst.user, "connections", told.by[worst], "ofAllClients", told.connections)
}

const (
	// penalty is how long new connections of a process wait after one was ended because of what it sent.
	// It leaves time for the calls of others.
	penalty = time.Second
	// penaltyPace is the time between two connections that have waited. When one ends, hundreds of goroutines
	// for its requests end with it: at 200 connections a second, others wait for 100 ms.
	penaltyPace = 50 * time.Millisecond
	// maxWaiting is the number of connections of a process that wait, more are refused. A client that waits is
	// quiet, while one that is refused comes back at once.
	maxWaiting = 256
	// maxPenalty is the longest wait. Clients of gRPC give up after 20 seconds.
	maxPenalty = penalty + maxWaiting*penaltyPace
)

// wait returns how long a new connection of a process has to wait.
func (c *crowd) wait(pid int) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	until := c.penalties[pid]
	wait := time.Until(until)
	if wait > 0 && wait < maxPenalty {
		c.penalties[pid] = until.Add(penaltyPace)
	}
	return wait
}

// printable is the name of a process as the log and the metrics can have it. A process chooses its name.
func printable(name string) string {
	const longest = 64
	runes := []rune(oneLine(strings.ToValidUTF8(name, string(unicode.ReplacementChar))))
	return string(runes[:min(longest, len(runes))])
}
