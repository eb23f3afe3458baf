package cim

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	// countingTime is how long a call counts as running. One that takes longer waits for a disk
	// or a server, and must not keep others from theirs.
	countingTime = 250 * time.Millisecond
	// maxIdle is how many threads of a pool stay for the next call, with their connections.
	maxIdle = 4
	// maxThreads is how many threads a pool may have. It is a last resort: calls about one object
	// are limited by those who make them.
	maxThreads = 512
)

// pool is OS threads with a connection each. They start when they are needed.
type pool struct {
	connect    func() (connection, error) // called on the thread
	maxRunning int                        // how many calls count as running; others wait
	maxThreads int
	work       chan *request // to the threads; it has room for one request per thread

	mu      sync.Mutex
	queue   []*request // those that wait until fewer calls count as running
	running int        // the calls that began less than countingTime ago
	threads int
	idle    int // threads that get no request from work
}

func newPool(connect func() (connection, error), maxRunning int) *pool {
	return &pool{connect: connect, maxRunning: maxRunning, maxThreads: maxThreads, work: make(chan *request, maxThreads)}
}

// request is one call on its way to a thread and back.
type request struct {
	run   func(connection) error
	guard func(do func() error) error // turns a panic into an error, and logs it
	done  chan error                  // with room, so that the thread goes on
	timer *time.Timer                 // ends its time as a running call
}

// do runs f on a thread, and waits for it however long it takes. If ctx has ended before its turn
// comes, f is not called.
func (p *pool) do(ctx context.Context, f func(connection) error) error {
	r := &request{
		done: make(chan error, 1),
		run: func(c connection) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return f(c)
		},
		guard: func(do func() error) error {
			return tasks.Recover(ctx, func(context.Context) error { return do() })
		},
	}
	p.mu.Lock()
	p.queue = append(p.queue, r)
	p.dispatch()
	p.mu.Unlock()
	return <-r.done
}

// dispatch begins the calls whose turn it is, in the order of their arrival. It is called with the
// lock held.
func (p *pool) dispatch() {
	for len(p.queue) > 0 && p.running < p.maxRunning {
		r := p.queue[0]
		p.queue = slices.Delete(p.queue, 0, 1)
		switch {
		case p.idle > 0:
			p.idle--
		case p.threads < p.maxThreads:
			p.threads++
			go p.serve()
		default:
			r.done <- fmt.Errorf("%w: %d calls to WMI have not come back", winerr.Unavailable, p.threads)
			continue
		}
		p.running++
		r.timer = time.AfterFunc(countingTime, p.uncount)
		p.work <- r
	}
}

// uncount lets another call begin although one still runs.
func (p *pool) uncount() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.dispatch()
}

func (p *pool) serve() {
	// Never unlocked: the thread ends with the goroutine, and with it all that COM has left there.
	runtime.LockOSThread()
	var c connection
	var last *request
	for last = range p.work {
		var err error
		c, err = p.attend(c, last)
		stays := p.finish(last)
		last.done <- err
		if !stays {
			break
		}
	}
	if c != nil {
		_ = last.guard(func() error { c.close(); return nil }) // a panic is logged
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.threads-- // only now: to close can hang as well
}

// attend runs a request, and returns the connection for the next one. After a panic that is
// nil: go-ole panics about values it does not know, and leaves the connection in an unknown
// state.
func (p *pool) attend(c connection, r *request) (next connection, err error) {
	err = r.guard(func() (err error) {
		if c == nil {
			if c, err = p.connect(); err != nil {
				return err
			}
		}
		err = r.run(c)
		next = c
		return err
	})
	return next, err
}

// finish makes the thread ready for another request before the caller learns the result of
// this one, so that the caller's next request gets the same thread. It returns false if enough
// others are ready.
func (p *pool) finish(r *request) (stays bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.timer.Stop() {
		p.running--
	}
	p.idle++
	p.dispatch()
	if p.idle <= maxIdle {
		return true
	}
	p.idle--
	return false
}
