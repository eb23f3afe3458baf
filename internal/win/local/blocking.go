package local

import (
	"context"
	"fmt"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/cim"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// A context cannot interrupt a call to Windows: a read from a dying disk returns when the
// driver gives up. Calls that can hang therefore run on a goroutine of their own, which owns
// the handles and buffers of the call. If the caller's context ends first, the call is
// abandoned: the caller returns, and the goroutine finishes alone.
//
// An abandoned call keeps an OS thread until it returns. Until then no other call of its kind
// starts on the same object, and each kind as a whole has a limit.

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

// maxStuck is on how many objects calls of one kind may be stuck. At the limit that many
// disks or servers are dead, and further calls fail at once.
const maxStuck = 32

// stuckWait is how long a call waits for one that is stuck on the same object. Most return
// soon: their callers just had short deadlines.
const stuckWait = time.Second

// hangPoint is what a call can hang on. Calls with the same one wait for each other.
type hangPoint struct {
	kind   kind
	object string
}

var (
	running       = tasks.Locks[hangPoint]{Limit: maxRunning}
	runningOfKind = tasks.Locks[kind]{Limit: maxRunningOfKind}
	calls         tasks.Calls[kind]
)

// Abandoned returns how many calls to Windows their callers have given up on since the
// start of the program, those to WMI included.
func Abandoned() int64 { return calls.Abandoned() + cim.Abandoned() }

// Stuck returns how many of them have not returned, and keep an OS thread each.
func Stuck() int { return calls.Stuck() + cim.Stuck() }

// begin runs f on another goroutine, unless calls like it are stuck. The call is done when f
// has returned.
func begin(ctx context.Context, at hangPoint, f func()) (*tasks.Call[kind], error) {
	if err := admit(ctx, at); err != nil {
		return nil, err
	}
	if err := running.Acquire(ctx, at); err != nil {
		return nil, err
	}
	if err := runningOfKind.Acquire(ctx, at.kind); err != nil {
		running.Release(at)
		return nil, err
	}
	call := calls.Begin(at.kind, at.object)
	go func() {
		defer func() {
			runningOfKind.Release(at.kind)
			running.Release(at)
			call.End()
		}()
		f()
	}()
	return call, nil
}

// admit waits a moment for a call that is stuck on the same object.
func admit(ctx context.Context, at hangPoint) error {
	if calls.Stuck() == 0 {
		return nil
	}
	earlier := calls.On(at.kind, at.object)
	if earlier == nil {
		n, objects := calls.Count(at.kind)
		if objects < maxStuck && n < maxRunningOfKind {
			return nil
		}
		return fmt.Errorf("%w: calls to %s have not come back from Windows, on %d objects", winerr.Unavailable, at.kind, objects)
	}
	timer := time.NewTimer(stuckWait)
	defer timer.Stop()
	for ; earlier != nil; earlier = calls.On(at.kind, at.object) {
		select {
		case <-earlier.Done():
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return fmt.Errorf("%w: an earlier call to %s has not come back from Windows", winerr.Unavailable, at.kind)
		}
	}
	return nil
}

// within runs f, a call to Windows about an object, and returns its result, or ctx's error if
// ctx ends first. f must not write to the caller's memory.
func within[T any](ctx context.Context, k kind, object string, f func() (T, error)) (T, error) {
	return observed(k, func() (T, error) { return bounded(ctx, hangPoint{k, object}, f) })
}

func bounded[T any](ctx context.Context, at hangPoint, f func() (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if ctx.Done() == nil { // nothing can end it
		return f()
	}
	if win.IsInspector(ctx) {
		at.kind += forInspector
	}
	var result struct {
		value T
		err   error
	}
	call, err := begin(ctx, at, func() {
		result.err = tasks.Recover(ctx, func(context.Context) (err error) {
			result.value, err = f()
			return err
		})
	})
	if err != nil {
		return none, err
	}
	select {
	case <-call.Done():
	case <-ctx.Done():
		if call.Abandon() {
			return none, ctx.Err() // the result still belongs to f
		}
		<-call.Done()
	}
	return result.value, result.err
}

// act is within for calls that return nothing.
func act(ctx context.Context, k kind, object string, f func() error) error {
	_, err := within(ctx, k, object, func() (struct{}, error) { return struct{}{}, f() })
	return err
}
