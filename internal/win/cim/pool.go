package cim

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// The limits of the threads for storage.
const (
	// maxThreads is how many calls run at the same time. One thread would do most of the
	// time, but then a disk that is slow to format would hold up all others.
	maxThreads = 4
	// maxStuck is how many abandoned calls may not have come back. With so many WMI is
	// of no use, and further calls fail at once.
	maxStuck = 3
)

// errSameStuck is the answer while a call is stuck that is about the same.
var errSameStuck = fmt.Errorf("%w: an earlier call to WMI about it has not come back", winerr.Unavailable)

// pool is OS threads with a connection each. They start when they are needed, and stay.
type pool struct {
	connect    func() (connection, error) // called on the thread
	maxThreads int
	maxStuck   int
	// Of these, what calls may take that are about something unproven; 0 is no limit.
	maxUnproven      int
	maxUnprovenStuck int

	mu        sync.Mutex
	work      sync.Cond // the queue is not empty, or the pool is closed
	queue     []*request
	threads   int            // those that serve
	idle      int            // and have nothing to do
	stuck     int            // those that serve no more, because their callers have left them
	stuckOn   map[string]int // of those, by what they are about; 0 is not kept
	abandoned int64
	closed    bool

	proven        map[string]bool // what the last call about came back promptly
	unproven      int             // calls about something else that run
	unprovenStuck int             // or are stuck
}

func newPool(connect func() (connection, error), maxThreads, maxStuck int) *pool {
	p := &pool{connect: connect, maxThreads: maxThreads, maxStuck: maxStuck, stuckOn: map[string]int{}, proven: map[string]bool{}}
	p.work.L = &p.mu
	return p
}

// reserve keeps threads for calls about something of which the last call came back promptly:
// however many servers are gone, they cannot take all.
func (p *pool) reserve(maxUnproven, maxUnprovenStuck int) *pool {
	p.maxUnproven, p.maxUnprovenStuck = maxUnproven, maxUnprovenStuck
	return p
}

const (
	// promptly is how soon a call comes back from a server that is there.
	promptly = 5 * time.Second
	// maxProven bounds what is remembered. Who names more servers begins anew.
	maxProven = 1000
)

// request is one call on its way to a thread and back.
type request struct {
	about string // what it may change, empty if it changes nothing
	run   func(connection) error
	done  chan error // with room, since nobody may be there to receive

	// Guarded by the pool.
	state    state
	unproven bool
	begun    time.Time
}

type state int

const (
	queued state = iota
	running
	finished
	abandoned
)

// do runs f on a thread, and waits for it or for the end of ctx. What f writes can be read
// only if it has succeeded; otherwise it may still be at it.
//
// About names what f may change. While a call about it that was abandoned has not come
// back, further ones fail: nobody knows what that one will still do.
func (p *pool) do(ctx context.Context, about string, f func(connection) error) error {
	return observed(func() error { return p.wait(ctx, about, f) })
}

func (p *pool) wait(ctx context.Context, about string, f func(connection) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &request{about: about, run: f, done: make(chan error, 1)}
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
	switch {
	case r.about != "" && p.stuckOn[r.about] > 0:
		return errSameStuck
	case p.stuck >= p.maxStuck, p.isUnproven(r) && p.unprovenStuck >= p.maxUnprovenStuck:
		return fmt.Errorf("%w: %d earlier calls to WMI have not come back", winerr.Unavailable, p.stuck)
	default:
		return nil
	}
}

// startThread is called with the lock held.
func (p *pool) startThread() {
	p.idle++
	go p.serve()
}

// leave gives up on a request. If a thread is at it already, another one takes the place
// of that thread. It returns false if the request has just been finished.
func (p *pool) leave(r *request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.state {
	case queued:
		p.queue = slices.DeleteFunc(p.queue, func(other *request) bool { return other == r })
	case running:
		r.state = abandoned
		p.abandoned++
		p.stuck++
		p.stuckOn[r.about]++
		if r.unproven {
			p.unproven--
			p.unprovenStuck++
		}
		delete(p.proven, r.about)
		p.startThread()
		p.work.Broadcast()
	default:
		return false
	}
	return true
}

// serve is the life of a thread.
func (p *pool) serve() {
	// Never unlocked: with the goroutine ends the thread, and all that COM has left there.
	runtime.LockOSThread()
	var c connection
	for r := p.next(); r != nil; r = p.next() {
		var err error
		if c, err = p.attend(c, r); !p.finish(r) {
			defer p.unstuck(r) // after close, which may hang too
			break
		}
		r.done <- err
	}
	if c != nil {
		c.close()
	}
}

// next waits for a request. Nil means that there will be no more.
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
	r.state, r.unproven, r.begun = running, p.isUnproven(r), time.Now()
	if r.unproven {
		p.unproven++
	}
	return r
}

// eligible returns the place in the queue of the first request that may run now, or -1.
func (p *pool) eligible() int {
	return slices.IndexFunc(p.queue, func(r *request) bool { return !p.isUnproven(r) || p.unproven+p.unprovenStuck < p.maxUnproven })
}

// isUnproven reports whether nothing speaks for a request's coming back soon.
func (p *pool) isUnproven(r *request) bool {
	return p.maxUnproven > 0 && r.about != "" && !p.proven[r.about]
}

// prove notes how soon a request came back.
func (p *pool) prove(r *request) {
	if p.maxUnproven == 0 || r.about == "" {
		return
	}
	if time.Since(r.begun) > promptly {
		delete(p.proven, r.about)
		return
	}
	if len(p.proven) >= maxProven {
		clear(p.proven)
	}
	p.proven[r.about] = true
}

// finish makes the thread ready for another request, before anybody knows the result of
// this one: whoever comes next shall get the same thread. It returns false if the caller
// has left.
func (p *pool) finish(r *request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.state == abandoned {
		return false
	}
	r.state = finished
	p.idle++
	if r.unproven {
		p.unproven--
	}
	p.prove(r)
	if len(p.queue) > 0 {
		p.work.Broadcast() // others may run now
	}
	return true
}

func (p *pool) unstuck(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stuck--
	if r.unproven {
		p.unprovenStuck--
		p.work.Broadcast()
	}
	if p.stuckOn[r.about]--; p.stuckOn[r.about] == 0 {
		delete(p.stuckOn, r.about)
	}
}

// attend runs a request, and returns the connection for the next one.
func (p *pool) attend(c connection, r *request) (next connection, err error) {
	// go-ole panics when it is given something it does not know. What is left of the
	// connection then is anybody's guess, so it is not used again.
	defer func() {
		if cause := recover(); cause != nil {
			next, err = nil, fmt.Errorf("panic while calling WMI: %v", cause)
		}
	}()
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

// recheck is refuse for a request whose turn has come: it may have waited in the queue
// while others got stuck.
func (p *pool) recheck(r *request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refuse(r)
}

// counts returns how many calls were abandoned, and how many have not come back.
func (p *pool) counts() (abandoned int64, stuck int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.abandoned, p.stuck
}

// close ends the threads that are idle, and the others when they are.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.work.Broadcast()
}
