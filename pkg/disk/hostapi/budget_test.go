package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// budgets are the calls to Windows that each operation makes on a node with the system
// disk and three others. A change that needs more has to say so here.
var budgets = []struct {
	name  string
	model func() winsim.Model
	do    func(diskapi.DiskAPI) error
	want  string
}{
	{
		"ListDiskIDs", winsim.Default,
		func(h diskapi.DiskAPI) error { _, err := h.ListDiskIDs(); return err },
		"13: DeviceDescriptor 4, DeviceIdentifiers 4, DeviceNumber 4, DiskDevices",
	},
	{
		"ListDiskLocations", winsim.Default,
		func(h diskapi.DiskAPI) error { _, err := h.ListDiskLocations(); return err },
		"13: DeviceDescriptor 4, DeviceLocation 4, DeviceNumber 4, DiskDevices",
	},
	{
		"ListDiskLocations by address", withoutLocations,
		func(h diskapi.DiskAPI) error { _, err := h.ListDiskLocations(); return err },
		"17: DeviceDescriptor 4, DeviceLocation 4, DeviceNumber 4, DiskDevices, SCSIAddress 4",
	},
	{
		"GetDiskStats", winsim.Default,
		func(h diskapi.DiskAPI) error { _, err := h.GetDiskStats(blank); return err },
		"1: DiskGeometry",
	},
	{
		"GetDiskState", winsim.Default,
		func(h diskapi.DiskAPI) error { _, err := h.GetDiskState(blank); return err },
		"1: DiskAttributes",
	},
	{
		"SetDiskState, no change", winsim.Default,
		func(h diskapi.DiskAPI) error { return h.SetDiskState(blank, true) },
		"1: DiskAttributes",
	},
	{
		"SetDiskState, online", offline,
		func(h diskapi.DiskAPI) error { return h.SetDiskState(blank, true) },
		"5: DiskAttributes 3, SetDiskAttributes, UpdateDisk",
	},
	{
		"SetDiskState, offline", winsim.Default,
		func(h diskapi.DiskAPI) error { return h.SetDiskState(blank, false) },
		"9: DiskAttributes 4, SetDiskAttributes, SystemVolumes, UpdateDisk, VolumeExtents 2",
	},
	{
		"IsDiskInitialized", winsim.Default,
		func(h diskapi.DiskAPI) error { _, err := h.IsDiskInitialized(blank); return err },
		"1: DriveLayout",
	},
	{
		"BasicPartitionsExist", winsim.Default,
		func(h diskapi.DiskAPI) error { _, err := h.BasicPartitionsExist(blank); return err },
		"1: DriveLayout",
	},
	{
		"PartitionDisk, blank", atOnce,
		func(h diskapi.DiskAPI) error { return h.PartitionDisk(blank) },
		"49: CreateDisk, DeviceDescriptor 5, DeviceIdentifiers 5, DeviceNumber 4, DiskAttributes 3, DiskDevices, DiskGeometry 5, DriveLayout 8, OnlineVolume, ReadDevice 9, SetDriveLayout, SystemVolumes, UpdateDisk 2, VolumeExtents 3",
	},
	{
		"PartitionDisk, partitioned", partitioned,
		func(h diskapi.DiskAPI) error { return h.PartitionDisk(added) },
		"7: DiskAttributes, DriveLayout, OnlineVolume, SystemVolumes, VolumeExtents 3",
	},
	{
		"Rescan", winsim.Default,
		func(h diskapi.DiskAPI) error { return h.Rescan() },
		"12: DiskDevices, RescanAdapter 2, StorageAdapters, UpdateDisk 4, UpdateDriveSize 4",
	},
}

func withoutLocations() winsim.Model {
	model := winsim.Default()
	for i := range model.Disks {
		model.Disks[i].Location = ""
	}
	return model
}

func offline() winsim.Model {
	return withStorage(func(s *winsim.Storage) { s.SANPolicy = winsim.OfflineAll })
}

// atOnce is a machine on which nobody has to wait for a volume.
func atOnce() winsim.Model { return withStorage(func(s *winsim.Storage) { *s = winsim.Storage{} }) }

func partitioned() winsim.Model { return withDisk(used["NTFS"]) }

// spent returns the number of calls and which they were.
func spent(node *winsim.Node) (int, string) {
	calls, total := node.Calls(), 0
	var each []string
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		total += calls[name]
		if calls[name] > 1 {
			name = fmt.Sprintf("%s %d", name, calls[name])
		}
		each = append(each, name)
	}
	return total, fmt.Sprintf("%d: %s", total, strings.Join(each, ", "))
}

func TestBudgets(t *testing.T) {
	for _, budget := range budgets {
		t.Run(budget.name, func(t *testing.T) {
			node := newNode(t, budget.model())
			if err := budget.do(bound(t.Context(), node)); err != nil {
				t.Fatal(err)
			}
			if _, got := spent(node); got != budget.want {
				t.Errorf("it took\n\t%s, want\n\t%s", got, budget.want)
			}
		})
	}
}

// BenchmarkBudgets prints the same as a table.
func BenchmarkBudgets(b *testing.B) {
	for _, budget := range budgets {
		b.Run(strings.ReplaceAll(budget.name, " ", "_"), func(b *testing.B) {
			calls := 0
			for b.Loop() {
				b.StopTimer()
				node, err := winsim.New(budget.model())
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if err := budget.do(bound(b.Context(), node)); err != nil {
					b.Fatal(err)
				}
				calls, _ = spent(node)
			}
			b.ReportMetric(float64(calls), "calls/op")
		})
	}
}

// manyDisks is a node with a thousand disks of one volume each, and the system disk.
func manyDisks() winsim.Model {
	model := winsim.Default()
	model.Disks = model.Disks[:1]
	for range 1000 {
		model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{}}, SCSI: &winsim.SCSI{}})
	}
	return model
}

// TestManyDisks: lists grow with the number of disks, calls on one disk do not.
func TestManyDisks(t *testing.T) {
	node := newNode(t, manyDisks())
	h := bound(t.Context(), node)
	for _, c := range []struct {
		name string
		do   func() (int, error)
		disks,
		calls int
	}{
		{"ListDiskIDs", func() (int, error) { found, err := h.ListDiskIDs(); return len(found), err }, 1001, 1 + 3*1001},
		{"ListDiskLocations", func() (int, error) { found, err := h.ListDiskLocations(); return len(found), err }, 1001, 1 + 3*1001 + 1000},
		{"PartitionDisk", func() (int, error) { return 0, h.PartitionDisk(500) }, 0, 7},
	} {
		node.ResetCalls()
		disks, err := c.do()
		if total, calls := spent(node); err != nil || disks != c.disks || total != c.calls {
			t.Errorf("%s: %d disks, %v, calls %s, want %d disks, %d calls", c.name, disks, err, calls, c.disks, c.calls)
		}
	}
}
