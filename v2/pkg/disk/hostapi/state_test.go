package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/klogtest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestSetDiskState_ReadOnly: the SAN policy's read-only goes together with its offline, in one
// request; any other stays (csi-proxy#437).
func TestSetDiskState_ReadOnly(t *testing.T) {
	data := gpt(winsim.Partition{Type: "msr"}, winsim.Partition{Volume: ntfs()})
	for name, c := range map[string]struct {
		change   func(*winsim.Disk)
		want     win.DiskAttributes
		requests int
		log      string
	}{
		"offline":                 {func(d *winsim.Disk) { d.Offline = true }, win.DiskAttributes{}, 1, ""},
		"offline and read-only":   {func(d *winsim.Disk) { d.Offline, d.ReadOnly = true, true }, win.DiskAttributes{}, 1, ""},
		"online and read-only":    {func(d *winsim.Disk) { d.ReadOnly = true }, win.DiskAttributes{ReadOnly: true}, 0, ""},
		"offline and protected":   {func(d *winsim.Disk) { d.Offline, d.WriteProtected = true, true }, win.DiskAttributes{ReadOnly: true}, 3, "comes online read-only"},
		"online and protected":    {func(d *winsim.Disk) { d.WriteProtected = true }, win.DiskAttributes{ReadOnly: true}, 0, ""},
		"online, as it mostly is": {func(*winsim.Disk) {}, win.DiskAttributes{}, 0, ""},
	} {
		for way, take := range map[string]func(diskapi.DiskAPI) error{
			"SetDiskState":  func(h diskapi.DiskAPI) error { return h.SetDiskState(added, true) },
			"PartitionDisk": func(h diskapi.DiskAPI) error { return h.PartitionDisk(added) },
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				disk := data
				c.change(&disk)
				node := newNode(t, withDisk(disk))
				ctx, log := klogtest.Context(t)
				unchanged(t, node, added, func() {
					for range 2 {
						require.NoError(t, take(bound(ctx, node)))
					}
				})
				if got := attributes(t, node, added); got != c.want {
					t.Errorf("the disk is %+v, want %+v", got, c.want)
				}
				if got := node.Calls()["SetDiskAttributes"]; got != c.requests {
					t.Errorf("%d requests, want %d", got, c.requests)
				}
				if (c.log == "") != (log.Len() == 0) || !strings.Contains(log.String(), c.log) {
					t.Errorf("the log is %q, want %q in it", log.String(), c.log)
				}
				volumes := volumesOn(t, node, added)
				if len(volumes) != 1 {
					t.Fatalf("the volumes are %q, want one", volumes)
				}
				err := node.WriteFile(string(volumes[0])+"new", "text")
				if (err == nil) == c.want.ReadOnly {
					t.Errorf("a pod's write: %v, on a disk that is %+v", err, c.want)
				}
			})
		}
	}
}

// TestSetDiskState_VolumeArrivesLate: the error says what waits longer. The next call does not.
func TestSetDiskState_VolumeArrivesLate(t *testing.T) {
	disk := ownDisk()
	disk.Offline = true
	model := withDisk(disk)
	model.Storage.VolumeArrival = 45 * time.Second
	node := newNode(t, model)
	err := diskapi.NewOn(node).SetDiskState(added, true)
	if wantKind(t, "SetDiskState", err, winerr.Deadline); err != nil && !strings.Contains(err.Error(), "ListVolumesOnDisk waits longer") {
		t.Error(err)
	}
	require.NoError(t, diskapi.NewOn(node).SetDiskState(added, true))
	if ids, err := node.Volume().ListVolumesOnDisk(added, 0); err == nil {
		t.Errorf("the volumes are %q", ids)
	}
	require.NoError(t, node.Sleep(t.Context(), 15*time.Second))
	_, err = node.Volume().ListVolumesOnDisk(added, 0)
	require.NoError(t, err)
}

// TestSetDiskState_PutOfflineAgain: Windows may undo the change when it gets round to the
// arrival of the disk.
func TestSetDiskState_PutOfflineAgain(t *testing.T) {
	for _, c := range []struct {
		times int
		holds bool
	}{{1, true}, {3, true}, {1000, false}} {
		node := newNode(t, withStorage(func(s *winsim.Storage) { s.SANPolicy, s.OfflineAgain = winsim.OfflineAll, c.times }))
		start := node.Now()
		err := diskapi.NewOn(node).SetDiskState(blank, true)
		took := node.Now().Sub(start)
		if c.holds {
			if err != nil || attributes(t, node, blank).Offline {
				t.Errorf("undone %d times: %v, %+v", c.times, err, attributes(t, node, blank))
			}
			continue
		}
		wantKind(t, "undone for ever", err, winerr.Busy)
		if err != nil && !strings.Contains(err.Error(), "disk 1") {
			t.Errorf("%v does not name the disk", err)
		}
		if took > 6*time.Second {
			t.Errorf("it took %s to give up", took)
		}
	}
}

func TestSetDiskState_Failures(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault winsim.Fault
		kind  winerr.Kind
		ok    bool
	}{
		{"in use for a moment", winsim.Fault{Call: "SetDiskAttributes", Error: 32, Times: 2}, 0, true},
		{"busy for a moment", winsim.Fault{Call: "SetDiskAttributes", Error: 170, Times: 2}, 0, true},
		{"in use for ever", winsim.Fault{Call: "SetDiskAttributes", Error: 32}, winerr.Busy, false},
		{"denied", winsim.Fault{Call: "SetDiskAttributes", Error: 5}, winerr.Denied, false},
		{"gone", winsim.Fault{Call: "SetDiskAttributes", Error: 1167}, winerr.NotFound, false},
		{"cannot be looked at", winsim.Fault{Call: "DiskAttributes", Error: 1117}, winerr.Internal, false},
		{"cannot be looked at again", winsim.Fault{Call: "DiskAttributes", Error: 1117, Nth: 3}, winerr.Internal, false},
		{"Windows does not know its volumes", winsim.Fault{Call: "SystemVolumes", Error: 2}, winerr.Unavailable, false},
		{"Windows does not know its disk", winsim.Fault{Call: "VolumeExtents", Error: 87}, winerr.Unavailable, false},
		{"no update", winsim.Fault{Call: "UpdateDisk", Error: 1}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := newNode(t, winsim.Default())
			fault := inject(t, node, c.fault)
			err := diskapi.NewOn(node).SetDiskState(blank, false)
			if c.ok {
				require.NoError(t, err)
				return
			}
			wantKind(t, "SetDiskState", err, c.kind)
			if winerr.CodeOf(err) != winerr.Code(c.fault.Error) || !strings.Contains(err.Error(), "disk 1") {
				t.Errorf("%v does not name the disk and the code", err)
			}
			fault.Remove()
			require.NoError(t, diskapi.NewOn(node).SetDiskState(blank, false), "again:")
		})
	}
}

// TestSetDiskState_PassingFailure: a failure that passes does not leave a disk read-only for
// good behind an OK.
func TestSetDiskState_PassingFailure(t *testing.T) {
	for _, code := range []uint32{1, 5, 19, 21, 31, 50, 87, 1117} {
		disk := used["NTFS"]
		disk.Offline, disk.ReadOnly = true, true
		node := newNode(t, withDisk(disk))
		fault := inject(t, node, winsim.Fault{Call: "SetDiskAttributes", Error: code, Times: 1})
		h := bound(t.Context(), node)
		err := h.SetDiskState(added, true)
		if fault.Hits() != 1 {
			t.Fatalf("%d: the fault was hit %d times", code, fault.Hits())
		}
		if err != nil { // which a driver repeats
			err = h.SetDiskState(added, true)
		}
		if got := attributes(t, node, added); err != nil || got != (win.DiskAttributes{}) {
			t.Errorf("%d: %v, the disk is %+v, want it online and writable", code, err, got)
		}
	}
}

// silentlyProtected is a machine that accepts a request to make a disk writable and ignores it.
type silentlyProtected struct{ *winsim.Node }

func (m silentlyProtected) SetDiskAttributes(ctx context.Context, d win.Device, attributes, mask win.DiskAttributes) error {
	mask.ReadOnly = false
	return m.Node.SetDiskAttributes(ctx, d, attributes, mask)
}

func TestSetDiskState_SilentlyProtected(t *testing.T) {
	disk := used["NTFS"]
	disk.Offline, disk.ReadOnly = true, true
	node := newNode(t, withDisk(disk))
	ctx, log := klogtest.Context(t)
	h := diskapi.NewOn(silentlyProtected{node}).WithContext(ctx)
	require.NoError(t, h.SetDiskState(added, true))
	if got, want := attributes(t, node, added), (win.DiskAttributes{ReadOnly: true}); got != want || !strings.Contains(log.String(), "online read-only") {
		t.Errorf("the disk is %+v, the log %q; want %+v and a line", got, log.String(), want)
	}
}
