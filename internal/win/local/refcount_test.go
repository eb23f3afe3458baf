package local

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestRefCount_ClosesAfterAbandonedCalls: neither the caller that left nor Close wait for the
// call, and the handle is closed once, when the call returns.
func TestRefCount_ClosesAfterAbandonedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends atomic.Int32
		r := newRefCount(func() { ends.Add(1) })
		back := make(chan struct{})
		err := act(soon(t), testKind, "x", func() error {
			return r.use(func() error { <-back; return nil })
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the deadline", err)
		}
		r.Close()
		r.Close()
		if n := ends.Load(); n != 0 {
			t.Errorf("it was closed %d times under a call that runs", n)
		}
		if err := r.use(func() error { t.Error("it was called"); return nil }); !errors.Is(err, errInvalidHandle) {
			t.Errorf("use after Close: %v, want %v", err, errInvalidHandle)
		}
		close(back)
		synctest.Wait()
		if n := ends.Load(); n != 1 {
			t.Errorf("it was closed %d times, want once", n)
		}
	})
}

// TestRefCount_ClosesWhatOpensLate: a caller that leaves while the handle is being opened has
// it closed afterwards.
func TestRefCount_ClosesWhatOpensLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handle, closed := 0, 0
		r := newRefCount(func() { closed = handle })
		back := make(chan struct{})
		err := act(soon(t), testKind, "x", func() error {
			return r.use(func() error { <-back; handle = 42; return nil })
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the deadline", err)
		}
		r.Close()
		close(back)
		synctest.Wait()
		if closed != 42 {
			t.Errorf("handle %d was closed, want 42", closed)
		}
	})
}

// TestRefCount_Race: many use it while it is closed; each use finds it open or is refused.
func TestRefCount_Race(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Bool
		open.Store(true)
		r := newRefCount(func() { open.Store(false) })
		for range 100 {
			go func() {
				for r.use(func() error {
					if !open.Load() {
						t.Error("it is closed while in use")
					}
					return nil
				}) == nil {
				}
			}()
		}
		r.Close()
		synctest.Wait()
		if open.Load() {
			t.Error("it is still open")
		}
	})
}
