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

// Now is the node's time. Virtual time advances only in Sleep.
func (n *Node) Now() time.Time { return n.clock.Now() }

// StepClock sets the node's clock forward by d, or back. Now and the dates of files jump; what takes time does not.
func (n *Node) StepClock(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.step += d
}

// Sleep waits on the node's clock. Virtual time advances by d at once. Concurrent sleeps add up.
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
		return sleep(ctx, d)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.virtual += max(d, 0)
	c.runDueEvents()
	return nil
}

// sleep waits in real time.
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

// lock begins every access to a node's state, and returns what ends it. It runs the events that are due.
func (c *clock) lock() (unlock func()) {
	c.mu.Lock()
	c.runDueEvents()
	if c.mu.afterLock != nil {
		c.mu.afterLock()
	}
	return c.mu.Unlock
}

type mutex struct {
	sync.Mutex
	afterLock, beforeUnlock func() // nil for nothing; lock calls the first
}

// Unlock ends an access to a node's state.
func (m *mutex) Unlock() {
	if m.beforeUnlock != nil {
		m.beforeUnlock()
	}
	m.Mutex.Unlock()
}

// runDueEvents runs the events that are due, in order. mu is held.
func (c *clock) runDueEvents() {
	for now := c.now(); len(c.events) > 0 && !c.events[0].due.After(now); {
		e := c.events[0]
		c.events = slices.Delete(c.events, 0, 1)
		c.instant = e.due
		e.run()
		c.instant = time.Time{}
	}
}

// after runs an event after d and those that are due at the same time, or now if d is 0. mu is held, now and when it runs.
func (c *clock) after(d time.Duration, run func()) {
	if d <= 0 {
		run()
		return
	}
	due := c.now().Add(d)
	at := slices.IndexFunc(c.events, func(other event) bool { return other.due.After(due) })
	if at < 0 {
		at = len(c.events)
	}
	c.events = slices.Insert(c.events, at, event{due, run})
}

// afterUnlessChanged is after for an event that another change of its object replaces.
func (c *clock) afterUnlessChanged(changes *int, d time.Duration, run func()) {
	planned := *changes
	c.after(d, func() {
		if *changes == planned {
			run()
		}
	})
}

// event is something that Windows will do later.
type event struct {
	due time.Time
	run func() // the clock's mu is held
}
