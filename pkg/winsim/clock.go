package winsim

import (
	"context"
	"slices"
	"sync"
	"time"
)

// epoch is the start of a node's virtual time.
var epoch = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// clock is a node's time, its pending events, and the lock of its state. It is below all objects of a node, which
// share it.
//
// Nothing runs in the background: due events run at the next access to the node. Callers cannot
// see the difference.
type clock struct {
	mu      mutex
	real    bool          // never changes; mu guards the others
	virtual time.Duration // since epoch, if not real
	instant time.Time     // of the running event, if any
	step    time.Duration // by which the clock was set
	events  []event       // the next one first
}

// Now is the node's time. Virtual time advances only in Sleep; the model can ask for real time.
func (n *Node) Now() time.Time { return n.clock.Now() }

// Elapsed is the node's time by a clock that StepClock does not set.
func (n *Node) Elapsed() time.Duration { return n.clock.Elapsed() }

// StepClock sets the node's clock forward by d, or back, as an operator or a time service does. Now and the dates of
// files jump; what takes time, and the time since Windows started, do not.
func (n *Node) StepClock(d time.Duration) {
	n.clock.mu.Lock()
	defer n.clock.mu.Unlock()
	n.clock.step += d
}

// Sleep waits on the node's clock. In virtual time it advances the clock by d, runs the events
// that are due and returns at once. Concurrent sleeps add up.
func (n *Node) Sleep(ctx context.Context, d time.Duration) error { return n.clock.Sleep(ctx, d) }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.date()
}

func (c *clock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real {
		return time.Since(begun)
	}
	return c.virtual
}

// begun is where Elapsed begins in real time.
var begun = time.Now()

// date is what the clock shows, and what files get.
func (c *clock) date() time.Time { return c.now().Add(c.step) }

// now is the time of events, which no step changes.

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

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.real {
		return sleep(ctx, d, nil)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.virtual += max(d, 0)
	c.changed()
	c.runDueEvents()
	return nil
}

// sleep waits in real time, at most until enough is closed.
func sleep(ctx context.Context, d time.Duration, enough <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-enough:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lock begins every access to a node's state, and returns what ends it. It runs the events that are due.
func (c *clock) lock() (unlock func()) {
	c.mu.Lock()
	c.runDueEvents()
	if c.mu.afterLock != nil {
		c.mu.afterLock()
	}
	return c.mu.Unlock
}

// mutex is a node's lock.
type mutex struct {
	sync.Mutex
	afterLock       func()     // nil for nothing; called by lock
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

// changed marks a change of what Model describes. mu is held.
func (c *clock) changed() { c.mu.dirty = true }

// runDueEvents runs the events that are due, in order. mu is held.
func (c *clock) runDueEvents() {
	for now := c.now(); len(c.events) > 0 && !c.events[0].Due.After(now); {
		e := c.events[0]
		c.events = slices.Delete(c.events, 0, 1)
		c.instant = e.Due
		if !e.void() {
			e.run()
		}
		c.instant = time.Time{}
		c.changed()
	}
}

// after runs an event after d, or now if d is 0. mu is held, now and when the event runs.
func (c *clock) after(d time.Duration, e event) {
	if d <= 0 {
		e.run()
		return
	}
	e.Due = c.now().Add(d)
	c.plan(e)
}

// plan adds an event after those that are due at the same time.
func (c *clock) plan(e event) {
	at, _ := slices.BinarySearchFunc(c.events, e.Due, func(other event, due time.Time) int {
		if other.Due.After(due) {
			return 1
		}
		return -1
	})
	c.events = slices.Insert(c.events, at, e)
}

// event is something that Windows will do later.
type event struct {
	Event          // as Model describes it
	of      any    // a disk, volume, service or session
	run     func() // the clock's mu is held
	changes *int   // of the object; nil if the event happens in any case
	planned int    // its changes when the event was planned
}

// void reports whether another change of the object has replaced the event.
func (e event) void() bool { return e.changes != nil && *e.changes != e.planned }
