// Package shared lets callers that ask the same question at the same time share the answer: one about a large
// node takes thousands of calls to Windows.
//
// An answer that has begun can lack what a caller changed just before it asked. Later callers wait
// for it, but not for long, and then share the next one. The first one begins a moment after it was
// asked for, because callers hardly ever ask in the same microsecond. Package queue is
// for changes, which callers join while they run.
package shared

import (
	"context"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
)

// Answers are answers of type V to questions of type K that are under way. Use New.
type Answers[K comparable, V any] struct {
	gather, maxWait time.Duration

	mu    sync.Mutex
	next  map[K]*Answer[K, V] // that has not begun
	begun map[K]*Answer[K, V] // that has begun last
}

// New returns answers that begin when their callers had the time gather to join. If another answer has begun before,
// the next one begins when that is ready, but at the latest after maxWait: it may wait for something that hangs.
func New[K comparable, V any](gather, maxWait time.Duration) *Answers[K, V] {
	return &Answers[K, V]{gather: gather, maxWait: maxWait, next: map[K]*Answer[K, V]{}, begun: map[K]*Answer[K, V]{}}
}

// Answer is one that is under way.
type Answer[K comparable, V any] struct {
	// Value is there from the beginning, and complete after Wait. Those who share it do not change it.
	Value V

	all      *Answers[K, V]
	question K
	cancel   context.CancelFunc
	callers  int // guarded by all.mu

	done chan struct{} // closed when err is there
	err  error
}

// Join returns the next answer. The first caller's find makes it; its context has the values of that caller's,
// and ends when the last caller has left. Each caller must call Leave.
func (all *Answers[K, V]) Join(ctx context.Context, question K, find func(ctx context.Context, value *V) error) *Answer[K, V] {
	all.mu.Lock()
	defer all.mu.Unlock()
	if next := all.next[question]; next != nil {
		next.callers++
		return next
	}
	a := &Answer[K, V]{all: all, question: question, callers: 1, done: make(chan struct{})}
	all.next[question] = a
	ctx, a.cancel = context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // Leave calls it
	go a.make(ctx, all.begun[question], find)
	return a
}

// Wait returns the error of the answer, or ctx's if ctx ends first.
func (a *Answer[K, V]) Wait(ctx context.Context) error {
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Leave ends an answer that no other caller waits for.
func (a *Answer[K, V]) Leave() {
	a.all.mu.Lock()
	defer a.all.mu.Unlock()
	if a.callers--; a.callers > 0 {
		return
	}
	a.cancel()
	if a.all.next[a.question] == a {
		delete(a.all.next, a.question)
	}
}

// make makes the answer when callers had time to join, and the one before is ready or seems to take long.
func (a *Answer[K, V]) make(ctx context.Context, before *Answer[K, V], find func(ctx context.Context, value *V) error) {
	defer close(a.done)
	if before != nil {
		before.await(ctx, a.all.maxWait)
	} else {
		a.await(ctx, a.all.gather)
	}
	a.begin()
	defer a.end()
	a.err = tasks.Recover(ctx, func(ctx context.Context) error { return find(ctx, &a.Value) })
}

// await waits until the answer is ready, but not longer than limit.
func (a *Answer[K, V]) await(ctx context.Context, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-a.done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// begin makes callers from now on wait for the next answer.
func (a *Answer[K, V]) begin() {
	a.all.mu.Lock()
	defer a.all.mu.Unlock()
	if a.all.next[a.question] == a {
		delete(a.all.next, a.question)
	}
	a.all.begun[a.question] = a
}

func (a *Answer[K, V]) end() {
	a.all.mu.Lock()
	defer a.all.mu.Unlock()
	if a.all.begun[a.question] == a {
		delete(a.all.begun, a.question)
	}
}
