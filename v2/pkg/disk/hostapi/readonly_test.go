package api_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/sweep"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestSetDiskReadOnly(t *testing.T) {
	for _, offline := range []bool{false, true} {
		disk := used["NTFS"]
		disk.Offline = offline
		node := newNode(t, withDisk(disk))
		h := bound(t.Context(), node)
		unchanged(t, node, added, func() {
			for _, readOnly := range []bool{false, true, true, false} {
				require.NoError(t, h.SetDiskReadOnly(added, readOnly))
				if got, err := h.GetDiskReadOnly(added); err != nil || got != readOnly {
					t.Errorf("read-only = %v, %v, want %v", got, err, readOnly)
				}
				if got, want := attributes(t, node, added), (win.DiskAttributes{Offline: offline, ReadOnly: readOnly}); got != want {
					t.Errorf("the disk is %+v, want %+v", got, want)
				}
			}
		})
		if got := node.Calls()["SetDiskAttributes"]; got != 2 {
			t.Errorf("the disk was changed %d times, want 2", got)
		}
	}
}

func TestSetDiskReadOnly_Refused(t *testing.T) {
	node := newNode(t, withDisk(winsim.Disk{WriteProtected: true}))
	h := bound(t.Context(), node)
	wantKind(t, "the system disk", h.SetDiskReadOnly(systemDisk, true), winerr.Denied)
	wantKind(t, "a disk that is not there", h.SetDiskReadOnly(missing, true), winerr.NotFound)
	wantKind(t, "a protected disk", h.SetDiskReadOnly(added, false), winerr.InUse)
	_, err := h.GetDiskReadOnly(missing)
	wantKind(t, "the state of a disk that is not there", err, winerr.NotFound)
	wantKind(t, "the system disk, which is writable already", h.SetDiskReadOnly(systemDisk, false), winerr.Denied)
	if attributes(t, node, systemDisk).ReadOnly {
		t.Error("the system disk is read-only")
	}
}

// neverWritable reports a disk that is online and writable at any call, once it was not.
func neverWritable(t *testing.T, node *winsim.Node, disk uint32) {
	t.Helper()
	var mu sync.Mutex // calls are at once
	seen := false     // whether it was not
	inject(t, node, winsim.Fault{Do: func(node *winsim.Node) {
		mu.Lock()
		defer mu.Unlock()
		info, err := node.DiskInfo(disk)
		writable := err == nil && !info.Offline && !info.ReadOnly
		if !writable {
			seen = true
		} else if seen || info.LogOpened > 0 {
			t.Errorf("disk %d is online and writable, and NTFS has mounted it %d times", disk, info.LogOpened)
		}
	}})
}

func TestOnlineDiskReadOnly(t *testing.T) {
	for name, change := range map[string]func(*winsim.Disk, *winsim.Storage){
		"offline":                       func(d *winsim.Disk, _ *winsim.Storage) { d.Offline = true },
		"offline and read-only":         func(d *winsim.Disk, _ *winsim.Storage) { d.Offline, d.ReadOnly = true, true },
		"online":                        func(_ *winsim.Disk, _ *winsim.Storage) {},
		"online and read-only":          func(d *winsim.Disk, _ *winsim.Storage) { d.ReadOnly = true },
		"protected by the platform":     func(d *winsim.Disk, _ *winsim.Storage) { d.Offline, d.WriteProtected = true, true },
		"goes offline again":            func(d *winsim.Disk, s *winsim.Storage) { d.Offline, s.OfflineAgain = true, 2 },
		"goes offline again, read-only": func(d *winsim.Disk, s *winsim.Storage) { d.Offline, d.ReadOnly, s.OfflineAgain = true, true, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			for _, arrival := range []time.Duration{0, 6 * time.Second} {
				model := withStorage(func(s *winsim.Storage) { s.VolumeArrival = arrival })
				disk := used["NTFS"]
				disk.Number, disk.Size = added, winsim.GiB
				change(&disk, &model.Storage)
				model.Disks = append(model.Disks, disk)
				node := newNode(t, model)
				neverWritable(t, node, added)
				unchanged(t, node, added, func() {
					for range 2 {
						require.NoError(t, bound(t.Context(), node).OnlineDiskReadOnly(added))
						if got, want := attributes(t, node, added), (win.DiskAttributes{ReadOnly: true}); got != want || len(volumesOn(t, node, added)) != 1 {
							t.Errorf("the disk is %+v with %d volumes, want %+v with one", got, len(volumesOn(t, node, added)), want)
						}
					}
				})
			}
		})
	}
}

// TestOnlineDiskReadOnly_OfflineLate: a disk that goes offline while its volume is awaited does not
// come back writable, which SetDiskState makes it.
func TestOnlineDiskReadOnly_OfflineLate(t *testing.T) {
	disk := used["NTFS"]
	disk.Offline = true
	model := withDisk(disk)
	model.Storage.VolumeArrival = 3 * time.Second
	node := newNode(t, model)
	neverWritable(t, node, added)
	inject(t, node, winsim.Fault{Call: "DriveLayout", Nth: 1, Times: 1, Do: func(node *winsim.Node) {
		both := win.DiskAttributes{Offline: true, ReadOnly: true}
		if err := node.SetDiskAttributes(t.Context(), win.PhysicalDrive(added), both, both); err != nil {
			t.Error(err)
		}
	}})
	require.NoError(t, bound(t.Context(), node).OnlineDiskReadOnly(added))
	if got, want := attributes(t, node, added), (win.DiskAttributes{ReadOnly: true}); got != want {
		t.Errorf("the disk is %+v, want %+v", got, want)
	}
}

func TestOnlineDiskReadOnly_Refused(t *testing.T) {
	node := newNode(t, withDisk(used["NTFS"]))
	h := bound(t.Context(), node)
	wantKind(t, "the system disk", h.OnlineDiskReadOnly(systemDisk), winerr.Denied)
	wantKind(t, "a disk that is not there", h.OnlineDiskReadOnly(missing), winerr.NotFound)
	folder := `C:\var\lib\kubelet\mount`
	require.NoError(t, node.MountFolder(folder, string(volumesOn(t, node, added)[0])))
	err := h.OnlineDiskReadOnly(added)
	if wantKind(t, "a disk that is in use", err, winerr.InUse); !strings.Contains(err.Error(), folder) {
		t.Errorf("%v does not name the folder", err)
	}
	if got := attributes(t, node, added); got != (win.DiskAttributes{}) {
		t.Errorf("the refused disk is %+v", got)
	}

	// A copy would need new ids to be online beside its original.
	node = newNode(t, winsim.Default())
	attach(t, node, original7(winsim.LayoutGPT))
	unchanged(t, node, attach(t, node, copyOf(original7(winsim.LayoutGPT))), func() {
		wantKind(t, "a copy", bound(t.Context(), node).OnlineDiskReadOnly(restored), winerr.Busy)
	})
}

func TestFaults_OnlineReadOnly(t *testing.T) {
	t.Parallel()
	for _, offline := range []bool{true, false} {
		disk := used["NTFS"]
		disk.Offline, disk.ReadOnly = offline, offline
		operate := func(h diskapi.DiskAPI) error { return h.OnlineDiskReadOnly(added) }
		failEachCall(t, sweep.OneIn(t, 10), withDisk(disk), operate, func(t *testing.T, node *winsim.Node, done bool) {
			t.Helper()
			got := attributes(t, node, added)
			if info, err := node.DiskInfo(added); err != nil || info.LogOpened > 0 || done && (got.Offline || !got.ReadOnly) {
				t.Errorf("the disk is %+v, NTFS has mounted it %d times, %v", got, info.LogOpened, err)
			}
		})
	}
}

// TestOnlineDiskReadOnly_Mounted: a disk that is mounted at a folder stays online and writable, also if its volume
// does not report where it is.
func TestOnlineDiskReadOnly_Mounted(t *testing.T) {
	const folder = `C:\var\lib\kubelet\mount`
	for _, fault := range []winsim.Fault{{}, {Call: "VolumeExtents", Error: 1117}, {Call: "VolumeExtents", Error: 5}, {Call: "VolumePaths", Error: 21}} {
		node := newNode(t, withDisk(used["NTFS"]))
		info, err := node.DiskInfo(added)
		require.NoError(t, err)
		id := ""
		for _, p := range info.Partitions {
			if p.Volume != nil {
				id = p.Volume.ID
			}
		}
		require.NoError(t, node.MountFolder(folder, id))
		if fault.Call != "" {
			fault.Object, fault.Times = "*"+id+"*", 1
			inject(t, node, fault)
		}
		if err := bound(t.Context(), node).OnlineDiskReadOnly(added); err == nil {
			t.Errorf("%s %d: a disk in use went offline", fault.Call, fault.Error)
		}
		if now := attributes(t, node, added); now.Offline || now.ReadOnly {
			t.Errorf("%s %d: %+v", fault.Call, fault.Error, now)
		}
	}
}

// TestOnlineDiskReadOnly_OtherDiskFails: a mounted volume of another disk that does not answer is not in the way.
func TestOnlineDiskReadOnly_OtherDiskFails(t *testing.T) {
	model := withDisk(used["NTFS"])
	other := used["NTFS"]
	other.Number, other.Size, other.Partitions = added+1, winsim.GiB, []winsim.Partition{{Volume: &winsim.Volume{ID: "00000000-0000-0000-0007-000000000007"}}}
	model.Disks = append(model.Disks, other)
	node := newNode(t, model)
	require.NoError(t, node.MountFolder(`C:\var\lib\kubelet\second`, other.Partitions[0].Volume.ID))
	require.NoError(t, node.FailDisk(added+1))
	require.NoError(t, bound(t.Context(), node).OnlineDiskReadOnly(added))
}
