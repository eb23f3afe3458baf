package local

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestShared_ClosesAfterAbandonedCalls: neither the caller that left nor Close wait for the
// call, and what it uses is closed when it comes back, once.
func TestShared_ClosesAfterAbandonedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends atomic.Int32
		s := newShared(func() { ends.Add(1) })
		back := make(chan struct{})
		err := act(soon(t), testKind, "x", func() error {
			return s.use(func() error { <-back; return nil })
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the deadline", err)
		}
		s.Close()
		s.Close()
		if n := ends.Load(); n != 0 {
			t.Errorf("it was closed %d times under a call that runs", n)
		}
		if err := s.use(func() error { t.Error("it was called"); return nil }); !errors.Is(err, errInvalidHandle) {
			t.Errorf("use after Close: %v, want %v", err, errInvalidHandle)
		}
		close(back)
		synctest.Wait()
		if n := ends.Load(); n != 1 {
			t.Errorf("it was closed %d times, want once", n)
		}
	})
}

// TestShared_ClosesWhatNobodyTakes: who opens something and leaves closes it, although it is
// not open yet.
func TestShared_ClosesWhatNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handle, closed := 0, 0
		s := newShared(func() { closed = handle })
		back := make(chan struct{})
		err := act(soon(t), testKind, "x", func() error {
			return s.use(func() error { <-back; handle = 42; return nil })
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the deadline", err)
		}
		s.Close()
		close(back)
		synctest.Wait()
		if closed != 42 {
			t.Errorf("handle %d was closed, want 42", closed)
		}
	})
}

// TestShared_Race: many use it while it is closed, and each finds it open or not at all.
func TestShared_Race(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Bool
		open.Store(true)
		s := newShared(func() { open.Store(false) })
		for range 100 {
			go func() {
				for s.use(func() error {
					if !open.Load() {
						t.Error("it is closed while in use")
					}
					return nil
				}) == nil {
				}
			}()
		}
		s.Close()
		synctest.Wait()
		if open.Load() {
			t.Error("it is still open")
		}
	})
}
