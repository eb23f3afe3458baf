package tasks

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// slowLimit is how long an object may delay a caller if it has just delayed another one.
	slowLimit = 250 * time.Millisecond

	// slowPeriod is after how long such an object gets its whole time again.
	slowPeriod = 30 * time.Second

	// shortLimit is how long an object may delay a caller that can do without it. Healthy ones take much less.
	shortLimit = 50 * time.Millisecond
)

type shortWaits struct{}

// WithShortWaits gives objects only shortLimit if the caller can do without them. They do not count as slow.
func WithShortWaits(ctx context.Context, without func(object string) bool) context.Context {
	return context.WithValue(ctx, shortWaits{}, without)
}

// SlowObjects remembers the objects that did not answer in time, so that they do not delay every caller. The zero value is ready.
type SlowObjects struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// Bound bounds the time of an object that was slow. The caller calls done when the object has answered, or ctx has ended.
func (s *SlowObjects) Bound(ctx context.Context, object string) (bound context.Context, done func()) {
	if without, ok := ctx.Value(shortWaits{}).(func(string) bool); ok && without(object) {
		return context.WithTimeout(ctx, shortLimit)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cancel := context.CancelFunc(func() {})
	if since, ok := s.since[object]; ok && time.Since(since) < slowPeriod {
		ctx, cancel = context.WithTimeout(ctx, slowLimit)
	}
	return ctx, func() {
		s.note(object, ctx.Err())
		cancel()
	}
}

func (s *SlowObjects) note(object string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, known := s.since[object]
	switch {
	case err == nil:
		delete(s.since, object)
	case !errors.Is(err, context.DeadlineExceeded): // the caller has left
	case !known || time.Since(since) >= slowPeriod:
		if s.since == nil {
			s.since = map[string]time.Time{}
		}
		s.since[object] = time.Now()
	}
}
