package api_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestWriteVolumeCache(t *testing.T) {
	node := nodeWith(t, formatted())
	host := volumeapi.NewOn(node)
	for range 2 {
		must(t, host.WriteVolumeCache(id))
	}
	wantCalls(t, node, "FlushVolume", 2)
	for _, c := range []struct {
		code     winerr.Code
		kind     winerr.Kind // if it fails
		readOnly bool
	}{
		{code: winerr.WriteProtect, readOnly: true},
		{code: winerr.WriteProtect, kind: winerr.InUse},
		{code: winerr.InvalidFunction},
		{code: winerr.AccessDenied, readOnly: true},
		{code: winerr.AccessDenied, kind: winerr.Denied},
		{code: winerr.NotReady, kind: winerr.Unavailable},
		{code: winerr.FileNotFound, kind: winerr.NotFound},
		{code: winerr.DiskFull, kind: winerr.NoSpace},
	} {
		disk := gpt(winsim.GiB, formatted())
		disk.ReadOnly = c.readOnly
		node := newNode(t, modelWith(disk))
		inject(t, node, winsim.Fault{Call: "FlushVolume", Error: uint32(c.code)})
		err := volumeapi.NewOn(node).WriteVolumeCache(id)
		if c.kind == 0 {
			must(t, err)
		} else {
			wantKind(t, c.code.Error(), err, c.kind, id)
		}
	}
}

// TestWriteVolumeCache_Hangs shows that a hanging flush is not started twice, and that it
// does not pass for one that was asked for after it began.
func TestWriteVolumeCache_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := nodeWith(t, formatted())
		host := volumeapi.NewOn(node)
		inject(t, node, winsim.Fault{Call: "FlushVolume", Times: 1, Delay: time.Minute})
		begin := time.Now()
		flush := func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := bind(ctx, host).WriteVolumeCache(id); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the deadline", err)
			}
		}
		for range 10 {
			flush()
		}
		wantCalls(t, node, "FlushVolume", 1)
		if waited := time.Since(begin); waited != 10*time.Second {
			t.Errorf("ten callers waited %v, want 10s", waited)
		}
		must(t, host.WriteVolumeCache(id))
		if waited := time.Since(begin); waited != time.Minute {
			t.Errorf("the last one returned after %v, want it to wait for the first", waited)
		}
		wantCalls(t, node, "FlushVolume", 2)
	})
}

func TestGetVolumeStats(t *testing.T) {
	v := formatted()
	v.Used = 100 * winsim.MiB
	node := nodeWith(t, v)
	host := volumeapi.NewOn(node)
	node.ResetCalls()
	total, used, err := host.GetVolumeStats(id)
	must(t, err)
	if wantTotal := int64(1007<<20 - 4096); total != wantTotal {
		t.Errorf("total is %d, want %d: the volume but for its last cluster", total, wantTotal)
	}
	if used < 100<<20 || used > 150<<20 {
		t.Errorf("used are %d bytes, want a little more than 100 MiB", used)
	}
	if calls := node.Calls(); len(calls) != 1 || calls["VolumeSpace"] != 1 {
		t.Errorf("it took %v, want one call", calls)
	}

	for state, kind := range map[winsim.VolumeState]winerr.Kind{winsim.Raw: winerr.InUse, winsim.Gone: winerr.NotFound, winsim.NotReady: winerr.Unavailable} {
		must(t, node.SetVolumeState(id, state))
		_, _, err := host.GetVolumeStats(id)
		wantKind(t, string(state), err, kind, id)
	}
}
