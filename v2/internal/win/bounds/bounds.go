// Package bounds gives the calls of a machine their contexts. Windows knows none: a read from a dying disk returns when the
// driver gives up, after a minute or never, and is carried out then, also if its caller has left.
//
// So each call runs on a goroutine of its own, which owns its memory. When the caller's context ends, the call is abandoned:
// the caller returns, and the goroutine finishes alone. Such a call is stuck. It keeps an OS thread until it returns. Until
// then no other call of its kind starts on the same object, and StuckChange says what Windows may still change (stuck.go).
// line.go has the limits. The kinds and objects of calls are in a table beside the seam's interfaces, win/hang.go.
package bounds

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// The deadlines of calls whose callers have none. A caller that waits for ever, and asks again, would keep a request more
// each time.
const (
	questionLimit = 2 * time.Minute
	changeLimit   = 15 * time.Minute
)

// Machine is a machine with bounds.
type Machine struct {
	win.Machine // whose calls go through bound
	below       win.Machine
	inner       win.Interceptor
	prompt      func(*win.Call) bool
	most        int // calls at once: maxThreads
	observer    atomic.Pointer[Observer]

	abandoned, stuck atomic.Int64

	mu      sync.Mutex
	threads int               // of calls that run, or are stuck
	lines   map[lineKey]*line // no empty line stays
	changes []*call           // that run, or are stuck
}

// Observer learns of every call when its caller goes on: the kind of the call, how long the caller has waited, and the error
// it got. Observers are called concurrently and must be quick.
type Observer func(kind win.Kind, elapsed time.Duration, err error)

// New returns a machine with bounds. It must be the only one of its process that is on m. Calls go through inner on their way
// to m; nil leaves them alone. Where prompt, which may be nil, says that a call returns at once, it gets no goroutine, and its
// context: an emulated machine knows what hangs.
func New(m win.Machine, inner win.Interceptor, prompt func(*win.Call) bool) *Machine {
	b := &Machine{below: m, inner: inner, prompt: prompt, most: maxThreads, lines: map[lineKey]*line{}}
	b.Machine = win.Intercept(m, b.bound)
	return b
}

// Observe makes o the only observer. Nil removes it.
func (b *Machine) Observe(o Observer) {
	if o == nil {
		b.observer.Store(nil)
		return
	}
	b.observer.Store(&o)
}

// Abandoned returns how many calls were abandoned so far, also those that have returned since.
func (b *Machine) Abandoned() int64 { return b.abandoned.Load() }

// Stuck returns how many calls are stuck, and keep an OS thread each.
func (b *Machine) Stuck() int { return int(b.stuck.Load()) }

// Process implements win.Pending.
func (b *Machine) Process(f win.Interceptor) win.Machine {
	if f == nil {
		return New(b.below, b.inner, b.prompt)
	}
	return New(b.below, func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
		return f(ctx, c, func(ctx context.Context) error { return b.pass(ctx, c, next) })
	}, b.prompt)
}

// pass makes a call through the inner interceptor.
func (b *Machine) pass(ctx context.Context, c *win.Call, next func(context.Context) error) error {
	if b.inner == nil {
		return next(ctx)
	}
	return b.inner(ctx, c, next)
}

// bound is in front of every call.
func (b *Machine) bound(ctx context.Context, c *win.Call, next func(context.Context) error) error {
	if b.prompt != nil && b.prompt(c) {
		return b.pass(ctx, c, next)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	at := c.HangsOn()
	if win.IsInspector(ctx) {
		at = c.HangsOnShare()
	}
	observer := b.observer.Load()
	if observer == nil {
		return b.run(ctx, at, c, next)
	}
	start := time.Now()
	err := b.run(ctx, at, c, next)
	(*observer)(at.Kind, time.Since(start), err)
	return err
}

// run makes a call, and returns its result, or the error of ctx if that ends first.
func (b *Machine) run(ctx context.Context, at win.HangPoint, of *win.Call, next func(context.Context) error) error {
	caller := ctx
	if _, bounded := ctx.Deadline(); !bounded {
		limit := changeLimit
		if of.Asks() {
			limit = questionLimit
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	c := &call{at: at, done: make(chan struct{})}
	if err := b.admit(ctx, c); err != nil {
		return err
	}
	b.begin(c, of)
	var err error // belongs to the goroutine until done
	of.Hold()
	wipe := of.OwnSecrets()
	go func() {
		defer wipe()
		err = tasks.Recover(ctx, func(ctx context.Context) error { return b.pass(context.WithoutCancel(ctx), of, next) })
		if awaited := b.hasReturned(c); !awaited && err == nil {
			of.Discard() // while the call still counts as stuck
		}
		of.Release()
		b.end(c, err)
	}()
	select {
	case <-c.done:
		return err
	case <-ctx.Done():
	}
	switch {
	case !b.abandon(ctx, c):
		<-c.done
		return err
	case caller.Err() != nil:
		return caller.Err()
	default:
		return fmt.Errorf("no answer from Windows: %w", ctx.Err())
	}
}
