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

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
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
	var log strings.Builder
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))
	ctx := klog.NewContext(t.Context(), logger)
	err := group.Do(ctx, "k", time.Minute, func(context.Context) error { panic("oops\ngoroutine 7: the stack of another") })
	if err == nil || err.Error() != "internal error: panic: oops" || winerr.KindOf(err) != winerr.Internal {
		t.Errorf("got %v, want one line", err)
	}
	if got := log.String(); !strings.Contains(got, "TestDo_PanicIsAnError") || !strings.Contains(got, "goroutine 7") {
		t.Errorf("the log lacks the stacks:\n%s", got)
	}
	if len(group.works) != 0 {
		t.Error("the work is remembered")
	}
}
