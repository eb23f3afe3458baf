package winsim

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// epoch is when the virtual time of a node begins.
var epoch = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// clock is a node's time and what is going to happen in it. n.mu guards it.
//
// Nothing runs in the background: events that are due happen when somebody next looks at
// the node, which nobody can tell from their happening in time.
type clock struct {
	real    bool
	virtual time.Duration // since epoch, if not real
	instant time.Time     // of the event that is happening, if one is
	events  events
	planned int
}

// Now is the node's time. It is virtual and moves only by sleeping, unless the model
// asks for real time.
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

// Sleep waits on the node's clock. Virtual time moves on by d and the call returns at
// once, so that tests do not wait; what was to happen until then has happened. Several
// sleepers at once add up.
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
	n.settle()
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

// lock begins every access to a node's state: what is due has happened after it.
func (n *Node) lock() {
	n.mu.Lock()
	n.settle()
	if n.mirror != nil {
		n.mirror.arrange()
	}
}

// mutex is a node's lock.
type mutex struct {
	sync.Mutex
	leave func() // runs before it is unlocked; nil for nothing
	dirty bool   // the state was changed since it was locked
	kept  *kept  // where the state is kept, if it is
	doom  doom   // ends the process with the next change
}

// Unlock ends an access to a node's state. What was changed is kept when it returns.
func (m *mutex) Unlock() {
	if m.leave != nil {
		m.leave()
	}
	if !m.dirty {
		m.Mutex.Unlock()
		return
	}
	m.dirty = false
	kept, change, doom := m.kept, uint64(0), m.doom
	if kept != nil {
		kept.changes++
		change = kept.changes
	}
	m.Mutex.Unlock()
	if kept != nil {
		kept.wait(change)
	}
	doom.strike()
}

// changed says that something changed that Save writes. n.mu is held.
func (n *Node) changed() { n.mu.dirty = true }

// settle lets everything happen that is due, in order. n.mu is held.
func (n *Node) settle() {
	c := &n.clock
	for now := c.now(); len(c.events) > 0 && !c.events[0].due.After(now); {
		e := heap.Pop(&c.events).(*event)
		c.instant = e.due
		e.what.happen(n)
		c.instant = time.Time{}
		n.changed()
	}
}

// after makes something happen in d from now, or at once if d is 0. n.mu is held, now and
// when it happens.
func (n *Node) after(d time.Duration, what happening) {
	if d <= 0 {
		what.happen(n)
		return
	}
	n.plan(n.clock.now().Add(d), what)
}

func (n *Node) plan(due time.Time, what happening) {
	n.clock.planned++
	heap.Push(&n.clock.events, &event{due: due, order: n.clock.planned, what: what})
}

type event struct {
	due   time.Time
	order int // of planning, for events of the same time
	what  happening
}

// happening is something that Windows will do by itself. It is data rather than a function,
// because what is on its way is part of a node's state, see Save.
type happening interface {
	// happen does it. n.mu is held.
	happen(n *Node)
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

// Push is of heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(*event)) }

// Pop is of heap.Interface.
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return x
}
