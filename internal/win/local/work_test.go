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

	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
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

func TestWithin_Panics(t *testing.T) {
	defer func() {
		if p := recover(); !strings.Contains(fmt.Sprint(p), "made of cheese") || !strings.Contains(fmt.Sprint(p), "TestWithin_Panics") {
			t.Errorf("recovered %v, want the panic with the stack it came from", p)
		}
	}()
	_ = act(soon(t), testKind, "x", func() error { panic("made of cheese") })
	t.Error("it did not panic")
}

// hang abandons a call on an object, which comes back when the channel is closed.
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
		// Nobody else gets stuck on the same object, but others are not affected.
		start := time.Now()
		err := act(t.Context(), testKind, "dead", func() error { t.Error("it was called"); return nil })
		if took := time.Since(start); !errors.Is(err, winerr.Unavailable) || took != patience {
			t.Errorf("a second call: %v after %v, want %v after %v", err, took, winerr.Unavailable, patience)
		}
		impatient, cancel := context.WithTimeout(t.Context(), patience/2)
		defer cancel()
		if err := act(impatient, testKind, "dead", func() error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second call with less patience: %v, want the deadline", err)
		}
		if err := act(t.Context(), testKind, "alive", func() error { return nil }); err != nil {
			t.Errorf("a call on another object: %v", err)
		}
		if err := act(t.Context(), "another kind", "dead", func() error { return nil }); err != nil {
			t.Errorf("a call of another kind: %v", err)
		}
		time.AfterFunc(patience/2, func() { close(back) })
		if err := act(t.Context(), testKind, "dead", func() error { return nil }); err != nil {
			t.Errorf("a call that waits for the first to come back: %v", err)
		}
		if Abandoned() != before+1 || Stuck() != 0 {
			t.Errorf("%d abandoned, %d stuck, want 1 and none", Abandoned()-before, Stuck())
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

func TestStream(t *testing.T) {
	failure := errors.New("failure")
	for _, c := range []struct {
		name        string
		values      int
		end         error // of the one who sends
		refuse      int   // the value that the receiver does not want
		want, taken int
		wantErr     error
	}{
		{"all", 3, nil, -1, 3, 3, nil},
		{"none", 0, nil, -1, 0, 0, nil},
		{"failure at once", 0, failure, -1, 0, 0, failure},
		{"failure later", 2, failure, -1, 2, 2, failure},
		{"refused", 3, nil, 1, 2, 1, winerr.Busy},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got []int
			closed, taken := false, 0
			err := stream(soon(t), testKind, "x", func(yield func(int) bool) error {
				defer func() { closed = true }()
				for i := range c.values {
					if len(got) != i {
						t.Errorf("%s: value %d is made while others wait", c.name, i)
					}
					if !yield(i) {
						return nil
					}
					taken++
				}
				return c.end
			}, func(i int) error {
				got = append(got, i)
				if i == c.refuse {
					return winerr.Busy
				}
				return nil
			})
			if !errors.Is(err, c.wantErr) || len(got) != c.want || taken != c.taken || !closed || !slices.IsSorted(got) {
				t.Errorf("%s: %v after %v, %d taken, closed: %v", c.name, err, got, taken, closed)
			}
		})
	}
}

func TestStream_Abandons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, back, after := Abandoned(), make(chan struct{}), false
		err := stream(soon(t), testKind, "x", func(yield func(int) bool) error {
			yield(1)
			<-back
			after = yield(2)
			return nil
		}, func(int) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) || Abandoned() != before+1 || Stuck() != 1 {
			t.Errorf("%v, %d abandoned, %d stuck", err, Abandoned()-before, Stuck())
		}
		close(back)
		synctest.Wait()
		if after || Stuck() != 0 {
			t.Errorf("the one who sends was told to go on: %v; %d stuck", after, Stuck())
		}
	})
}

// TestStream_EndsWhileReceiving: whoever receives may take longer than the context.
func TestStream_EndsWhileReceiving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, n := Abandoned(), 0
		err := stream(soon(t), testKind, "x", func(yield func(int) bool) error {
			for yield(1) {
			}
			return nil
		}, func(int) error { n++; time.Sleep(2 * time.Second); return nil })
		if !errors.Is(err, context.DeadlineExceeded) || n != 1 || Abandoned() != before || Stuck() != 0 {
			t.Errorf("%v after %d values, %d abandoned, %d stuck; want the deadline, and nothing left", err, n, Abandoned()-before, Stuck())
		}
	})
}

func TestStream_ReceiverPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if p := recover(); p != "made of cheese" {
				t.Errorf("recovered %v", p)
			}
			synctest.Wait() // the one who sends must not wait for ever
		}()
		_ = stream(soon(t), testKind, "x", func(yield func(int) bool) error { yield(1); return nil },
			func(int) error { panic("made of cheese") })
	})
}

// TestWork_CrowdOnOneObject: a dead disk gets a few threads, however many ask for it, and
// the callers can leave.
func TestWork_CrowdOnOneObject(t *testing.T) {
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

// TestWork_CrowdOnManyObjects: many dead disks get no more than so many threads together.
func TestWork_CrowdOnManyObjects(t *testing.T) {
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

// TestWork_CrowdOnFewObjects: with all threads of a kind stuck, others do not wait.
func TestWork_CrowdOnFewObjects(t *testing.T) {
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

// TestStream_CrowdCallsTheSameKind: those who receive make calls of the kind of the stream.
func TestStream_CrowdCallsTheSameKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := soon(t)
		var wg sync.WaitGroup
		for i := range 2 * maxRunningOfKind {
			wg.Go(func() {
				object := fmt.Sprint(i)
				err := stream(ctx, testKind, object, func(yield func(int) bool) error {
					for n := range 3 {
						if !yield(n) {
							return nil
						}
					}
					return nil
				}, func(int) error {
					time.Sleep(time.Millisecond)
					return act(ctx, testKind, "below "+object, func() error { return nil })
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// TestStream_EndsWhileItCannotGoOn: a stream that is kept from going on has not finished.
func TestStream_EndsWhileItCannotGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var wg sync.WaitGroup
		err := stream(soon(t), testKind, "x", func(yield func(int) bool) error {
			yield(1)
			return nil
		}, func(int) error {
			for i := range maxRunningOfKind {
				wg.Go(func() { _ = act(t.Context(), testKind, fmt.Sprint(i), func() error { <-release; return nil }) })
			}
			synctest.Wait()
			return nil
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the deadline", err)
		}
		close(release)
		wg.Wait()
		synctest.Wait()
		if n := Stuck(); n != 0 {
			t.Errorf("%d calls are stuck", n)
		}
	})
}
