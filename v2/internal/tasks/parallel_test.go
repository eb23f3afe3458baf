package tasks_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
)

// TestEach: every object is asked, at most eight at once, and each error stays with its object.
func TestEach(t *testing.T) {
	odd := errors.New("odd")
	var running, most, asked atomic.Int32
	failures := tasks.Each(t.Context(), 100, time.Hour, func(ctx context.Context, i int) error {
		asked.Add(1)
		now := running.Add(1)
		defer running.Add(-1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		if _, limited := ctx.Deadline(); !limited {
			t.Error("there is no time limit")
		}
		if i%2 == 1 {
			return odd
		}
		return nil
	})
	if asked.Load() != 100 || most.Load() > 8 {
		t.Errorf("%d were asked, %d at once", asked.Load(), most.Load())
	}
	for i, err := range failures {
		if (i%2 == 1) != errors.Is(err, odd) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestEach_Limit: a call that hangs ends at its own limit.
func TestEach_Limit(t *testing.T) {
	failures := tasks.Each(t.Context(), 2, time.Millisecond, func(ctx context.Context, i int) error {
		if i == 0 {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if failures[0] != nil || !errors.Is(failures[1], context.DeadlineExceeded) {
		t.Error(failures)
	}
}

// TestEach_ManyHang: however many hang, all are asked, and those behind them answer.
func TestEach_ManyHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		failures := tasks.Each(t.Context(), 100, 5*time.Second, func(ctx context.Context, i int) error {
			if i == 99 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(begin); took > 6*time.Second || failures[0] == nil || failures[99] != nil {
			t.Errorf("%s, %v", took, failures)
		}
	})
}

// TestEach_Panic: a panic is the error of its object, and is logged with its stack.
func TestEach_Panic(t *testing.T) {
	var log strings.Builder
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{}))
	failures := tasks.Each(ctx, 2, time.Hour, func(_ context.Context, i int) error {
		if i == 0 {
			panic("boom")
		}
		return nil
	})
	if failures[0] == nil || failures[1] != nil {
		t.Error(failures)
	}
	if got := log.String(); !strings.Contains(got, "panic: boom") || !strings.Contains(got, "TestEach_Panic") {
		t.Errorf("the log lacks the stack:\n%s", got)
	}
}
