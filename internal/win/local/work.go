package local

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/cim"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/work/keylock"
)

// A context cannot interrupt a call to Windows: whoever reads from a disk that is dying
// waits until the driver gives up. Calls that can hang therefore run on a goroutine of
// their own, which owns the handles and buffers of the call. If the caller's context ends
// first, the call is abandoned: the caller returns, and the goroutine finishes alone.
//
// An abandoned call keeps an OS thread until it comes back. So nobody starts another one
// of its kind on the same object meanwhile, and there is a limit for each kind as a whole.

// kind is a kind of calls that hang for the same reason. Its text completes "calls to".
type kind string

// forInspector makes the kind of the same calls made by an inspector. Its stuck calls delay only
// other calls of an inspector: a driver that asks a disk while its controller resets gets its
// answer although an inspector has given up on the disk before.
const forInspector kind = " for an inspector"

// maxRunning is how many calls of one kind may run on one object at once; others wait.
// Without it a crowd that asks a dead disk at the same moment would take a thread each,
// and the Go runtime ends a program that has too many.
const maxRunning = 16

// maxRunningOfKind is how many calls of one kind may run at once on all objects together,
// so that many dead disks cannot take all threads either.
const maxRunningOfKind = 256

// place is what calls wait for each other at.
type place struct {
	kind   kind
	object string
}

var (
	running       = keylock.Locks[place]{Limit: maxRunning}
	runningOfKind = keylock.Locks[kind]{Limit: maxRunningOfKind}
)

// maxStuck is on how many objects calls of one kind may be stuck. When it is reached so
// many disks or servers are dead, and further calls fail at once.
const maxStuck = 32

// patience is how long a call waits for one that is stuck on the same object. Most come
// back soon: their callers were merely impatient.
const patience = time.Second

// stuck are the calls that were abandoned and have not come back.
var stuck = struct {
	sync.Mutex
	calls map[kind]map[string][]*call // by object
}{calls: map[kind]map[string][]*call{}}

var abandoned atomic.Int64

// Abandoned returns how many calls to Windows their callers have given up on since the
// start of the program, those to WMI included.
func Abandoned() int64 { return abandoned.Load() + cim.Abandoned() }

// Stuck returns how many of them have not come back, and keep an OS thread each.
func Stuck() int {
	stuck.Lock()
	defer stuck.Unlock()
	n := cim.Stuck()
	for _, objects := range stuck.calls {
		for _, calls := range objects {
			n += len(calls)
		}
	}
	return n
}

// call is a call to Windows on a goroutine of its own.
type call struct {
	kind     kind
	object   string
	leave    func()        // gives up the place, and the share in the kind
	done     chan struct{} // closed when it has come back
	panicked any           // only after done
	// state is set by whoever is first: the call that comes back, or the caller that
	// gives up.
	state atomic.Int32
}

const (
	hasReturned  = 1
	wasAbandoned = 2
)

// begin runs f on another goroutine, unless calls like it are stuck.
func begin(ctx context.Context, k kind, object string, f func()) (*call, error) {
	if err := admit(ctx, k, object); err != nil {
		return nil, err
	}
	leavePlace, err := running.Lock(ctx, place{k, object})
	if err != nil {
		return nil, err
	}
	leaveKind, err := runningOfKind.Lock(ctx, k)
	if err != nil {
		leavePlace()
		return nil, err
	}
	c := &call{kind: k, object: object, done: make(chan struct{})}
	c.leave = func() { leaveKind(); leavePlace() }
	go func() {
		defer c.end()
		f()
	}()
	return c, nil
}

// admit waits a moment for a call that is stuck on the same object.
func admit(ctx context.Context, k kind, object string) error {
	earlier, objects, calls := stuckOn(k, object)
	if earlier == nil && objects < maxStuck && calls < maxRunningOfKind {
		return nil
	}
	if earlier == nil {
		return fmt.Errorf("%w: calls to %s have not come back from Windows, on %d objects", winerr.Unavailable, k, objects)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for ; earlier != nil; earlier, _, _ = stuckOn(k, object) {
		select {
		case <-earlier.done:
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return fmt.Errorf("%w: an earlier call to %s has not come back from Windows", winerr.Unavailable, k)
		}
	}
	return nil
}

// stuckOn returns one of the calls that are stuck on an object, if there is one, and on
// how many objects such calls are stuck, and how many calls.
func stuckOn(k kind, object string) (earlier *call, objects, all int) {
	stuck.Lock()
	defer stuck.Unlock()
	if calls := stuck.calls[k][object]; len(calls) > 0 {
		earlier = calls[0]
	}
	for _, calls := range stuck.calls[k] {
		all += len(calls)
	}
	return earlier, len(stuck.calls[k]), all
}

// end is the last thing the goroutine does. A panic belongs to the caller, in whose
// goroutine it can be dealt with.
func (c *call) end() {
	if p := recover(); p != nil {
		c.panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
	}
	if !c.state.CompareAndSwap(0, hasReturned) {
		c.cameBack()
	}
	c.leave()
	close(c.done)
}

// result waits for the call, or until ctx ends. Nil means that f has returned, and what
// it wrote can be read; otherwise that still belongs to f.
func (c *call) result(ctx context.Context) error {
	select {
	case <-c.done:
	case <-ctx.Done():
		if c.abandon() {
			return ctx.Err()
		}
		<-c.done
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	return nil
}

// abandon gives up on the call. It returns false if the call has just come back.
func (c *call) abandon() bool {
	stuck.Lock()
	defer stuck.Unlock()
	if !c.state.CompareAndSwap(0, wasAbandoned) {
		return false
	}
	abandoned.Add(1)
	objects := stuck.calls[c.kind]
	if objects == nil {
		objects = map[string][]*call{}
		stuck.calls[c.kind] = objects
	}
	objects[c.object] = append(objects[c.object], c)
	return true
}

// cameBack takes an abandoned call off the list.
func (c *call) cameBack() {
	stuck.Lock()
	defer stuck.Unlock()
	objects := stuck.calls[c.kind]
	others := slices.DeleteFunc(objects[c.object], func(other *call) bool { return other == c })
	if objects[c.object] = others; len(others) == 0 {
		delete(objects, c.object)
	}
}

// within runs f, a call to Windows about an object, and returns what it returns, or ctx's
// error if that ends first. F must not write to anything of the caller's.
func within[T any](ctx context.Context, k kind, object string, f func() (T, error)) (T, error) {
	return observed(k, func() (T, error) { return bounded(ctx, k, object, f) })
}

func bounded[T any](ctx context.Context, k kind, object string, f func() (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if ctx.Done() == nil { // nothing can end it
		return f()
	}
	if win.IsInspector(ctx) {
		k += forInspector
	}
	var result struct {
		value T
		err   error
	}
	c, err := begin(ctx, k, object, func() { result.value, result.err = f() })
	if err != nil {
		return none, err
	}
	if err := c.result(ctx); err != nil {
		return none, err
	}
	return result.value, result.err
}

// act is within for calls that return nothing.
func act(ctx context.Context, k kind, object string, f func() error) error {
	_, err := within(ctx, k, object, func() (struct{}, error) { return struct{}{}, f() })
	return err
}
