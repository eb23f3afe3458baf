package cim

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newFakePool()
		defer p.close()
		var elapsed []time.Duration
		var failures []error
		Observe(func(d time.Duration, err error) { elapsed, failures = append(elapsed, d), append(failures, err) })
		defer Observe(nil)
		slow := func(connection) error { time.Sleep(2 * time.Second); return winerr.NotReady }
		_ = p.do(t.Context(), "", slow)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = p.do(short, "", slow)
		Observe(nil)
		_ = p.do(t.Context(), "", slow)
		if len(elapsed) != 2 || elapsed[0] != 2*time.Second || elapsed[1] != time.Second ||
			!errors.Is(failures[0], winerr.NotReady) || !errors.Is(failures[1], context.DeadlineExceeded) {
			t.Errorf("it observed %v, %v", elapsed, failures)
		}
	})
}
