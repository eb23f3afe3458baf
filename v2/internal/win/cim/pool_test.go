package cim

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/klogtest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// fakeConnection counts the open connections.
type fakeConnection struct{ open *atomic.Int32 }

func (fakeConnection) call(Object, string, map[string]any) (uint32, error) { return 0, nil }
func (fakeConnection) query(Object, []string) ([]map[string]any, error)    { return nil, nil }
func (c fakeConnection) close()                                            { c.open.Add(-1) }

const testRunning = 8

// newFakePool returns a pool, and how many connections it has.
func newFakePool() (*pool, *atomic.Int32) {
	var open atomic.Int32
	return newPool(func() (connection, error) {
		open.Add(1)
		return fakeConnection{&open}, nil
	}, testRunning), &open
}

// close ends the idle threads.
func (p *pool) close() { close(p.work) }

// threadsOf returns how many threads a pool has, and how many of them are idle.
func threadsOf(p *pool) (threads, idle int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.threads, p.idle
}

func nothing(connection) error { return nil }

func TestPool_KeepsItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open := newFakePool()
		defer p.close()
		start := time.Now()
		for range 2 * testRunning {
			require.NoError(t, p.do(t.Context(), nothing))
		}
		if threads, idle := threadsOf(p); threads != 1 || idle != 1 || open.Load() != 1 || time.Since(start) != 0 {
			t.Errorf("%d threads, %d idle, %d connections after %v; want one of each, at once", threads, idle, open.Load(), time.Since(start))
		}
	})
}

// TestPool_Parallel: calls run at the same time up to the limit, and a few threads stay.
func TestPool_Parallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open := newFakePool()
		defer p.close()
		var callers sync.WaitGroup
		var now, most atomic.Int32
		for range 20 {
			callers.Go(func() {
				err := p.do(t.Context(), func(connection) error {
					most.Store(max(most.Load(), now.Add(1)))
					time.Sleep(countingTime / 2)
					now.Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if threads, _ := threadsOf(p); threads != testRunning || open.Load() != testRunning {
			t.Errorf("%d threads and %d connections for 20 calls, want %d", threads, open.Load(), testRunning)
		}
		callers.Wait()
		synctest.Wait()
		if most.Load() != testRunning {
			t.Errorf("%d calls at the same time, want %d", most.Load(), testRunning)
		}
		if threads, idle := threadsOf(p); threads != maxIdle || idle != maxIdle || open.Load() != maxIdle {
			t.Errorf("%d threads, %d idle, %d connections at the end; want %d", threads, idle, open.Load(), maxIdle)
		}
	})
}

// TestPool_InOrder: calls that wait begin in the order of their arrival.
func TestPool_InOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newFakePool()
		p.maxRunning = 1
		defer p.close()
		var callers sync.WaitGroup
		var order []int
		for i := range 10 {
			callers.Go(func() {
				_ = p.do(t.Context(), func(connection) error {
					time.Sleep(countingTime / 2)
					order = append(order, i)
					return nil
				})
			})
			synctest.Wait()
		}
		callers.Wait()
		if !slices.IsSorted(order) || len(order) != 10 {
			t.Errorf("they ran in the order %v", order)
		}
	})
}

// TestPool_Hangs: many calls that hang delay others by seconds, once, and keep no connections
// when they come back.
func TestPool_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open := newFakePool()
		defer p.close()
		hang := make(chan struct{})
		var callers sync.WaitGroup
		for range 40 {
			callers.Go(func() { _ = p.do(t.Context(), func(connection) error { <-hang; return nil }) })
		}
		synctest.Wait()
		for _, want := range []time.Duration{40 / testRunning * countingTime, 0, 0} {
			start := time.Now()
			if err := p.do(t.Context(), nothing); err != nil || time.Since(start) != want {
				t.Errorf("%v after %v, want %v", err, time.Since(start), want)
			}
		}
		if threads, idle := threadsOf(p); threads != 41 || idle != 1 {
			t.Errorf("%d threads, %d idle, with 40 calls that hang", threads, idle)
		}
		close(hang)
		callers.Wait()
		synctest.Wait()
		if threads, idle := threadsOf(p); threads != maxIdle || idle != maxIdle || open.Load() != maxIdle || p.running != 0 {
			t.Errorf("%d threads, %d idle, %d connections, %d calls run after all came back", threads, idle, open.Load(), p.running)
		}
	})
}

// TestPool_MaxThreads: only when all threads hang, further calls fail, until one comes back.
func TestPool_MaxThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newFakePool()
		p.maxThreads = 20
		defer p.close()
		hang := make(chan struct{})
		var callers sync.WaitGroup
		var refused atomic.Int32
		for range 30 {
			callers.Go(func() {
				if err := p.do(t.Context(), func(connection) error { <-hang; return nil }); err != nil {
					refused.Add(1)
				}
			})
		}
		time.Sleep(time.Minute)
		err := p.do(t.Context(), nothing)
		if !errors.Is(err, winerr.Unavailable) || !strings.HasSuffix(err.Error(), "20 calls to WMI have not come back") || refused.Load() != 10 {
			t.Errorf("%v, with %d calls refused; want 10, and that 20 hang", err, refused.Load())
		}
		hang <- struct{}{}
		synctest.Wait()
		require.NoError(t, p.do(t.Context(), nothing), "after one came back:")
		close(hang)
		callers.Wait()
	})
}

// TestPool_ContextEnds: a call that runs is waited for, and one that still waits does not begin.
func TestPool_ContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newFakePool()
		p.maxRunning = 1
		defer p.close()
		ctx, cancel := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		callers.Go(func() {
			start := time.Now()
			err := p.do(ctx, func(connection) error { time.Sleep(time.Minute); return winerr.WMINotFound })
			if !errors.Is(err, winerr.WMINotFound) || time.Since(start) != time.Minute {
				t.Errorf("%v after %v, want %v after a minute", err, time.Since(start), winerr.WMINotFound)
			}
		})
		synctest.Wait()
		callers.Go(func() {
			if err := p.do(ctx, func(connection) error { t.Error("it was called"); return nil }); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want that the context has ended", err)
			}
		})
		synctest.Wait()
		cancel()
		callers.Wait()
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
		}, testRunning)
		defer p.close()
		for _, want := range []error{winerr.Unsupported, winerr.Unsupported, nil, nil} {
			if err := p.do(t.Context(), nothing); !errors.Is(err, want) {
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
		err := p.do(ctx, func(connection) error { panic("unknown type") })
		if err == nil || !strings.Contains(err.Error(), "panic: unknown type") || !strings.Contains(log.String(), "TestPool_Panic") {
			t.Errorf("%v, want the panic; the log is %q, want its stack", err, log.String())
		}
		require.NoError(t, p.do(t.Context(), nothing), "after a panic:")
		if threads, idle := threadsOf(p); threads != 1 || idle != 1 || open.Load() != 2 {
			t.Errorf("%d threads, %d idle, %d connections; want the same thread with a second one", threads, idle, open.Load())
		}
	})
}

// panickyConnection panics when it is closed.
type panickyConnection struct{ fakeConnection }

func (panickyConnection) close() { panic("released twice") }

// TestPool_PanicInClose: a thread without a caller must not end the process either.
func TestPool_PanicInClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(func() (connection, error) { return panickyConnection{}, nil }, testRunning)
		ctx, log := klogtest.Context(t)
		require.NoError(t, p.do(ctx, nothing))
		p.close()
		synctest.Wait()
		if threads, _ := threadsOf(p); threads != 0 || !strings.Contains(log.String(), "panickyConnection") {
			t.Errorf("%d threads; the log is %q, want the stack of the panic", threads, log.String())
		}
	})
}

// TestPool_Race lets calls come and go while connections are made and closed.
func TestPool_Race(t *testing.T) {
	p, open := newFakePool()
	defer p.close()
	var callers sync.WaitGroup
	for range 2 * testRunning {
		callers.Go(func() {
			for range 200 {
				value := 0
				if err := p.do(t.Context(), func(connection) error { value++; return nil }); err != nil || value != 1 {
					t.Errorf("%v, and the value is %d", err, value)
				}
			}
		})
	}
	callers.Wait()
	for threads, idle := threadsOf(p); threads > idle; threads, idle = threadsOf(p) {
		runtime.Gosched()
	}
	if threads, _ := threadsOf(p); int(open.Load()) > threads || threads > maxIdle {
		t.Errorf("%d connections on %d threads", open.Load(), threads)
	}
}

// TestThreadsFor: dead servers must block neither formatting nor queries about mappings.
func TestThreadsFor(t *testing.T) {
	storage := threadsFor(Object{Namespace: Storage, Class: "MSFT_Volume"}, "Format")
	network := threadsFor(Object{Namespace: SMB, Class: "MSFT_SmbGlobalMapping"}, "Create")
	queries := threadsFor(Object{Namespace: SMB, Class: "MSFT_SmbGlobalMapping"}, "")
	if storage == network || queries == network || queries == storage {
		t.Error("calls about shares, queries about them and calls about storage have threads in common")
	}
	if storage != threadsFor(Object{Namespace: V2, Class: "Win32_BIOS"}, "") {
		t.Error("queries about storage have threads of their own")
	}
}
