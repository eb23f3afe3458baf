package api_test

import (
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// The disks of the tests below: a disk, and a copy of it, as a restored snapshot is.
const (
	original = 7
	restored = 8
)

func original7(layout winsim.Layout) winsim.Disk {
	disk := winsim.Disk{
		Number: original, Size: winsim.GiB, Layout: layout, Serial: "ORIGINAL",
		ID:         "0b5a1a5e-0000-4000-8000-000000000001",
		Partitions: []winsim.Partition{{Volume: ntfs()}},
	}
	if layout == winsim.LayoutMBR {
		disk.ID = "c0ffee01"
	} else {
		disk.Partitions[0].ID = "0b5a1a5e-0000-4000-8000-000000000002"
	}
	return disk
}

// copyOf is a copy of a disk: the same content, from another device.
func copyOf(disk winsim.Disk) winsim.Disk {
	disk.Number, disk.Serial = restored, "COPY"
	return disk
}

// TestSetDiskState_Copy: a copy beside its original comes online with ids of its own, however it
// arrives. The one that was online first never changes (csi-proxy#287, azuredisk#1909).
func TestSetDiskState_Copy(t *testing.T) {
	for _, layout := range []winsim.Layout{winsim.LayoutGPT, winsim.LayoutMBR} {
		for name, c := range map[string]struct {
			policy        winsim.SANPolicy
			first, second func(winsim.Disk) winsim.Disk // in the order of attachment
		}{
			"the copy second":                {winsim.OnlineAll, same, copyOf},
			"the original second":            {winsim.OnlineAll, copyOf, same},
			"the copy second, read-only":     {winsim.OfflineAll, same, copyOf},
			"the original second, read-only": {winsim.OfflineAll, copyOf, same},
		} {
			for way, take := range map[string]func(diskapi.DiskAPI, uint32) error{
				"SetDiskState":  func(h diskapi.DiskAPI, disk uint32) error { return h.SetDiskState(disk, true) },
				"PartitionDisk": diskapi.DiskAPI.PartitionDisk,
			} {
				t.Run(strings.Join([]string{string(layout), name, way}, ", "), func(t *testing.T) {
					node := newNode(t, withStorage(func(s *winsim.Storage) { s.SANPolicy = c.policy }))
					h := bound(t.Context(), node)
					first := attach(t, node, c.first(original7(layout)))
					require.NoError(t, take(h, first))
					before := fingerprint(t, node, first)
					second := attach(t, node, c.second(original7(layout)))
					if !attributes(t, node, second).Offline {
						t.Fatal("the emulator lets two disks with the same id be online")
					}
					for range 2 {
						require.NoError(t, take(h, second))
					}
					if got := attributes(t, node, second); got != (win.DiskAttributes{}) {
						t.Errorf("the second disk is %+v, want it online and writable", got)
					}
					if fingerprint(t, node, first) != before {
						t.Error("the first disk was changed")
					}
					volumes := map[uint32][]win.VolumeID{first: volumesOn(t, node, first), second: volumesOn(t, node, second)}
					if len(volumes[first]) != 1 || len(volumes[second]) != 1 || volumes[first][0] == volumes[second][0] {
						t.Fatalf("the volumes are %v", volumes)
					}
					if content, err := node.ReadFile(string(volumes[second][0]) + "precious"); content != "data" {
						t.Errorf("the second disk contains %q, %v", content, err)
					}
				})
			}
		}
	}
}

// TestSetDiskState_ProtectedCopy: a copy that cannot get a new id stays offline, and the error
// names its twin.
func TestSetDiskState_ProtectedCopy(t *testing.T) {
	node := newNode(t, winsim.Default())
	attach(t, node, original7(winsim.LayoutGPT))
	protected := copyOf(original7(winsim.LayoutGPT))
	protected.WriteProtected = true
	attach(t, node, protected)
	h := bound(t.Context(), node)
	for range 2 {
		unchanged(t, node, original, func() {
			err := h.SetDiskState(restored, true)
			wantKind(t, "SetDiskState", err, winerr.Busy)
			for _, want := range []string{"disk 8", "disk 7 has the same id", "detach"} {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not contain %q", err, want)
				}
			}
		})
	}
	require.NoError(t, node.DetachDisk(original))
	require.NoError(t, h.SetDiskState(restored, true), "without its twin:")
}

func same(disk winsim.Disk) winsim.Disk { return disk }

func attach(t *testing.T, node *winsim.Node, disk winsim.Disk) uint32 {
	t.Helper()
	number, err := node.AttachDisk(disk)
	require.NoError(t, err)
	return number
}
