// Package flight keeps long work from being started twice. A format that outlives its
// caller's deadline goes on; the caller's retry joins it and sees its result.
package flight

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Group is a set of works under way, one per key. The zero value is ready for use.
type Group[K comparable] struct {
	mu    sync.Mutex
	works map[K]*Work
}

// Do runs f, or joins the f that already runs for this key, and returns its error. When
// ctx ends first Do returns ctx's error, and f goes on without this caller: its context
// has the values of the first caller's, but ends only after limit.
//
// A panic in f is the error of everybody who joined, of kind winerr.Internal. The stack is
// in the log.
func (g *Group[K]) Do(ctx context.Context, key K, limit time.Duration, f func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return g.join(ctx, key, limit, f).Wait(ctx)
}

func (g *Group[K]) join(ctx context.Context, key K, limit time.Duration, f func(context.Context) error) *Work {
	g.mu.Lock()
	defer g.mu.Unlock()
	if running := g.works[key]; running != nil {
		return running
	}
	if g.works == nil {
		g.works = map[K]*Work{}
	}
	started := Start(ctx, func(ctx context.Context) error {
		defer func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			delete(g.works, key)
		}()
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return f(ctx)
	})
	g.works[key] = started
	return started
}

// Work is something under way that any number of callers may wait for.
type Work struct {
	done chan struct{}
	err  error // valid when done is closed
}

// Start runs f on its own. Its context has the values of ctx, but does not end.
func Start(ctx context.Context, f func(ctx context.Context) error) *Work {
	w := &Work{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.err = call(context.WithoutCancel(ctx), f)
	}()
	return w
}

// Done is closed when the work has ended.
func (w *Work) Done() <-chan struct{} { return w.done }

// Wait returns the error of the work, which is a panic's, too, or that of ctx if it ends
// first.
func (w *Work) Wait(ctx context.Context) error {
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call turns a panic into an error: it happens on a goroutine of ours, where nobody else
// could catch it. The error has one line, because it reaches clients; what goes on after
// that line is often another stack.
func call(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			text := fmt.Sprint(r)
			klog.FromContext(ctx).Error(fmt.Errorf("panic: %s", text), "Work under way panicked", "stack", string(debug.Stack()))
			line, _, _ := strings.Cut(text, "\n")
			err = fmt.Errorf("%w: panic: %s", winerr.Internal, line)
		}
	}()
	return f(ctx)
}
