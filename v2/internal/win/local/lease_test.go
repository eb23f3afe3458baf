package local

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// library lends numbers, and knows which of them are open.
type library struct {
	leases[int]
	mu     sync.Mutex
	opened int
	open   map[int]bool
}

func newLibrary() *library {
	l := &library{open: map[int]bool{}}
	l.leases.open = func(string) (int, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.opened++
		l.open[l.opened] = true
		return l.opened, nil
	}
	l.close = func(handle int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, handle)
	}
	return l
}

func (l *library) want(t *testing.T, opened, open int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened != opened || len(l.open) != open {
		t.Errorf("%d handles were opened and %d still are, want %d and %d", l.opened, len(l.open), opened, open)
	}
}

func nothing(int) {}

func TestLeases_SharesUntilTheTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLibrary()
		for range 3 {
			if err := l.use(`C:\`, nothing); err != nil {
				t.Fatal(err)
			}
			time.Sleep(leaseTime / 4)
		}
		l.want(t, 1, 1)
		if err := l.use(`D:\`, nothing); err != nil {
			t.Fatal(err)
		}
		l.want(t, 2, 2)
		time.Sleep(2 * leaseTime) // use does not extend it
		l.want(t, 2, 0)
		if err := l.use(`C:\`, nothing); err != nil {
			t.Fatal(err)
		}
		l.want(t, 3, 1)
		time.Sleep(2 * leaseTime)
	})
}

// TestLeases_CallThatHangs: a handle is closed after the last call that uses it, and other calls
// get another one meanwhile.
func TestLeases_CallThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLibrary()
		done := make(chan error)
		go func() {
			done <- l.use(`C:\`, func(int) { time.Sleep(10 * leaseTime) })
		}()
		time.Sleep(2 * leaseTime)
		l.want(t, 1, 1)
		if err := l.use(`C:\`, nothing); err != nil {
			t.Fatal(err)
		}
		l.want(t, 2, 2)
		time.Sleep(2 * leaseTime)
		l.want(t, 2, 1)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		l.want(t, 2, 0)
	})
}

func TestLeases_Failure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLibrary()
		failure := errors.New("failure")
		l.leases.open = func(string) (int, error) { return 0, failure }
		if err := l.use(`C:\`, nothing); !errors.Is(err, failure) {
			t.Errorf("%v, want that of opening", err)
		}
	})
}

// TestLeases_Race: calls that open at the same time each have a handle, and all are closed.
func TestLeases_Race(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLibrary()
		open := l.leases.open
		l.leases.open = func(name string) (int, error) {
			time.Sleep(time.Millisecond)
			return open(name)
		}
		var calls atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				_ = l.use(`C:\`, func(handle int) {
					l.mu.Lock()
					defer l.mu.Unlock()
					if !l.open[handle] {
						t.Error("a call has a handle that is closed")
					}
					calls.Add(1)
				})
			})
		}
		wg.Wait()
		if calls.Load() != 8 {
			t.Errorf("%d calls were made, want 8", calls.Load())
		}
		l.want(t, 8, 8)
		time.Sleep(2 * leaseTime)
		l.want(t, 8, 0)
	})
}
