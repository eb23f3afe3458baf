package winsim

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// epoch is the start of a node's virtual time.
var epoch = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// clock is a node's time and its pending events. n.mu guards it.
//
// Nothing runs in the background: due events run at the next access to the node. Callers cannot
// see the difference.
type clock struct {
	real    bool
	virtual time.Duration // since epoch, if not real
	instant time.Time     // of the running event, if any
	events  events
	planned int
}

// Now is the node's time. Virtual time advances only in Sleep; the model can ask for real time.
func (n *Node) Now() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.clock.now()
}

func (c *clock) now() time.Time {
	switch {
	case !c.instant.IsZero():
		return c.instant
	case c.real:
		return time.Now()
	default:
		return epoch.Add(c.virtual)
	}
}

// Sleep waits on the node's clock. In virtual time it advances the clock by d, runs the events
// that are due and returns at once. Concurrent sleeps add up.
func (n *Node) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if n.clock.real { // never changes
		return sleep(ctx, d)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clock.virtual += max(d, 0)
	n.changed()
	n.runDueEvents()
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lock begins every access to a node's state. It runs the events that are due.
func (n *Node) lock() {
	n.mu.Lock()
	n.runDueEvents()
	if n.mirror != nil {
		n.mirror.update()
	}
}

// mutex is a node's lock.
type mutex struct {
	sync.Mutex
	beforeUnlock    func()     // nil for nothing
	dirty           bool       // the state has changed since Lock
	stateFile       *stateFile // nil without one
	killAfterChange bool       // see CrashAfter
}

// Unlock ends an access to a node's state. It returns after changes are on disk.
func (m *mutex) Unlock() {
	if m.beforeUnlock != nil {
		m.beforeUnlock()
	}
	if !m.dirty {
		m.Mutex.Unlock()
		return
	}
	m.dirty = false
	file, change, kill := m.stateFile, uint64(0), m.killAfterChange
	if file != nil {
		file.changes++
		change = file.changes
	}
	m.Mutex.Unlock()
	if file != nil {
		file.wait(change)
	}
	if kill {
		killProcess()
	}
}

// changed marks a change of what Save writes. n.mu is held.
func (n *Node) changed() { n.mu.dirty = true }

// runDueEvents runs the events that are due, in order. n.mu is held.
func (n *Node) runDueEvents() {
	c := &n.clock
	for now := c.now(); len(c.events) > 0 && !c.events[0].due.After(now); {
		e := heap.Pop(&c.events).(*event)
		c.instant = e.due
		e.action.run(n)
		c.instant = time.Time{}
		n.changed()
	}
}

// after runs an action after d, or now if d is 0. n.mu is held, now and when the action runs.
func (n *Node) after(d time.Duration, what eventAction) {
	if d <= 0 {
		what.run(n)
		return
	}
	n.plan(n.clock.now().Add(d), what)
}

func (n *Node) plan(due time.Time, what eventAction) {
	n.clock.planned++
	heap.Push(&n.clock.events, &event{due: due, order: n.clock.planned, action: what})
}

type event struct {
	due    time.Time
	order  int // breaks ties of due
	action eventAction
}

// eventAction is something that Windows will do later. It is data and not a function, because
// Save writes pending events.
type eventAction interface {
	// run does it. n.mu is held.
	run(n *Node)
}

// events is a heap, the next event first.
type events []*event

func (e events) Len() int { return len(e) }

func (e events) Less(i, j int) bool {
	if e[i].due.Equal(e[j].due) {
		return e[i].order < e[j].order
	}
	return e[i].due.Before(e[j].due)
}

func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(*event)) }

// Pop implements heap.Interface.
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return x
}
