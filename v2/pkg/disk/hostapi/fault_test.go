package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/sweep"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// codes are failures of each kind that Windows may give to any call.
var codes = []uint32{5, 21, 87, 1117}

// failEachCall fails each call of an operation in turn, once or for good, with each code. The
// operation may fail or not, but it must name the disk; then, without the fault, it must
// succeed. check looks at the node after each of the two.
func failEachCall(t *testing.T, try func() bool, model winsim.Model, operate func(diskapi.DiskAPI) error, check func(t *testing.T, node *winsim.Node, done bool)) {
	t.Helper()
	node := newNode(t, model)
	require.NoError(t, operate(bound(t.Context(), node)))
	total := 0
	for _, count := range node.Calls() {
		total += count
	}
	for nth := range total {
		for _, code := range codes {
			for _, times := range []int{1, 0} {
				if !try() {
					continue
				}
				t.Run(fmt.Sprintf("call %d answers %d, times %d", nth+1, code, times), func(t *testing.T) {
					node := newNode(t, model)
					fault := inject(t, node, winsim.Fault{Nth: nth + 1, Error: code, Times: times})
					err := operate(bound(t.Context(), node))
					fault.Remove()
					if err != nil && !strings.Contains(err.Error(), "disk ") {
						t.Errorf("%v names no disk", err)
					}
					if err != nil && winerr.CodeOf(err) != winerr.Code(code) && winerr.KindOf(err) != winerr.Deadline {
						t.Errorf("%v does not name code %d", err, code)
					}
					check(t, node, err == nil)
					require.NoError(t, operate(bound(t.Context(), node)), "retry:")
					check(t, node, true)
				})
			}
		}
	}
}

func TestFaults_BlankDisk(t *testing.T) {
	t.Parallel()
	for name, model := range map[string]winsim.Model{
		"online":  winsim.Default(),
		"offline": withStorage(func(s *winsim.Storage) { s.SANPolicy, s.CreateDiskMSR = winsim.OfflineAll, winsim.MSRLate }),
	} {
		for way, partition := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				failEachCall(t, sweep.OneIn(t, 10), model, func(h diskapi.DiskAPI) error { return partition(h, blank) }, func(t *testing.T, node *winsim.Node, done bool) {
					t.Helper()
					if way != "PartitionDisk" { // whose retry may find nothing left to wait for
						_ = node.Sleep(t.Context(), time.Second)
					}
					if done {
						wantPartition(t, node, blank)
					}
				})
			})
		}
	}
}

// TestFaults_UsedDisk: no failure of any call makes us write to a disk with data.
func TestFaults_UsedDisk(t *testing.T) {
	t.Parallel()
	for name, disk := range used {
		disk.Offline, disk.LooksRaw = true, 1
		t.Run(name, func(t *testing.T) {
			model := withDisk(disk)
			before := fingerprint(t, newNode(t, model), added)
			partition := func(h diskapi.DiskAPI) error {
				err := h.PartitionDisk(added)
				if text := foreign[name]; text != "" && err != nil && strings.Contains(err.Error(), text) {
					return nil // which is the right answer
				}
				return err
			}
			failEachCall(t, sweep.OneIn(t, 10), model, partition, func(t *testing.T, node *winsim.Node, _ bool) {
				t.Helper()
				if fingerprint(t, node, added) != before {
					t.Error("the disk was written to")
				}
			})
		})
	}
}

func TestFaults_SuspectDisk(t *testing.T) {
	t.Parallel()
	for name, c := range suspect {
		t.Run(name, func(t *testing.T) {
			model := withDisk(c.disk)
			before := fingerprint(t, newNode(t, model), added)
			try := sweep.OneIn(t, 10)
			for nth := range 20 {
				for _, code := range codes {
					if !try() {
						continue
					}
					node := newNode(t, model)
					inject(t, node, winsim.Fault{Nth: nth + 1, Error: code, Times: 1})
					for range 2 {
						if err := bound(t.Context(), node).PartitionDisk(added); err == nil {
							t.Errorf("call %d answers %d: success", nth+1, code)
						}
					}
					if fingerprint(t, node, added) != before {
						t.Errorf("call %d answers %d: the disk was written to", nth+1, code)
					}
				}
			}
		})
	}
}

func TestFaults_State(t *testing.T) {
	t.Parallel()
	for _, online := range []bool{true, false} {
		model := winsim.Default()
		if online {
			model.Storage.SANPolicy = winsim.OfflineAll
		}
		failEachCall(t, sweep.OneIn(t, 10), model, func(h diskapi.DiskAPI) error { return h.SetDiskState(blank, online) }, func(t *testing.T, node *winsim.Node, done bool) {
			t.Helper()
			if done && attributes(t, node, blank).Offline == online {
				t.Errorf("the disk is %+v", attributes(t, node, blank))
			}
		})
	}
}
