package api_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	mib = 1 << 20

	// How much of a disk of 1 and 2 GiB goes to the data partition, behind a reserved
	// one that ends at 16 MiB, and before the second partition table.
	of1GiB = 1007 * mib
	of2GiB = 2031 * mib
)

// wantSize checks that partition and file system have a size, the latter but for the
// cluster that holds the copy of its boot sector.
func wantSize(t *testing.T, node *winsim.Node, want int64) {
	t.Helper()
	disk, err := node.DiskInfo(firstDisk)
	must(t, err)
	at := slices.IndexFunc(disk.Partitions, func(p winsim.Partition) bool { return p.Volume != nil && p.Volume.ID == id })
	if at < 0 || int64(disk.Partitions[at].Size) != want {
		t.Errorf("want a partition of %d bytes among %+v", want, disk.Partitions)
	}
	total, _, err := volumeapi.NewOn(node).GetVolumeStats(id)
	if err != nil || total < want-2*4096 || total > want {
		t.Errorf("the file system has %d bytes, %v, want %d", total, err, want)
	}
}

// grown is a node whose disk of 1 GiB became one of 2 GiB. The partition has all of the smaller
// one, or the given size.
func grown(t *testing.T, change func(*winsim.Model), size ...int64) (*winsim.Node, volumeapi.HostAPI) {
	t.Helper()
	size = append(size, of1GiB)
	model := modelWith(gpt(winsim.GiB, formatted()))
	if change != nil {
		change(&model)
	}
	node := newNode(t, model)
	must(t, node.GrowDisk(firstDisk, 2*winsim.GiB))
	wantSize(t, node, size[0])
	return node, volumeapi.NewOn(node)
}

func TestResizeVolume(t *testing.T) {
	for name, c := range map[string]struct {
		size, want int64
	}{
		"all":                        {0, of2GiB},
		"part":                       {1500 * mib, 1500 * mib},
		"part of a sector":           {1500*mib + 1, 1500*mib + 512},
		"to the last mebibyte":       {of2GiB, of2GiB},
		"the size of the disk":       {2048 * mib, of2GiB}, // its tables are not the caller's concern
		"more than today's mebibyte": {of1GiB + mib, of1GiB + mib},
		"less than a mebibyte more":  {of1GiB + mib - 512, of1GiB},
		"the same":                   {of1GiB, of1GiB},
		"less":                       {100 * mib, of1GiB},
		"a single byte":              {1, of1GiB},
	} {
		t.Run(name, func(t *testing.T) {
			node, host := grown(t, nil)
			for range 2 {
				must(t, host.ResizeVolume(id, c.size))
				wantSize(t, node, c.want)
			}
			calls := 0
			if c.want > of1GiB {
				calls = 1
			}
			wantCalls(t, node, "GrowPartition", calls)
			wantCalls(t, node, "ExtendVolume", calls)
			must(t, host.MountVolume(id, target))
			if got, err := node.ReadFile(target + `\precious`); err != nil || got != "data" {
				t.Errorf("the volume shows %q, %v", got, err)
			}
		})
	}
}

func TestResizeVolume_LargeSectors(t *testing.T) {
	node, host := grown(t, func(m *winsim.Model) { m.Disks[1].SectorSize = 4096 })
	must(t, host.ResizeVolume(id, 1500*mib+1))
	wantSize(t, node, 1500*mib+4096)
	must(t, host.ResizeVolume(id, 0))
	wantSize(t, node, of2GiB)
}

// TestReFS: a format makes ReFS with its own clusters, and it grows; an edition without it says so.
func TestReFS(t *testing.T) {
	for _, size := range []uint32{4 << 10, 64 << 10} {
		node := nodeWith(t, unformatted())
		host := volumeapi.NewOn(node)
		must(t, formatWith(host, volumeapi.FormatOptions{FileSystem: "refs", AllocationUnitSize: size, Label: "mine", RootAccess: volumeapi.UsersModify}))
		if info := volumeInfo(t, node); info.FileSystem != winsim.ReFS || info.ClusterSize != winsim.Size(size) || info.Label != "mine" {
			t.Errorf("%+v", info)
		}
		wantFormatted(t, host, id, true)
		must(t, host.FormatVolume(id)) // keeps it
		must(t, node.GrowDisk(firstDisk, 2*winsim.GiB))
		must(t, host.ResizeVolume(id, 0))
		if total, used, err := host.GetVolumeStats(id); err != nil || total < 2000*mib || used <= 0 {
			t.Errorf("after growing: %d bytes, %d used, %v", total, used, err)
		}
		if info := volumeInfo(t, node); info.FileSystem != winsim.ReFS {
			t.Errorf("a format without options made it %s", info.FileSystem)
		}
	}
	model := modelWith(gpt(winsim.GiB, unformatted()))
	model.Storage.NoReFS = true
	node := newNode(t, model)
	wantKind(t, "no ReFS", formatWith(volumeapi.NewOn(node), volumeapi.FormatOptions{FileSystem: "ReFS"}), winerr.Unsupported, "this edition of Windows")
	wantFormatted(t, volumeapi.NewOn(node), id, false)
}

// TestResizeVolume_Nothing asks for all of a disk that has not grown: what differs from
// the exact end is less than a mebibyte.
func TestResizeVolume_Nothing(t *testing.T) {
	node := nodeWith(t, formatted())
	before := fingerprint(t, node)
	for _, size := range []int64{0, 1024 * mib} {
		must(t, volumeapi.NewOn(node).ResizeVolume(id, size))
	}
	if after := fingerprint(t, node); after != before {
		t.Error("the disk changed")
	}
}

func TestResizeVolume_Refuses(t *testing.T) {
	blocked := gpt(2*winsim.GiB, formatted())
	blocked.Partitions[1].Size = winsim.GiB / 2
	blocked.Partitions = append(blocked.Partitions, winsim.Partition{Type: "recovery", Offset: winsim.GiB, Size: winsim.GiB / 2})
	full := blocked
	full.Partitions = append(blocked.Partitions[:2:2], winsim.Partition{Type: "recovery", Size: winsim.GiB / 2})
	readOnly := gpt(winsim.GiB, formatted())
	readOnly.Partitions[1].Size = winsim.GiB / 2
	readOnlyVolume := readOnly
	readOnlyVolume.Partitions = slices.Clone(readOnly.Partitions)
	readOnlyVolume.Partitions[1].Attributes = 0x1000000000000000
	readOnly.ReadOnly = true
	superfloppy := winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutSuperfloppy, Partitions: []winsim.Partition{{Volume: pointer(formatted())}}}
	dynamic := modelWith(winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Type: "ldm-data"}}})
	dynamic.Volumes = []winsim.Volume{{ID: id, Extents: []winsim.Extent{{Disk: firstDisk, Offset: 100 * mib, Size: 100 * mib}}}}
	cdrom := modelWith()
	cdrom.Volumes = []winsim.Volume{{ID: id, CDROM: true, FileSystem: winsim.CDFS}}
	for name, c := range map[string]struct {
		model winsim.Model
		size  int64
		kind  winerr.Kind
		text  string
	}{
		"negative":                {modelWith(gpt(winsim.GiB, formatted())), -1, winerr.Invalid, "negative"},
		"more than the disk":      {modelWith(gpt(winsim.GiB, formatted())), 1025 * mib, winerr.NoSpace, "1073741824"},
		"more than there is":      {modelWith(gpt(winsim.GiB, formatted())), math.MaxInt64, winerr.NoSpace, "minimum of 1MB"},
		"a partition in the way":  {modelWith(blocked), 1500 * mib, winerr.NoSpace, "room for"},
		"a partition right there": {modelWith(full), 1500 * mib, winerr.NoSpace, "The size of the extent is less than the minimum of 1MB"},
		"read-only":               {modelWith(readOnly), 0, winerr.InUse, "read-only"},
		"read-only volume":        {modelWith(readOnlyVolume), 0, winerr.InUse, "read-only"},
		"superfloppy":             {modelWith(superfloppy), 0, winerr.Unsupported, "whole disk"},
		"dynamic":                 {dynamic, 0, winerr.Unsupported, "dynamic"},
		"CD-ROM":                  {cdrom, 0, winerr.InUse, id},
		"FAT32":                   {modelWith(gpt(winsim.GiB, winsim.Volume{ID: id, FileSystem: winsim.FAT32})), 0, winerr.Unsupported, "FAT32"},
		"not formatted":           {modelWith(gpt(winsim.GiB, unformatted())), 0, winerr.InUse, "FormatVolume"},
		"locked":                  {modelWith(gpt(winsim.GiB, winsim.Volume{ID: id, State: winsim.Locked})), 0, winerr.InUse, "BitLocker"},
		"offline":                 {modelWith(gpt(winsim.GiB, winsim.Volume{ID: id, State: winsim.NotReady})), 0, winerr.Unavailable, "offline"},
		"gone":                    {modelWith(gpt(winsim.GiB, winsim.Volume{ID: id, State: winsim.Gone})), 0, winerr.NotFound, id},
		"no such volume":          {modelWith(), 0, winerr.NotFound, id},
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t, c.model)
			before := fingerprint(t, node)
			for range 2 {
				wantKind(t, "ResizeVolume", volumeapi.NewOn(node).ResizeVolume(id, c.size), c.kind, c.text)
			}
			if after := fingerprint(t, node); after != before {
				t.Error("the disk changed")
			}
		})
	}
}

// TestResizeVolume_Blocked asks for all that fits before the next partition.
func TestResizeVolume_Blocked(t *testing.T) {
	disk := gpt(2*winsim.GiB, formatted())
	disk.Partitions[1].Size = winsim.GiB / 2
	disk.Partitions = append(disk.Partitions, winsim.Partition{Type: "recovery", Offset: winsim.GiB, Size: winsim.GiB / 2})
	node := newNode(t, modelWith(disk))
	for range 2 {
		must(t, volumeapi.NewOn(node).ResizeVolume(id, 0))
		wantSize(t, node, 1008*mib)
	}
}

// TestResizeVolume_MBR grows what clusters from before GPT have.
func TestResizeVolume_MBR(t *testing.T) {
	for _, c := range []struct {
		name       string
		size, want winsim.Size
	}{
		{"small", 2 * winsim.GiB, 2047 * winsim.MiB},
		{"beyond what the table can say", 3 * winsim.TiB, 2*winsim.TiB - winsim.MiB},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := newNode(t, modelWith(winsim.Disk{Size: c.size, Layout: winsim.LayoutMBR, Partitions: []winsim.Partition{
				{Offset: winsim.MiB, Size: winsim.GiB, Volume: pointer(formatted())},
			}}))
			for range 2 {
				must(t, volumeapi.NewOn(node).ResizeVolume(id, 0))
				wantSize(t, node, int64(c.want))
			}
		})
	}
}

// TestResizeVolume_FileSystemLags fails between the two steps; every later call repairs it.
func TestResizeVolume_FileSystemLags(t *testing.T) {
	for _, size := range []int64{0, of2GiB, 2048 * mib, 1, of1GiB} {
		node, host := grown(t, nil)
		fault := inject(t, node, winsim.Fault{Call: "ExtendVolume", Error: uint32(winerr.IODevice)})
		wantKind(t, "cannot extend", host.ResizeVolume(id, 0), winerr.Internal, id)
		fault.Remove()
		must(t, host.ResizeVolume(id, size))
		wantSize(t, node, of2GiB)
		wantCalls(t, node, "GrowPartition", 1)
	}
}

func TestResizeVolume_WindowsLags(t *testing.T) {
	t.Run("partition table", func(t *testing.T) {
		node, host := grown(t, func(m *winsim.Model) { m.Storage.CapacityDelay = 5 * time.Second })
		must(t, host.ResizeVolume(id, 0))
		wantSize(t, node, of2GiB)
	})
	t.Run("partition table, but there is room", func(t *testing.T) {
		model := modelWith(gpt(winsim.GiB, formatted()))
		model.Disks[1].Partitions[1].Size = 100 * mib
		model.Storage.CapacityDelay = time.Hour
		node := newNode(t, model)
		must(t, node.GrowDisk(firstDisk, 2*winsim.GiB))
		must(t, volumeapi.NewOn(node).ResizeVolume(id, 500*mib))
		wantSize(t, node, 500*mib)
	})
	t.Run("partition table for too long", func(t *testing.T) {
		for name, change := range map[string]func(*winsim.Model){
			"for an hour": func(m *winsim.Model) { m.Storage.CapacityDelay = time.Hour },
			"for ever":    func(m *winsim.Model) { m.Storage.TableLags = true },
		} {
			node, host := grown(t, change)
			service := inject(t, node, winsim.Fault{Call: "ResizePartition", Error: uint32(winerr.StorageIOError)})
			for n, size := range []int64{0, 1500 * mib} {
				wantKind(t, name, host.ResizeVolume(id, size), winerr.Unavailable, "2147483648")
				wantCalls(t, node, "ResizePartition", n+1)
			}
			wantSize(t, node, of1GiB)
			service.Remove()
			must(t, host.ResizeVolume(id, 1500*mib))
			wantSize(t, node, 1500*mib)
			must(t, host.ResizeVolume(id, 0))
			wantSize(t, node, of2GiB)
			wantCalls(t, node, "ResizePartition", 3) // the table has followed
		}
	})
	t.Run("partition table, and all of the disk", func(t *testing.T) {
		for size, want := range map[int64]int64{0: of2GiB, 2048 * mib: of2GiB, of1GiB + mib: of1GiB + mib} {
			node, host := grown(t, func(m *winsim.Model) { m.Storage.TableLags = true })
			must(t, host.ResizeVolume(id, size))
			wantSize(t, node, want)
			wantCalls(t, node, "ResizePartition", 1)
			must(t, host.MountVolume(id, target))
			if got, err := node.ReadFile(target + `\precious`); err != nil || got != "data" {
				t.Errorf("the volume shows %q, %v", got, err)
			}
		}
	})
	t.Run("partition table, and NTFS has a limit", func(t *testing.T) {
		for _, lags := range []bool{false, true} {
			model := modelWith(gpt(10*winsim.TiB, formatted()))
			model.Storage.TableLags = lags
			node := newNode(t, model)
			must(t, node.GrowDisk(firstDisk, 20*winsim.TiB))
			for range 2 {
				must(t, volumeapi.NewOn(node).ResizeVolume(id, 0))
				wantSize(t, node, int64(16*winsim.TiB-winsim.MiB)) // 2^32-1 clusters of 4 KiB
			}
		}
	})
	t.Run("partition table, and the volume is slow", func(t *testing.T) {
		node, host := grown(t, func(m *winsim.Model) { m.Storage.TableLags, m.Storage.GrowDelay = true, 3*time.Second })
		must(t, host.ResizeVolume(id, 0))
		wantSize(t, node, of2GiB)
	})
	t.Run("partition table, and another partition follows", func(t *testing.T) {
		node, host := grown(t, func(m *winsim.Model) {
			m.Storage.TableLags = true
			m.Disks[1].Partitions[1].Size = of1GiB - 100*mib
			m.Disks[1].Partitions = append(m.Disks[1].Partitions, winsim.Partition{Volume: &winsim.Volume{ID: volumeID(2)}})
		}, of1GiB-100*mib)
		before := fingerprint(t, node)
		wantKind(t, "ResizeVolume", host.ResizeVolume(id, 0), winerr.Unavailable, "2147483648")
		wantKind(t, "ResizeVolume", host.ResizeVolume(id, 1500*mib), winerr.NoSpace, id)
		wantCalls(t, node, "ResizePartition", 0)
		if fingerprint(t, node) != before {
			t.Error("the disk changed")
		}
	})
	t.Run("partition table of a read-only disk", func(t *testing.T) {
		node, host := grown(t, func(m *winsim.Model) { m.Disks[1].ReadOnly = true })
		wantKind(t, "ResizeVolume", host.ResizeVolume(id, 0), winerr.InUse, "read-only")
		wantSize(t, node, of1GiB)
	})
	t.Run("capacity", func(t *testing.T) {
		node, host := grown(t, func(m *winsim.Model) { m.Storage.CapacityFollows = winsim.CapacityRescan })
		must(t, host.ResizeVolume(id, 0))
		wantKind(t, "ResizeVolume", host.ResizeVolume(id, 1500*mib), winerr.NoSpace, "Rescan")
		wantSize(t, node, of1GiB)
		must(t, node.RescanAdapter(t.Context(), ""))
		must(t, host.ResizeVolume(id, 1500*mib))
		wantSize(t, node, 1500*mib)
	})
	t.Run("volume", func(t *testing.T) {
		node, host := grown(t, func(m *winsim.Model) { m.Storage.GrowDelay = 3 * time.Second })
		must(t, host.ResizeVolume(id, 0))
		wantSize(t, node, of2GiB)
	})
	t.Run("volume for too long", func(t *testing.T) {
		node, host := grown(t, func(m *winsim.Model) { m.Storage.GrowDelay = time.Hour })
		wantKind(t, "ResizeVolume", host.ResizeVolume(id, 0), winerr.Unavailable, id)
		must(t, node.Sleep(t.Context(), time.Hour))
		must(t, host.ResizeVolume(id, 0))
		wantSize(t, node, of2GiB)
	})
}

func TestResizeVolume_UpdatesAreAHelp(t *testing.T) {
	node, host := grown(t, func(m *winsim.Model) { m.Storage.CapacityFollows = winsim.CapacityAtOnce })
	for _, call := range []string{"UpdateDisk", "UpdateDriveSize"} {
		inject(t, node, winsim.Fault{Call: call, Error: uint32(winerr.InvalidFunction)})
	}
	must(t, host.ResizeVolume(id, 0))
	wantSize(t, node, of2GiB)
}

// TestResizeVolume_WindowsDoesNotLook: if the size may be old, the call must not succeed
// without growth, because its caller would not repeat it.
func TestResizeVolume_WindowsDoesNotLook(t *testing.T) {
	node, host := grown(t, nil)
	var refusals []*winsim.Injection
	for _, call := range []string{"UpdateDisk", "UpdateDriveSize"} {
		refusals = append(refusals, inject(t, node, winsim.Fault{Call: call, Error: uint32(winerr.IODevice)}))
	}
	for _, size := range []int64{0, of2GiB} {
		if err := host.ResizeVolume(id, size); winerr.CodeOf(err) != winerr.IODevice {
			t.Errorf("to %d: got %v, want error 1117", size, err)
		}
	}
	if err := host.ResizeVolume(id, of1GiB); err != nil {
		t.Errorf("to what it has: %v", err)
	}
	for _, refusal := range refusals {
		refusal.Remove()
	}
	must(t, host.ResizeVolume(id, 0))
	wantSize(t, node, of2GiB)
}

func TestResizeVolume_GrowRefused(t *testing.T) {
	node, host := grown(t, nil)
	fault := inject(t, node, winsim.Fault{Call: "GrowPartition", Times: 1, Error: uint32(winerr.InvalidParameter)})
	must(t, host.ResizeVolume(id, 1500*mib))
	if fault.Hits() != 1 {
		t.Error("the fault did not happen")
	}
	inject(t, node, winsim.Fault{Call: "GrowPartition", Error: uint32(winerr.InvalidParameter)})
	wantKind(t, "always refused", host.ResizeVolume(id, 0), winerr.InUse, "partition 2 of disk 1")
	wantSize(t, node, 1500*mib)
}

// otherLayout is a machine with another partition table.
type otherLayout struct {
	*winsim.Node
	layout win.DriveLayout
}

func (m otherLayout) DriveLayout(context.Context, win.Device) (win.DriveLayout, error) {
	return m.layout, nil
}

// TestResizeVolume_AnotherDisk gives the number of the volume's disk to another one, which
// has a partition of the same number that could grow.
func TestResizeVolume_AnotherDisk(t *testing.T) {
	for _, msr := range []winsim.Size{15 * winsim.MiB, 31 * winsim.MiB} { // the same place, and another
		for _, call := range []string{"SystemVolumes", "NTFSVolumeData", "UpdateDisk", "DiskGeometry", "DriveLayout", "DiskAttributes"} {
			t.Run(fmt.Sprint(call, " ", msr), func(t *testing.T) {
				node, host := grown(t, nil)
				var before string
				inject(t, node, winsim.Fault{Call: call, Times: 1, Do: func(n *winsim.Node) {
					must(t, n.DetachDisk(firstDisk))
					number, err := n.AttachDisk(winsim.Disk{Number: firstDisk, Size: 4 * winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{
						{Type: "msr", Size: msr},
						{Size: winsim.GiB, Volume: &winsim.Volume{ID: volumeID(2)}},
					}})
					must(t, err)
					if number != firstDisk {
						t.Errorf("the disk has number %d", number)
					}
					must(t, n.Sleep(t.Context(), time.Second))
					before = fingerprint(t, n)
				}})
				if err := host.ResizeVolume(id, 0); err == nil {
					t.Error("a volume that is gone has grown")
				}
				if fingerprint(t, node) != before {
					t.Error("the other disk has changed")
				}
				wantCalls(t, node, "GrowPartition", 0)
			})
		}
	}
}

// moves is a machine that has another opinion on where a volume is from the nth time on.
type moves struct {
	*winsim.Node
	extents []win.Extent
	number  win.DeviceNumber
	asked   *int
	nth     int
}

func (m moves) VolumeExtents(ctx context.Context, v win.VolumeID) ([]win.Extent, error) {
	if *m.asked++; *m.asked >= m.nth {
		return m.extents, nil
	}
	return m.Node.VolumeExtents(ctx, v)
}

func (m moves) DeviceNumber(ctx context.Context, d win.Device) (win.DeviceNumber, error) {
	if *m.asked+1 >= m.nth && m.number.Type != 0 && d == win.VolumeID(id).Device() {
		return m.number, nil
	}
	return m.Node.DeviceNumber(ctx, d)
}

func TestResizeVolume_NotWhereItWas(t *testing.T) {
	const begins, length = 16 * mib, of1GiB
	for name, m := range map[string]moves{
		"begins elsewhere":           {nth: 1, extents: []win.Extent{{Disk: firstDisk, Offset: begins + mib, Length: length}}},
		"is on another disk":         {nth: 1, extents: []win.Extent{{Disk: 2, Offset: begins, Length: length}}},
		"has several extents":        {nth: 1, extents: []win.Extent{{Disk: firstDisk, Offset: begins, Length: length}, {Disk: 2}}},
		"has none":                   {nth: 1},
		"begins elsewhere now":       {nth: 2, extents: []win.Extent{{Disk: firstDisk, Offset: begins + mib, Length: length}}},
		"is on another disk now":     {nth: 2, extents: []win.Extent{{Disk: 2, Offset: begins, Length: length}}, number: win.DeviceNumber{Type: win.DeviceTypeDisk, Number: 2, Partition: 2}},
		"is another partition today": {nth: 2, extents: []win.Extent{{Disk: firstDisk, Offset: begins, Length: length}}, number: win.DeviceNumber{Type: win.DeviceTypeDisk, Number: firstDisk, Partition: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			node, _ := grown(t, nil)
			m.Node, m.asked = node, new(int)
			wantKind(t, name, volumeapi.NewOn(m).ResizeVolume(id, 0), winerr.Unavailable, id)
			wantCalls(t, node, "GrowPartition", 0)
		})
	}
}

func TestResizeVolume_PartitionThatCannotGrow(t *testing.T) {
	for text, layout := range map[string]win.DriveLayout{
		"logical drive": {Style: win.StyleMBR, Partitions: []win.Partition{
			{Offset: mib, Length: 1000 * mib, MBRType: 0x0f},
			{Offset: 16 * mib, Length: 10 * mib, MBRType: 7, Number: 2},
			{},
			{},
		}},
		"dynamic disk": {Style: win.StyleGPT, UsableLength: 1 << 30, Partitions: []win.Partition{
			{Offset: 16 * mib, Length: 10 * mib, Type: win.PartitionLDMData, Number: 2},
		}},
		"not in the disk's partition table": {Style: win.StyleGPT, UsableLength: 1 << 30, Partitions: []win.Partition{
			{Offset: mib, Length: 10 * mib, Type: win.PartitionBasicData, Number: 1},
			{Number: 2},
		}},
		"no partition table": {Style: win.StyleRaw},
	} {
		node := nodeWith(t, formatted())
		err := volumeapi.NewOn(otherLayout{node, layout}).ResizeVolume(id, 0)
		wantKind(t, text, err, winerr.Unsupported, text)
		wantCalls(t, node, "GrowPartition", 0)
	}
}

// odd is a machine that answers nonsense.
type odd struct {
	*winsim.Node
	ntfs     win.NTFSVolumeData
	geometry *win.DiskGeometry
	space    win.Space
}

func (m odd) NTFSVolumeData(context.Context, win.VolumeID) (win.NTFSVolumeData, error) {
	return m.ntfs, nil
}

func (m odd) DiskGeometry(ctx context.Context, d win.Device) (win.DiskGeometry, error) {
	if m.geometry != nil {
		return *m.geometry, nil
	}
	return m.Node.DiskGeometry(ctx, d)
}

func (m odd) VolumeSpace(context.Context, win.VolumeID) (win.Space, error) { return m.space, nil }

func TestVolumes_Nonsense(t *testing.T) {
	node := nodeWith(t, formatted())
	sane := win.NTFSVolumeData{Sectors: 1000, BytesPerSector: 512, BytesPerCluster: 4096}
	for name, m := range map[string]odd{
		"no sectors":                       {ntfs: win.NTFSVolumeData{BytesPerCluster: 4096}},
		"clusters smaller than sectors":    {ntfs: win.NTFSVolumeData{BytesPerSector: 4096, BytesPerCluster: 512}},
		"clusters of fractions of sectors": {ntfs: win.NTFSVolumeData{BytesPerSector: 512, BytesPerCluster: 1000}},
		"a disk without sectors":           {ntfs: sane, geometry: &win.DiskGeometry{Size: 1 << 30}},
	} {
		m.Node = node
		if err := volumeapi.NewOn(m).ResizeVolume(id, 0); err == nil {
			t.Errorf("%s: resize succeeded", name)
		}
	}
	for _, space := range []win.Space{{Total: 1, Free: 2}, {Total: 1, Free: -1}, {Total: -1}} {
		_, _, err := volumeapi.NewOn(odd{Node: node, space: space}).GetVolumeStats(id)
		wantKind(t, "stats", err, winerr.Internal, id)
	}
}

func TestResizeVolume_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, host := grown(t, nil)
		inject(t, node, winsim.Fault{Call: "ExtendVolume", Delay: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if err := bind(ctx, host).ResizeVolume(id, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		if waited := time.Since(begin); waited != time.Second {
			t.Errorf("the caller waited %v, want 1s", waited)
		}
		must(t, host.ResizeVolume(id, 0))
		wantCalls(t, node, "GrowPartition", 1)
		wantCalls(t, node, "ExtendVolume", 1)
		wantSize(t, node, of2GiB)
	})
}

// TestResizeVolume_GrowsAgain: the disk grows while an earlier call, which saw the smaller one, is still under way.
func TestResizeVolume_GrowsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, host := grown(t, nil)
		_, err := node.Inject(winsim.Fault{Call: "GrowPartition", Delay: 5 * time.Second, Times: 1})
		must(t, err)
		first := make(chan error, 1)
		go func() { first <- host.ResizeVolume(id, 0) }()
		synctest.Wait()
		must(t, node.GrowDisk(firstDisk, 3*winsim.GiB), host.ResizeVolume(id, 0), <-first)
		wantSize(t, node, 3055*mib)
	})
}
