// Package flight keeps long work from being started twice. A format that outlives its
// caller's deadline goes on; the caller's retry joins it and sees its result.
package flight

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Group is a set of works under way, one per key. The zero value is ready for use.
type Group[K comparable] struct {
	mu    sync.Mutex
	works map[K]*work
}

type work struct {
	done chan struct{}
	err  error // valid when done is closed
}

// Do runs f, or joins the f that already runs for this key, and returns its error. When
// ctx ends first Do returns ctx's error, and f goes on without this caller: its context
// has the values of the first caller's, but ends only after limit.
//
// A panic in f is the error of everybody who joined.
func (g *Group[K]) Do(ctx context.Context, key K, limit time.Duration, f func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := g.join(ctx, key, limit, f)
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *Group[K]) join(ctx context.Context, key K, limit time.Duration, f func(context.Context) error) *work {
	g.mu.Lock()
	defer g.mu.Unlock()
	if running := g.works[key]; running != nil {
		return running
	}
	if g.works == nil {
		g.works = map[K]*work{}
	}
	started := &work{done: make(chan struct{})}
	g.works[key] = started
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		started.err = call(ctx, f)
		g.mu.Lock()
		delete(g.works, key)
		g.mu.Unlock()
		close(started.done)
	}()
	return started
}

// call turns a panic into an error: it happens on a goroutine of ours, where nobody else
// could catch it.
func call(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return f(ctx)
}
