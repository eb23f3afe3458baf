package local

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/cim"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type observation struct {
			kind    string
			elapsed time.Duration
			err     error
		}
		var got []observation
		Observe(func(kind string, elapsed time.Duration, err error) {
			got = append(got, observation{kind, elapsed, err})
		})
		defer Observe(nil)
		slow := func() error { time.Sleep(time.Second / 2); return nil }
		_ = act(soon(t), testKind, "x", slow)
		_ = act(context.WithoutCancel(t.Context()), testKind, "x", slow)
		_ = act(soon(t), "another kind", "x", func() error { return winerr.NotReady })
		back := make(chan struct{})
		hang(t, "dead", back)
		close(back)
		Observe(nil)
		_ = act(soon(t), testKind, "x", slow)

		want := []observation{
			{"test", time.Second / 2, nil},
			{"test", time.Second / 2, nil},
			{"another kind", 0, winerr.NotReady},
			{"test", time.Second, context.DeadlineExceeded},
		}
		if len(got) != len(want) {
			t.Fatalf("it observed %v, want %v", got, want)
		}
		for i, w := range want {
			if got[i].kind != w.kind || got[i].elapsed != w.elapsed || !errors.Is(got[i].err, w.err) {
				t.Errorf("observation %d is %v, want %v", i, got[i], w)
			}
		}
		synctest.Wait()
	})
}

func TestObserve_CostsNothingWhenOff(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	f := func() (int, error) { return 1, nil }
	if n := testing.AllocsPerRun(100, func() { _, _ = within(ctx, testKind, "x", f) }); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}

// TestObserve_WMI: it has threads and an observer of its own.
func TestObserve_WMI(t *testing.T) {
	var kinds []string
	Observe(func(kind string, _ time.Duration, _ error) { kinds = append(kinds, kind) })
	defer Observe(nil)
	query := func() {
		_, _ = cim.Query(t.Context(), cim.Object{Namespace: cim.V2, Class: "Win32_BIOS"}, "SerialNumber")
	}
	query()
	Observe(nil)
	query()
	if len(kinds) != 1 || kinds[0] != "call WMI" {
		t.Errorf("it observed %q", kinds)
	}
}
