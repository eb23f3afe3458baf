package api_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// realTime is the default node on the clock of the test's bubble.
func realTime() winsim.Model {
	model := winsim.Default()
	model.RealTime = true
	return model
}

// TestPartitionDisk_HundredCallers: also with the published methods, which the queue alone keeps safe.
func TestPartitionDisk_HundredCallers(t *testing.T) {
	for name, partition := range map[string]func(diskapi.DiskAPI, uint32) error{
		"PartitionDisk": diskapi.DiskAPI.PartitionDisk,
		"published":     func(h diskapi.DiskAPI, disk uint32) error { return published(h, disk) },
	} {
		synctest.Test(t, func(t *testing.T) {
			node := newNode(t, realTime())
			h := bound(t.Context(), node)
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					if err := partition(h, blank); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			wg.Wait()
			wantPartition(t, node, blank)
			if calls := node.Calls(); calls["CreateDisk"] != 1 || calls["SetDriveLayout"] != 1 {
				t.Errorf("%s: more was written than one table with one partition: %v", name, calls)
			}
		})
	}
}

// TestPartitionDisk_CallersLeave: callers whose context ends get their answer at once, the work
// goes on, and is not started again.
func TestPartitionDisk_CallersLeave(t *testing.T) {
	for _, call := range []string{"SystemVolumes", "DiskAttributes", "DriveLayout", "CreateDisk", "SetDriveLayout", "OnlineVolume"} {
		t.Run("in "+call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := newNode(t, realTime())
				hang := inject(t, node, winsim.Fault{Call: call, Delay: time.Minute, Times: 1})
				h := diskapi.NewOn(node)
				for range 3 {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					start := time.Now()
					err := h.WithContext(ctx).(diskapi.DiskAPI).PartitionDisk(blank)
					if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Second {
						t.Errorf("%v after %s", err, time.Since(start))
					}
					cancel()
				}
				require.NoError(t, h.WithContext(t.Context()).(diskapi.DiskAPI).PartitionDisk(blank))
				wantPartition(t, node, blank)
				if calls := node.Calls(); hang.Hits() != 1 || calls["CreateDisk"] != 1 || calls["SetDriveLayout"] != 1 {
					t.Errorf("the work was begun again: %v", calls)
				}
			})
		})
	}
}

// TestSetDiskState_CarriedThrough: what has begun ends, and the next caller waits for it.
func TestSetDiskState_CarriedThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t, realTime())
		inject(t, node, winsim.Fault{Call: "SetDiskAttributes", Delay: 20 * time.Second, Times: 1})
		h := diskapi.NewOn(node)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.WithContext(ctx).SetDiskState(blank, false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller with a deadline: %v", err)
		}
		require.NoError(t, h.WithContext(t.Context()).SetDiskState(blank, false), "the retry:")
		if got := node.Calls()["SetDiskAttributes"]; got != 1 {
			t.Errorf("the disk was changed %d times, want once", got)
		}
		if !attributes(t, node, blank).Offline {
			t.Error("the disk is online")
		}
	})
}

// TestNew_SharesLocks: drivers make a new client for each call.
func TestNew_SharesLocks(t *testing.T) {
	if diskapi.New() != (diskapi.DiskAPI{}) {
		t.Error("New returns something else than the zero value, which shares one state")
	}
}

// TestPartitionDisk_SickVolumeElsewhere: looking for our volume among all others does not
// hang with one of them.
func TestPartitionDisk_SickVolumeElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sick = `\\?\Volume{5ccccccc-0000-0000-0000-000000000000}`
		model := withDisk(gpt(winsim.Partition{Volume: &winsim.Volume{ID: sick}}))
		model.RealTime, model.Storage.ForeignVolumeIDs = true, true
		node := newNode(t, model)
		hang := inject(t, node, winsim.Fault{Call: "VolumeExtents", Object: sick + "*", Delay: time.Hour})
		start := time.Now()
		require.NoError(t, bound(t.Context(), node).PartitionDisk(blank))
		if took := time.Since(start); took > 10*time.Second || hang.Hits() != 1 {
			t.Errorf("it took %s, and the volume was asked %d times", took, hang.Hits())
		}
		hang.Remove()
		wantPartition(t, node, blank)
	})
}
