package api_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// The adapters of winsim.Default.
const (
	systemAdapter = `PCI\VEN_WINSIM&DEV_SCSI\0`
	dataAdapter   = `PCI\VEN_WINSIM&DEV_SCSI\1`
)

func TestRescan_FindsDisks(t *testing.T) {
	node := newNode(t, withStorage(func(s *winsim.Storage) { s.AttachByRescan = true }))
	h := bound(t.Context(), node)
	number, err := node.AttachDisk(winsim.Disk{Size: winsim.GiB, Serial: "NEW"})
	require.NoError(t, err)
	for _, found := range []bool{false, true} {
		ids, err := h.ListDiskIDs()
		if _, ok := ids[number]; err != nil || ok != found {
			t.Errorf("the disks are %v, %v, want the new one among them: %v", ids, err, found)
		}
		require.NoError(t, h.Rescan())
	}
}

func TestRescan_Adapters(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults []winsim.Fault
		kind   winerr.Kind
		ok     bool
		root   int // rescans of the whole device tree
	}{
		{name: "all well", ok: true},
		{name: "one is broken", faults: []winsim.Fault{{Call: "RescanAdapter", Object: dataAdapter, Error: 1117}}, ok: true},
		{name: "each is broken", faults: []winsim.Fault{{Call: "RescanAdapter", Object: "PCI*", Error: 1117}}, ok: true, root: 1},
		{name: "no list", faults: []winsim.Fault{{Call: "StorageAdapters", Error: 2}}, ok: true, root: 1},
		{name: "no privilege", faults: []winsim.Fault{{Call: "RescanAdapter", Error: 5}}, kind: winerr.Denied, root: 1},
		{name: "Windows gives up", faults: []winsim.Fault{{Call: "RescanAdapter", Object: dataAdapter, Error: 1460}}, kind: winerr.Deadline},
		{name: "Windows gives up on all", faults: []winsim.Fault{{Call: "RescanAdapter", Error: 121}}, kind: winerr.Deadline},
		{name: "no disks", faults: []winsim.Fault{{Call: "DiskDevices", Error: 1117}}, kind: winerr.Internal},
		{name: "a dying disk", faults: []winsim.Fault{{Call: "UpdateDisk", Error: 1117}, {Call: "UpdateDriveSize", Error: 1}}, ok: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := newNode(t, winsim.Default())
			root := inject(t, node, winsim.Fault{Call: "RescanAdapter", Do: func(*winsim.Node) {}})
			for _, fault := range c.faults {
				inject(t, node, fault)
			}
			err := bound(t.Context(), node).Rescan()
			if c.ok {
				require.NoError(t, err)
			} else {
				wantKind(t, "Rescan", err, c.kind)
			}
			if c.name == "Windows gives up on all" && !strings.Contains(err.Error(), "adapters "+systemAdapter+", "+dataAdapter) {
				t.Errorf("%v does not name both adapters", err)
			}
			adapters := 2
			if c.name == "no list" {
				adapters = 0
			}
			if got := root.Hits() - adapters; got != c.root {
				t.Errorf("the whole tree was rescanned %d times, want %d", got, c.root)
			}
			if got := node.Calls()["UpdateDisk"]; got != 4 && c.name != "no disks" {
				t.Errorf("%d disks were updated, want 4", got)
			}
		})
	}
}

func TestRescan_NoAdapter(t *testing.T) {
	node := newNode(t, winsim.Model{})
	require.NoError(t, bound(t.Context(), node).Rescan())
	if got := node.Calls()["RescanAdapter"]; got != 1 {
		t.Errorf("%d rescans, want one of the whole tree", got)
	}
}

// TestRescan_HangingAdapter: the error names the adapter, whether the caller's deadline or our
// limit comes first, and the disks of the other adapter are updated.
func TestRescan_HangingAdapter(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"the caller's deadline": 10 * time.Second, "our limit": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := newNode(t, winsim.Default())
				inject(t, node, winsim.Fault{Call: "RescanAdapter", Object: dataAdapter, Delay: 90 * time.Second})
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				start := time.Now()
				err := bound(ctx, node).Rescan()
				if want := min(timeout, time.Minute); time.Since(start) != want {
					t.Errorf("it took %s, want %s", time.Since(start), want)
				}
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "adapter "+dataAdapter) {
					t.Errorf("got %v, want one that names %s", err, dataAdapter)
				}
				time.Sleep(time.Minute) // let it end
				if got := node.Calls()["UpdateDisk"]; got != 4 {
					t.Errorf("%d disks were updated, want 4", got)
				}
			})
		})
	}
}

// TestRescan_Shared: a caller who comes during a rescan needs a later one, because its disk may
// have come too late for this one. All such callers share the next rescan.
func TestRescan_Shared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t, winsim.Default())
		inject(t, node, winsim.Fault{Call: "StorageAdapters", Delay: 10 * time.Second})
		h := bound(t.Context(), node)
		var wg sync.WaitGroup
		ask := func(want time.Duration) {
			start := time.Now()
			wg.Go(func() {
				if err := h.Rescan(); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took != want {
					t.Errorf("a rescan took %s, want %s", took, want)
				}
			})
		}
		ask(10 * time.Second)
		synctest.Wait() // it has started
		for range 50 {
			ask(20 * time.Second)
		}
		time.Sleep(time.Second)
		for range 50 {
			ask(19 * time.Second)
		}
		wg.Wait()
		if got := node.Calls()["StorageAdapters"]; got != 2 {
			t.Errorf("%d rescans for 101 callers, want 2", got)
		}
		ask(10 * time.Second)
		wg.Wait()
		if got := node.Calls()["StorageAdapters"]; got != 3 {
			t.Errorf("%d rescans after another caller, want 3", got)
		}
	})
}

// TestRescan_CallersLeave: a rescan that has begun is completed, and one that still waits when
// its callers leave is dropped.
func TestRescan_CallersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t, winsim.Default())
		inject(t, node, winsim.Fault{Call: "StorageAdapters", Delay: 10 * time.Second})
		h := bound(t.Context(), node)
		for range 2 { // the first begins, the second waits for it
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := h.WithContext(ctx).Rescan(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want the deadline", err)
			}
			cancel()
		}
		time.Sleep(time.Minute)
		if calls := node.Calls(); calls["StorageAdapters"] != 1 || calls["UpdateDisk"] != 4 {
			t.Errorf("%v, want one complete rescan", calls)
		}
	})
}
