package tasks

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Calls counts calls that their callers have given up on, by kind and by object. Calls of one
// kind hang for the same reason. Nothing can interrupt a call to Windows: when the caller's context
// ends, the call keeps its OS thread until it returns. The counts show where to start no further
// calls. The zero value is ready to use.
type Calls[K comparable] struct {
	abandoned atomic.Int64
	count     atomic.Int64 // of those in stuck

	mu    sync.Mutex
	stuck map[K]map[string][]*Call[K] // no empty map or slice stays
}

// Call is one call. It belongs to its caller, who waits for it, and to the goroutine that
// makes it.
type Call[K comparable] struct {
	calls  *Calls[K]
	kind   K
	object string
	done   chan struct{}
	state  atomic.Int32
}

// The states of a call. It leaves the first one once.
const (
	running int32 = iota
	returned
	abandoned
)

// Begin returns a call that runs from now on. It is not counted before Abandon.
func (c *Calls[K]) Begin(kind K, object string) *Call[K] {
	return &Call[K]{calls: c, kind: kind, object: object, done: make(chan struct{})}
}

// Abandon is for the caller that stops waiting: the call counts as stuck until End. It returns
// false if the call has returned; its result is ready then.
func (c *Call[K]) Abandon() bool {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	if !c.state.CompareAndSwap(running, abandoned) {
		return false
	}
	c.calls.abandoned.Add(1)
	if c.calls.stuck == nil {
		c.calls.stuck = map[K]map[string][]*Call[K]{}
	}
	objects := c.calls.stuck[c.kind]
	if objects == nil {
		objects = map[string][]*Call[K]{}
		c.calls.stuck[c.kind] = objects
	}
	objects[c.object] = append(objects[c.object], c)
	c.calls.count.Add(1)
	return true
}

// Return is for the goroutine whose call has returned. It reports whether the caller still
// waits for the result.
func (c *Call[K]) Return() bool {
	return c.state.CompareAndSwap(running, returned) || c.state.Load() == returned
}

// End is the last thing that the goroutine of a call does: the call is no longer stuck.
func (c *Call[K]) End() {
	if !c.Return() {
		c.calls.remove(c)
	}
	close(c.done)
}

// Done is closed by End.
func (c *Call[K]) Done() <-chan struct{} { return c.done }

func (c *Calls[K]) remove(call *Call[K]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count.Add(-1)
	objects := c.stuck[call.kind]
	objects[call.object] = slices.DeleteFunc(objects[call.object], func(other *Call[K]) bool { return other == call })
	if len(objects[call.object]) == 0 {
		delete(objects, call.object)
	}
	if len(objects) == 0 {
		delete(c.stuck, call.kind)
	}
}

// On returns one of the calls of a kind that are stuck on an object, or nil.
func (c *Calls[K]) On(kind K, object string) *Call[K] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if calls := c.stuck[kind][object]; len(calls) > 0 {
		return calls[0]
	}
	return nil
}

// Count returns how many calls of a kind are stuck, and on how many objects.
func (c *Calls[K]) Count(kind K) (calls, objects int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, onOne := range c.stuck[kind] {
		calls += len(onOne)
	}
	return calls, len(c.stuck[kind])
}

// Stuck returns how many calls of all kinds are stuck.
func (c *Calls[K]) Stuck() int { return int(c.count.Load()) }

// Abandoned returns how many calls were abandoned so far, also those that have returned since.
func (c *Calls[K]) Abandoned() int64 { return c.abandoned.Load() }
