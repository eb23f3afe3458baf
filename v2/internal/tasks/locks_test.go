package tasks

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

func TestLock_ExcludesPerKey(t *testing.T) {
	var locks Locks[int]
	counts := make([]int, 3) // unsynchronised: the race detector watches
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			unlock, err := locks.Lock(t.Context(), i%3)
			if err != nil {
				t.Error(err)
				return
			}
			counts[i%3]++
			unlock()
		})
	}
	wg.Wait()
	for key, n := range counts {
		if n != 100 {
			t.Errorf("key %d was locked %d times, want 100", key, n)
		}
	}
	if len(locks.held) != 0 {
		t.Errorf("%d locks are remembered for ever", len(locks.held))
	}
}

func TestLock_Limit(t *testing.T) {
	locks := Locks[string]{Limit: 2}
	var unlocks []func()
	for range 2 {
		unlock, err := locks.Lock(t.Context(), "a")
		require.NoError(t, err)
		unlocks = append(unlocks, unlock)
	}
	unlockB, err := locks.Lock(t.Context(), "b") // other keys are free
	require.NoError(t, err)
	unlockB()
	third := make(chan error, 1)
	go func() {
		unlock, err := locks.Lock(t.Context(), "a")
		if err == nil {
			unlock()
		}
		third <- err
	}()
	select {
	case err := <-third:
		t.Errorf("a third has the lock: %v", err)
	default:
	}
	for _, unlock := range unlocks {
		unlock()
	}
	require.NoError(t, <-third)
}

func TestLock_CancelledWait(t *testing.T) {
	var locks Locks[string]
	unlock, err := locks.Lock(t.Context(), "a")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() {
		_, err := locks.Lock(ctx, "a")
		waited <- err
	}()
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait: %v", err)
	}
	if _, err := locks.Lock(ctx, "free"); !errors.Is(err, context.Canceled) {
		t.Errorf("a lock for a caller who has left: %v", err)
	}
	unlock()
	if len(locks.held) != 0 {
		t.Errorf("%d locks are left", len(locks.held))
	}
}
