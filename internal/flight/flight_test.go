package flight

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestDo_JoinsWorkOfTheSameKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group Group[string]
		var runs atomic.Int32
		release := make(chan struct{})
		result := errors.New("result")
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				err := group.Do(t.Context(), "k", time.Minute, func(context.Context) error {
					runs.Add(1)
					<-release
					return result
				})
				if !errors.Is(err, result) {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait() // all 50 wait for the work
		if err := group.Do(t.Context(), "other", time.Minute, func(context.Context) error { return nil }); err != nil {
			t.Errorf("another key: %v", err)
		}
		close(release)
		wg.Wait()
		if n := runs.Load(); n != 1 {
			t.Errorf("the work ran %d times", n)
		}
	})
}

func TestDo_WorkOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group Group[string]
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			err := group.Do(ctx, "k", time.Minute, func(ctx context.Context) error {
				<-release
				return ctx.Err()
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the caller who left: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
		wg.Go(func() {
			err := group.Do(t.Context(), "k", time.Minute, func(context.Context) error { return errors.New("started twice") })
			if err != nil {
				t.Errorf("the caller who came later: %v", err)
			}
		})
		synctest.Wait()
		close(release)
		wg.Wait()
	})
}

func TestDo_LimitEndsTheWork(t *testing.T) {
	var group Group[string]
	err := group.Do(t.Context(), "k", time.Millisecond, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestDo_PanicIsAnError(t *testing.T) {
	var group Group[string]
	err := group.Do(t.Context(), "k", time.Minute, func(context.Context) error { panic("oops") })
	if err == nil || !strings.Contains(err.Error(), "oops") {
		t.Errorf("got %v", err)
	}
	if len(group.works) != 0 {
		t.Error("the work is remembered")
	}
}
