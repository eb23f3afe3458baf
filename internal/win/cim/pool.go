package cim

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// The limits of the threads for storage.
const (
	// maxThreads is how many calls run at the same time. One thread is usually enough, but
	// then a disk that is slow to format would delay all others.
	maxThreads = 4
	// maxStuck is how many abandoned calls may be stuck. At the limit WMI does not work, and
	// further calls fail at once.
	maxStuck = 3
)

// errSameStuck is the answer while an earlier call about the same object is stuck.
var errSameStuck = fmt.Errorf("%w: an earlier call to WMI about it has not come back", winerr.Unavailable)

// pool is OS threads with a connection each. They start when they are needed, and stay.
type pool struct {
	connect    func() (connection, error) // called on the thread
	maxThreads int
	maxStuck   int
	// The part of these that calls about something unproven may take; 0 means no limit.
	maxUnproven      int
	maxUnprovenStuck int

	calls tasks.Calls[kind] // by kind, and by what they are about

	mu      sync.Mutex
	work    sync.Cond // the queue is not empty, or the pool is closed
	queue   []*request
	threads int // those that serve, without those whose callers have left
	idle    int // and have nothing to do
	closed  bool

	proven   map[string]bool // what the last call about came back promptly
	unproven int             // calls about something else that run, without those that are stuck
}

// kind is a kind of calls whose stuck ones are counted together.
type kind struct {
	unproven  bool
	inspector bool // as win.IsInspector says
}

func newPool(connect func() (connection, error), maxThreads, maxStuck int) *pool {
	p := &pool{connect: connect, maxThreads: maxThreads, maxStuck: maxStuck, proven: map[string]bool{}}
	p.work.L = &p.mu
	return p
}

// reserve keeps threads for calls about something of which the last call came back promptly,
// so that dead servers cannot take all threads.
func (p *pool) reserve(maxUnproven, maxUnprovenStuck int) *pool {
	p.maxUnproven, p.maxUnprovenStuck = maxUnproven, maxUnprovenStuck
	return p
}

const (
	// promptAnswer is how soon a call comes back from a server that is there.
	promptAnswer = 5 * time.Second
	// maxProven bounds the memory of proven servers. When it is full, all are forgotten.
	maxProven = 1000
)

// request is one call on its way to a thread and back.
type request struct {
	about     string // what it may change, empty if it changes nothing
	inspector bool
	run       func(connection) error
	guard     func(do func() error) error // turns a panic into an error, and logs it
	done      chan error                  // with room, because the caller may have left

	// Guarded by the pool.
	call  *tasks.Call[kind] // nil while it is queued
	kind  kind              // of call
	begun time.Time
}

// do runs f on a thread, and waits for it or for the end of ctx. What f writes can be read
// only if it has succeeded; otherwise f may still run.
//
// about names what f may change. While an abandoned call about it is stuck, further ones
// fail: the stuck one may still change it.
func (p *pool) do(ctx context.Context, about string, f func(connection) error) error {
	return observed(func() error { return p.wait(ctx, about, f) })
}

func (p *pool) wait(ctx context.Context, about string, f func(connection) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &request{
		about: about, inspector: win.IsInspector(ctx), run: f, done: make(chan error, 1),
		guard: func(do func() error) error {
			return tasks.Recover(ctx, func(context.Context) error { return do() })
		},
	}
	if err := p.enqueue(r); err != nil {
		return err
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if p.leave(r) {
			return ctx.Err()
		}
		return <-r.done
	}
}

// enqueue hands a request to the threads, and starts one if all are busy.
func (p *pool) enqueue(r *request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.refuse(r); err != nil {
		return err
	}
	p.queue = append(p.queue, r)
	if p.idle < len(p.queue) && p.threads < p.maxThreads {
		p.threads++
		p.startThread()
	}
	p.work.Signal()
	return nil
}

// refuse says why a request cannot run now, if so. It is called with the lock held.
func (p *pool) refuse(r *request) error {
	all, unproven := p.stuckCalls(r.inspector)
	switch {
	case r.about != "" && p.stuckOn(r.about):
		return errSameStuck
	case all >= p.maxStuck, p.isUnproven(r) && unproven >= p.maxUnprovenStuck:
		return fmt.Errorf("%w: %d earlier calls to WMI have not come back", winerr.Unavailable, all)
	default:
		return nil
	}
}

// stuckCalls returns how many calls are stuck, and how many of them are unproven. Those of an
// inspector are counted separately, so that they block only inspectors.
func (p *pool) stuckCalls(inspector bool) (all, unproven int) {
	proven, _ := p.calls.Count(kind{inspector: inspector})
	unproven, _ = p.calls.Count(kind{inspector: inspector, unproven: true})
	return proven + unproven, unproven
}

// stuckOn reports whether a call about an object is stuck, of any kind.
func (p *pool) stuckOn(about string) bool {
	return slices.ContainsFunc([]kind{{}, {unproven: true}, {inspector: true}, {true, true}}, func(k kind) bool {
		return p.calls.On(k, about) != nil
	})
}

// startThread is called with the lock held.
func (p *pool) startThread() {
	p.idle++
	go p.serve()
}

// leave gives up on a request. If it runs, another thread replaces the one that runs it. It
// returns false if the request has just been finished.
func (p *pool) leave(r *request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.call == nil:
		p.queue = slices.DeleteFunc(p.queue, func(other *request) bool { return other == r })
	case r.call.Abandon():
		if r.kind.unproven {
			p.unproven--
		}
		delete(p.proven, r.about)
		p.startThread()
		p.work.Broadcast()
	default:
		return false
	}
	return true
}

func (p *pool) serve() {
	// Never unlocked: the thread ends with the goroutine, and with it all that COM has left there.
	runtime.LockOSThread()
	var c connection
	for r := p.next(); r != nil; r = p.next() {
		var err error
		if c, err = p.attend(c, r); !p.finish(r) {
			p.endStuck(r, c)
			return
		}
		r.done <- err
	}
	if c != nil {
		c.close()
	}
}

// next waits for a request. It returns nil after close, when the queue is empty.
func (p *pool) next() *request {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.eligible()
	for ; i < 0; i = p.eligible() {
		if p.closed && len(p.queue) == 0 {
			return nil
		}
		p.work.Wait()
	}
	r := p.queue[i]
	p.queue = slices.Delete(p.queue, i, i+1)
	p.idle--
	r.kind, r.begun = kind{p.isUnproven(r), r.inspector}, time.Now()
	r.call = p.calls.Begin(r.kind, r.about)
	if r.kind.unproven {
		p.unproven++
	}
	return r
}

// eligible returns the index in the queue of the first request that may run now, or -1.
func (p *pool) eligible() int {
	return slices.IndexFunc(p.queue, func(r *request) bool {
		_, unprovenStuck := p.stuckCalls(r.inspector)
		return !p.isUnproven(r) || p.unproven+unprovenStuck < p.maxUnproven
	})
}

// isUnproven reports whether it is unknown that what a request is about answers promptly.
func (p *pool) isUnproven(r *request) bool {
	return p.maxUnproven > 0 && r.about != "" && !p.proven[r.about]
}

// prove notes how soon a request came back.
func (p *pool) prove(r *request) {
	if p.maxUnproven == 0 || r.about == "" {
		return
	}
	if time.Since(r.begun) > promptAnswer {
		delete(p.proven, r.about)
		return
	}
	if len(p.proven) >= maxProven {
		clear(p.proven)
	}
	p.proven[r.about] = true
}

// finish makes the thread ready for another request before the caller learns the result of
// this one, so that the caller's next request gets the same thread. It returns false if the
// caller has left.
func (p *pool) finish(r *request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !r.call.Return() {
		return false
	}
	p.idle++
	if r.kind.unproven {
		p.unproven--
	}
	p.prove(r)
	if len(p.queue) > 0 {
		p.work.Broadcast() // others may run now
	}
	return true
}

// endStuck ends a thread whose caller has left. Its call counts as stuck until the connection
// is closed, because that may hang too.
func (p *pool) endStuck(r *request, c connection) {
	if c != nil {
		_ = r.guard(func() error { c.close(); return nil }) // a panic is logged
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r.call.End()
	if r.kind.unproven {
		p.work.Broadcast()
	}
}

// attend runs a request, and returns the connection for the next one. After a panic that is
// nil: go-ole panics about values it does not know, and leaves the connection in an unknown
// state.
func (p *pool) attend(c connection, r *request) (next connection, err error) {
	err = r.guard(func() (err error) {
		next, err = p.attempt(c, r)
		return err
	})
	return next, err
}

func (p *pool) attempt(c connection, r *request) (next connection, err error) {
	if err := p.recheck(r); err != nil {
		return c, err
	}
	if c == nil {
		if c, err = p.connect(); err != nil {
			return nil, err
		}
	}
	return c, r.run(c)
}

// recheck is refuse for a request that has waited in the queue, while others may have got
// stuck.
func (p *pool) recheck(r *request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refuse(r)
}

// close ends the idle threads now, and each other one when it becomes idle.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.work.Broadcast()
}
