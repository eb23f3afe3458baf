package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const testKind kind = "test"

// soon is a context that ends after a second.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestWithin_Returns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := Abandoned()
		for _, ctx := range []context.Context{soon(t), context.WithoutCancel(t.Context())} {
			got, err := within(ctx, testKind, "x", func() (string, error) { return "value", nil })
			if got != "value" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
			got, err = within(ctx, testKind, "x", func() (string, error) { return "ignored", winerr.NotReady })
			if got != "ignored" || !errors.Is(err, winerr.NotReady) {
				t.Errorf("%q, %v", got, err)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := act(ended, testKind, "x", func() error { t.Error("it was called"); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that the context has ended", err)
		}
		if Abandoned() != before || Stuck() != 0 {
			t.Errorf("%d abandoned, %d stuck", Abandoned()-before, Stuck())
		}
	})
}

// TestWithin_Panics: a panic is the call's error, and the log has the stack, also of a call
// whose caller has left.
func TestWithin_Panics(t *testing.T) {
	for name, wait := range map[string]time.Duration{"the caller waits": 0, "the caller has left": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				ctx := klog.NewContext(soon(t), funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{}))
				err := act(ctx, testKind, "x", func() error { time.Sleep(wait); panic("made of cheese") })
				if wait == 0 && (err == nil || !strings.Contains(err.Error(), "panic: made of cheese")) {
					t.Errorf("%v, want the panic", err)
				}
				time.Sleep(wait)
				synctest.Wait()
				if !strings.Contains(log.String(), "TestWithin_Panics") || Stuck() != 0 {
					t.Errorf("the log is %q, want the stack of the panic; %d are stuck", log.String(), Stuck())
				}
				if err := act(soon(t), testKind, "x", func() error { return nil }); err != nil {
					t.Errorf("the next call: %v", err)
				}
			})
		})
	}
}

// hang abandons a call on an object; it returns when the channel is closed.
func hang(t *testing.T, object string, back <-chan struct{}) {
	t.Helper()
	start := time.Now()
	err := act(soon(t), testKind, object, func() error { <-back; return nil })
	if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
		t.Errorf("%v after %v, want the deadline after 1s", err, took)
	}
}

func TestWithin_Abandons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, back := Abandoned(), make(chan struct{})
		hang(t, "dead", back)
		if Abandoned() != before+1 || Stuck() != 1 {
			t.Errorf("%d abandoned, %d stuck, want 1 and 1", Abandoned()-before, Stuck())
		}
		// No second call gets stuck on the same object; other objects are not affected.
		start := time.Now()
		err := act(t.Context(), testKind, "dead", func() error { t.Error("it was called"); return nil })
		if took := time.Since(start); !errors.Is(err, winerr.Unavailable) || took != stuckWait {
			t.Errorf("a second call: %v after %v, want %v after %v", err, took, winerr.Unavailable, stuckWait)
		}
		short, cancel := context.WithTimeout(t.Context(), stuckWait/2)
		defer cancel()
		if err := act(short, testKind, "dead", func() error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second call with a shorter deadline: %v, want the deadline", err)
		}
		if err := act(t.Context(), testKind, "alive", func() error { return nil }); err != nil {
			t.Errorf("a call on another object: %v", err)
		}
		if err := act(t.Context(), "another kind", "dead", func() error { return nil }); err != nil {
			t.Errorf("a call of another kind: %v", err)
		}
		time.AfterFunc(stuckWait/2, func() { close(back) })
		if err := act(t.Context(), testKind, "dead", func() error { return nil }); err != nil {
			t.Errorf("a call that waits for the first to come back: %v", err)
		}
		if Abandoned() != before+1 || Stuck() != 0 {
			t.Errorf("%d abandoned, %d stuck, want 1 and none", Abandoned()-before, Stuck())
		}
	})
}

// TestWithin_CountsInspectorCallsSeparately: the stuck calls of an inspector delay only inspectors.
func TestWithin_CountsInspectorCallsSeparately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kinds []string
		Observe(func(kind string, _ time.Duration, _ error) { kinds = append(kinds, kind) })
		defer Observe(nil)
		back := make(chan struct{})
		if err := act(win.AsInspector(soon(t)), testKind, "dead", func() error { <-back; return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the inspector: %v, want the deadline", err)
		}
		start := time.Now()
		if err := act(t.Context(), testKind, "dead", func() error { return nil }); err != nil || time.Since(start) != 0 {
			t.Errorf("a driver: %v after %v, want an answer at once", err, time.Since(start))
		}
		err := act(win.AsInspector(t.Context()), testKind, "dead", func() error { t.Error("it was called"); return nil })
		if took := time.Since(start); !errors.Is(err, winerr.Unavailable) || took != stuckWait {
			t.Errorf("a second inspector: %v after %v, want %v after %v", err, took, winerr.Unavailable, stuckWait)
		}
		if Stuck() != 1 {
			t.Errorf("%d are stuck, want that the one keeps a thread", Stuck())
		}
		close(back)
		synctest.Wait()
		if want := []string{string(testKind), string(testKind), string(testKind)}; !slices.Equal(kinds, want) || Stuck() != 0 {
			t.Errorf("%q were observed, want %q; %d are stuck", kinds, want, Stuck())
		}
	})
}

func TestWithin_Limit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := make(chan struct{})
		var callers sync.WaitGroup
		for i := range maxStuck {
			callers.Go(func() { hang(t, fmt.Sprint(i), back) })
		}
		callers.Wait()
		start := time.Now()
		err := act(t.Context(), testKind, "one more", func() error { t.Error("it was called"); return nil })
		if took := time.Since(start); !errors.Is(err, winerr.Unavailable) || took != 0 {
			t.Errorf("%v after %v, want %v at once", err, took, winerr.Unavailable)
		}
		close(back)
		synctest.Wait()
		if err := act(t.Context(), testKind, "one more", func() error { return nil }); err != nil || Stuck() != 0 {
			t.Errorf("after all came back: %v, %d stuck", err, Stuck())
		}
	})
}

// TestWithin_Race lets calls come back and time out at the same moment.
func TestWithin_Race(t *testing.T) {
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for range 500 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
				got, err := within(ctx, testKind, fmt.Sprint(i%2), func() (int, error) { return 7, nil })
				if (err == nil) != (got == 7) {
					t.Errorf("%d, %v", got, err)
				}
				cancel()
			}
		})
	}
	callers.Wait()
	for Stuck() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// TestWithin_ManyCallsOnOneObject: a dead disk gets a few threads, however many callers it has, and
// they can leave.
func TestWithin_ManyCallsOnOneObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 500
		release := make(chan struct{})
		var begun atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				err := act(ctx, "a dead disk in a test", "disk", func() error {
					begun.Add(1)
					<-release
					return nil
				})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		if n := begun.Load(); n != maxRunning {
			t.Errorf("%d calls were begun, want %d", n, maxRunning)
		}
		cancel()
		wg.Wait()
		close(release)
		synctest.Wait()
		if n := Stuck(); n != 0 {
			t.Errorf("%d calls are stuck", n)
		}
	})
}

// TestWithin_CallsOnManyObjects: all dead disks together get a limited number of threads.
func TestWithin_CallsOnManyObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const deadDisks kind = "dead disks in a test"
		release := make(chan struct{})
		var begun atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 2 * maxRunningOfKind {
			wg.Go(func() {
				err := act(ctx, deadDisks, fmt.Sprint(i), func() error {
					begun.Add(1)
					<-release
					return nil
				})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		if n := begun.Load(); n != maxRunningOfKind {
			t.Errorf("%d calls were begun, want %d", n, maxRunningOfKind)
		}
		if err := act(soon(t), "another kind", "disk", func() error { return nil }); err != nil {
			t.Errorf("a call of another kind: %v", err)
		}
		cancel()
		wg.Wait()
		if n := Stuck(); n != maxRunningOfKind {
			t.Errorf("%d calls are stuck, want %d", n, maxRunningOfKind)
		}
		close(release)
		synctest.Wait()
		if n := Stuck(); n != 0 {
			t.Errorf("%d calls are stuck", n)
		}
		if err := act(soon(t), deadDisks, "disk", func() error { return nil }); err != nil {
			t.Errorf("after all came back: %v", err)
		}
	})
}

// TestWithin_ManyCallsOnFewObjects: with all threads of a kind stuck, further calls fail at once.
func TestWithin_ManyCallsOnFewObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ctx := soon(t)
		var wg sync.WaitGroup
		for i := range maxRunningOfKind {
			wg.Go(func() {
				if err := act(ctx, testKind, fmt.Sprint(i%(maxStuck/2)), func() error { <-release; return nil }); err == nil {
					t.Error("it came back")
				}
			})
		}
		wg.Wait()
		start := time.Now()
		err := act(t.Context(), testKind, "alive", func() error { t.Error("it was called"); return nil })
		if took := time.Since(start); !errors.Is(err, winerr.Unavailable) || took != 0 {
			t.Errorf("%v after %v, want %v at once", err, took, winerr.Unavailable)
		}
		close(release)
		synctest.Wait()
	})
}
