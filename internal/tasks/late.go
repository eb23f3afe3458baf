package tasks

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// latePatience is how long an object may delay a caller that has just delayed another one.
	latePatience = 250 * time.Millisecond

	// lateTime is after how long it gets its whole time again.
	lateTime = 30 * time.Second

	// moment is how long an object may delay a caller that can do without it. Healthy ones take much less.
	moment = 50 * time.Millisecond
)

type hurry struct{}

// Hurry gives objects only a moment if the caller can do without them. They do not count as late.
func Hurry(ctx context.Context, without func(object string) bool) context.Context {
	return context.WithValue(ctx, hurry{}, without)
}

// Late remembers the objects that did not answer in time, so that they do not delay every caller. The zero value is ready.
type Late struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// Bound bounds the time of an object that was late. The caller calls done when the object has answered, or ctx has ended.
func (l *Late) Bound(ctx context.Context, object string) (bound context.Context, done func()) {
	if without, ok := ctx.Value(hurry{}).(func(string) bool); ok && without(object) {
		return context.WithTimeout(ctx, moment)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	cancel := context.CancelFunc(func() {})
	if since, ok := l.since[object]; ok && time.Since(since) < lateTime {
		ctx, cancel = context.WithTimeout(ctx, latePatience)
	}
	return ctx, func() {
		l.note(object, ctx.Err())
		cancel()
	}
}

func (l *Late) note(object string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since, known := l.since[object]
	switch {
	case err == nil:
		delete(l.since, object)
	case !errors.Is(err, context.DeadlineExceeded): // the caller has left
	case !known || time.Since(since) >= lateTime:
		if l.since == nil {
			l.since = map[string]time.Time{}
		}
		l.since[object] = time.Now()
	}
}
