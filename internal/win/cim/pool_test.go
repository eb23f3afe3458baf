package cim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/klogtest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// fakeConnection counts the open connections.
type fakeConnection struct{ open *atomic.Int32 }

func (fakeConnection) call(Object, string, map[string]any) (uint32, error) { return 0, nil }
func (fakeConnection) query(Object, []string) ([]map[string]any, error)    { return nil, nil }
func (c fakeConnection) close()                                            { c.open.Add(-1) }

// newFakePool returns a pool, and how many connections it has.
func newFakePool() (*pool, *atomic.Int32) {
	var open atomic.Int32
	return newPool(func() (connection, error) {
		open.Add(1)
		return fakeConnection{&open}, nil
	}, maxThreads, maxStuck), &open
}

// threadsOf returns how many threads of a pool serve, and how many are stuck.
func threadsOf(p *pool) (threads, stuck int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.threads, p.calls.Stuck()
}

func nothing(connection) error { return nil }

func TestPool_KeepsItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open := newFakePool()
		defer p.close()
		for range 10 {
			require.NoError(t, p.do(t.Context(), "", nothing))
		}
		if threads, stuck := threadsOf(p); threads != 1 || stuck != 0 || open.Load() != 1 {
			t.Errorf("%d threads, %d stuck, %d connections after ten calls; want one of each, none stuck", threads, stuck, open.Load())
		}
	})
}

// TestPool_Parallel: a slow call does not hold up the others, but there is a limit.
func TestPool_Parallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open := newFakePool()
		defer p.close()
		var callers sync.WaitGroup
		var now, most atomic.Int32
		for range 20 {
			callers.Go(func() {
				err := p.do(t.Context(), "", func(connection) error {
					most.Store(max(most.Load(), now.Add(1)))
					time.Sleep(time.Second)
					now.Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		if most.Load() != maxThreads || open.Load() != maxThreads {
			t.Errorf("%d calls at the same time on %d connections, want %d", most.Load(), open.Load(), maxThreads)
		}
	})
}

func TestPool_ReturnsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newFakePool()
		defer p.close()
		if err := p.do(t.Context(), "", func(connection) error { return winerr.WMINotFound }); !errors.Is(err, winerr.WMINotFound) {
			t.Errorf("%v, want %v", err, winerr.WMINotFound)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.do(ended, "", func(connection) error { t.Error("it was called"); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that the context has ended", err)
		}
	})
}

// TestPool_ConnectsLater: after a connection failed, the next call tries again.
func TestPool_ConnectsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		p := newPool(func() (connection, error) {
			if tries++; tries < 3 {
				return nil, failure(uint32(errClassNotReg), 0, "")
			}
			return fakeConnection{new(atomic.Int32)}, nil
		}, maxThreads, maxStuck)
		defer p.close()
		for _, want := range []error{winerr.Unsupported, winerr.Unsupported, nil, nil} {
			if err := p.do(t.Context(), "", nothing); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		if tries != 3 {
			t.Errorf("%d times connected, want 3", tries)
		}
	})
}

func TestPool_Panic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open := newFakePool()
		defer p.close()
		ctx, log := klogtest.Context(t)
		err := p.do(ctx, "", func(connection) error { panic("unknown type") })
		if err == nil || !strings.Contains(err.Error(), "panic: unknown type") || !strings.Contains(log.String(), "TestPool_Panic") {
			t.Errorf("%v, want the panic; the log is %q, want its stack", err, log.String())
		}
		require.NoError(t, p.do(t.Context(), "", nothing), "after a panic:")
		if threads, stuck := threadsOf(p); threads != 1 || stuck != 0 || open.Load() != 2 {
			t.Errorf("%d threads, %d stuck, %d connections; want the same thread with a second one", threads, stuck, open.Load())
		}
	})
}

// panickyConnection panics when it is closed.
type panickyConnection struct{ fakeConnection }

func (panickyConnection) close() { panic("released twice") }

// TestPool_PanicOnStuckThread: a thread without a caller must not end the process either, and
// its call does not stay stuck.
func TestPool_PanicOnStuckThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(func() (connection, error) { return panickyConnection{}, nil }, maxThreads, maxStuck)
		ctx, log := klogtest.Context(t)
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = p.do(ctx, "", func(connection) error { time.Sleep(time.Minute); return nil })
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, stuck := threadsOf(p); stuck != 0 || !strings.Contains(log.String(), "panickyConnection") {
			t.Errorf("%d stuck; the log is %q, want the stack of the panic", stuck, log.String())
		}
		p.close()
	})
}

// TestPool_CountsInspectorCallsSeparately: an inspector's stuck calls block only inspectors, and
// the stuck calls of others do not block it.
func TestPool_CountsInspectorCallsSeparately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ stuck, free string }{{"inspector", "driver"}, {"driver", "inspector"}} {
			p, _ := newFakePool()
			callers := map[string]context.Context{"driver": t.Context(), "inspector": win.AsInspector(t.Context())}
			hang := make(chan struct{})
			for range maxStuck {
				ctx, cancel := context.WithTimeout(callers[c.stuck], time.Second)
				defer cancel()
				_ = p.do(ctx, "", func(connection) error { <-hang; return nil })
			}
			if err := p.do(callers[c.stuck], "", nothing); !errors.Is(err, winerr.Unavailable) {
				t.Errorf("the %s whose calls are stuck: %v, want %v", c.stuck, err, winerr.Unavailable)
			}
			if err := p.do(callers[c.free], "", nothing); err != nil {
				t.Errorf("the %s: %v", c.free, err)
			}
			close(hang)
			synctest.Wait()
			if err := p.do(callers[c.stuck], "", nothing); err != nil || p.calls.Stuck() != 0 {
				t.Errorf("the %s after its calls came back: %v, %d stuck", c.stuck, err, p.calls.Stuck())
			}
			p.close()
		}
	})
}

// TestPool_Abandon: callers whose time is up return at once, although WMI hangs.
func TestPool_Abandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open := newFakePool()
		defer p.close()
		hang := make(chan struct{})
		abandonOne := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			err := p.do(ctx, "", func(connection) error { <-hang; return nil })
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
				t.Errorf("%v after %v, want the deadline after 1s", err, took)
			}
		}
		for i := range maxStuck {
			abandonOne()
			if threads, stuck := threadsOf(p); threads != 1 || stuck != i+1 {
				t.Errorf("%d threads and %d stuck after %d calls hung", threads, stuck, i+1)
			}
			if i+1 < maxStuck {
				if err := p.do(t.Context(), "", nothing); err != nil {
					t.Errorf("a call after %d hung: %v", i+1, err)
				}
			}
		}
		if err := p.do(t.Context(), "", nothing); !errors.Is(err, winerr.Unavailable) {
			t.Errorf("a call after %d hung: %v, want %v", maxStuck, err, winerr.Unavailable)
		}
		if n := p.calls.Abandoned(); n != maxStuck {
			t.Errorf("%d calls abandoned, want %d", n, maxStuck)
		}
		close(hang)
		synctest.Wait()
		if _, stuck := threadsOf(p); stuck != 0 {
			t.Errorf("%d stuck after all came back", stuck)
		}
		require.NoError(t, p.do(t.Context(), "", nothing), "a call after all came back:")
		if n := open.Load(); n != 1 {
			t.Errorf("%d connections open, want those of the stuck threads to be closed", n)
		}
	})
}

// TestPool_AbandonBlocksTheSame: until an abandoned call comes back, calls about the same object
// fail, also those that were waiting.
func TestPool_AbandonBlocksTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newFakePool()
		defer p.close()
		hang := make(chan struct{})
		var callers sync.WaitGroup
		for i := range maxThreads { // so that the next ones wait in the queue
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+100*i)*time.Second)
				defer cancel()
				about := []string{"volume", "b", "c", "d"}[i]
				err := p.do(ctx, about, func(connection) error { <-hang; return nil })
				if i == 0 && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, want the deadline", err)
				}
			})
		}
		synctest.Wait()
		called := func(connection) error { return errors.New("it was called") }
		callers.Go(func() {
			if err := p.do(t.Context(), "volume", called); !errors.Is(err, errSameStuck) {
				t.Errorf("one that waited: %v, want %v", err, errSameStuck)
			}
		})
		time.Sleep(2 * time.Second)
		if err := p.do(t.Context(), "volume", called); !errors.Is(err, winerr.Unavailable) {
			t.Errorf("one that came later: %v, want %v", err, winerr.Unavailable)
		}
		for _, about := range []string{"", "another volume"} {
			if err := p.do(t.Context(), about, nothing); err != nil {
				t.Errorf("one about %q: %v", about, err)
			}
		}
		close(hang)
		callers.Wait()
		synctest.Wait()
		if err := p.do(t.Context(), "volume", nothing); err != nil || p.calls.Stuck() != 0 {
			t.Errorf("after it came back: %v, %d stuck", err, p.calls.Stuck())
		}
	})
}

// TestPool_WaitingCallers: callers that wait for a thread can leave, and nothing was abandoned.
func TestPool_WaitingCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newFakePool()
		defer p.close()
		hang := make(chan struct{})
		var callers sync.WaitGroup
		for i := range maxThreads {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(10+i)*time.Second)
				defer cancel()
				_ = p.do(ctx, "", func(connection) error { <-hang; return nil })
			})
		}
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.do(short, "", func(connection) error { t.Error("it was called"); return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with all threads busy: %v, want the deadline", err)
		}
		if n := p.calls.Abandoned(); n != 0 {
			t.Errorf("%d calls abandoned that had not begun", n)
		}
		// It gets the thread that replaces the first one that hangs.
		require.NoError(t, p.do(t.Context(), "", nothing), "a call that waited:")
		callers.Wait()
		close(hang)
	})
}

// TestPool_Race lets calls finish and time out at the same moment.
func TestPool_Race(t *testing.T) {
	p, open := newFakePool()
	defer p.close()
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
				value := 0
				if p.do(ctx, "", func(connection) error { value++; return nil }) == nil && value != 1 {
					t.Errorf("success, but the value is %d", value)
				}
				cancel()
			}
		})
	}
	callers.Wait()
	for _, stuck := threadsOf(p); stuck > 0; _, stuck = threadsOf(p) {
		runtime.Gosched()
	}
	if threads, _ := threadsOf(p); int(open.Load()) > threads {
		t.Errorf("%d connections on %d threads", open.Load(), threads)
	}
}

// newReserved returns a pool like networkThreads.
func newReserved() *pool {
	var open atomic.Int32
	return newPool(func() (connection, error) { open.Add(1); return fakeConnection{&open}, nil }, 16, 12).reserve(8, 6)
}

// TestPool_Reserve: dead servers neither delay nor block calls about servers that answer.
func TestPool_Reserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newReserved()
		defer p.close()
		healthy := func(when string) {
			t.Helper()
			begin := time.Now()
			if err := p.do(t.Context(), `\\healthy`, nothing); err != nil || time.Since(begin) != 0 {
				t.Errorf("%s: %v after %v", when, err, time.Since(begin))
			}
		}
		healthy("alone")
		var callers sync.WaitGroup
		for i := range 16 {
			callers.Go(func() {
				_ = p.do(t.Context(), fmt.Sprintf(`\\gone%d`, i), func(connection) error { time.Sleep(time.Minute); return nil })
			})
		}
		synctest.Wait()
		for range 8 { // also several of them at the same time
			callers.Go(func() { healthy("with 16 servers that do not answer") })
		}
		healthy("with 16 servers that do not answer")
		callers.Wait() // also those that waited

		for i := range 12 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				_ = p.do(ctx, fmt.Sprintf(`\\hung%d`, i), func(connection) error { time.Sleep(10 * time.Minute); return nil })
			})
		}
		time.Sleep(3 * time.Minute)
		healthy("with servers that hang")
		if err := p.do(t.Context(), `\\new`, nothing); !errors.Is(err, winerr.Unavailable) {
			t.Errorf("an unknown server, with six that hang: %v", err)
		}
		callers.Wait()
		time.Sleep(20 * time.Minute)
		p.mu.Lock()
		running, stuck := p.unproven, p.calls.Stuck()
		p.mu.Unlock()
		if running != 0 || stuck != 0 {
			t.Errorf("%d run and %d are stuck at the end", running, stuck)
		}
		healthy("at the end")
		require.NoError(t, p.do(t.Context(), `\\new`, nothing), "a new one at the end:")
	})
}

// TestPool_ReserveForgets: a slow server is unproven until it answers promptly, and the number of
// names is bounded.
func TestPool_ReserveForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newReserved()
		defer p.close()
		for _, c := range []struct {
			takes  time.Duration
			proven bool
		}{{0, true}, {time.Minute, false}, {time.Second, true}} {
			_ = p.do(t.Context(), "server", func(connection) error { time.Sleep(c.takes); return nil })
			if p.proven["server"] != c.proven {
				t.Errorf("after a call of %v it is proven: %v", c.takes, !c.proven)
			}
		}
		for i := range 2 * maxProven {
			_ = p.do(t.Context(), strconv.Itoa(i), nothing)
		}
		if len(p.proven) > maxProven {
			t.Errorf("%d names are remembered", len(p.proven))
		}
	})
}

// TestThreadsFor: dead servers must block neither formatting nor queries about mappings.
func TestThreadsFor(t *testing.T) {
	storage := threadsFor(Object{Namespace: Storage, Class: "MSFT_Volume"}, "Format")
	network := threadsFor(Object{Namespace: SMB, Class: "MSFT_SmbGlobalMapping"}, "Create")
	queries := threadsFor(Object{Namespace: SMB, Class: "MSFT_SmbGlobalMapping"}, "")
	if storage == network || network.maxThreads <= storage.maxThreads || network.maxStuck >= network.maxThreads {
		t.Errorf("shares have %d threads, of which %d may be stuck; storage has %d", network.maxThreads, network.maxStuck, storage.maxThreads)
	}
	if queries == network || queries == storage || network.maxUnproven != network.maxThreads/2 || network.maxUnprovenStuck != network.maxStuck/2 {
		t.Errorf("queries wait with other calls, or dead servers can take %d of %d threads", network.maxUnproven, network.maxThreads)
	}
	if repairs := threadsFor(Object{Namespace: Storage, Class: "MSFT_Volume"}, "Repair"); repairs == storage {
		t.Error("scans that take hours hold up formatting")
	}
	if storage != threadsFor(Object{Namespace: V2, Class: "Win32_BIOS"}, "") {
		t.Error("queries about storage have threads of their own")
	}
}
