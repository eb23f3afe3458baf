package api_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestInitialize_UsedDisk: the published methods, each by itself.
func TestInitialize_UsedDisk(t *testing.T) {
	for name, disk := range used {
		for _, looksRaw := range []int{0, 1} {
			disk.LooksRaw = looksRaw
			node := newNode(t, withDisk(disk))
			h := bound(t.Context(), node)
			unchanged(t, node, added, func() {
				if err := h.InitializeDisk(added); err != nil {
					t.Errorf("InitializeDisk of %s: %v", name, err)
				}
				wantUsable(t, "CreateBasicPartition on "+name, h.CreateBasicPartition(added), disk)
			})
		}
	}
}

// suspect are disks that Windows shows without a partition table, and that are not empty.
var suspect = map[string]struct {
	disk winsim.Disk
	want string
}{
	"a table that is never recognised": {
		winsim.Disk{Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Volume: ntfs()}}, LooksRaw: 1000}, "partition table is damaged",
	},
	"an MBR that is never recognised": {
		winsim.Disk{Layout: winsim.LayoutMBR, Partitions: []winsim.Partition{{Volume: ntfs()}}, LooksRaw: 1000}, "partition table is damaged",
	},
	"a superfloppy that is never recognised": {
		winsim.Disk{Layout: winsim.LayoutSuperfloppy, Partitions: []winsim.Partition{{Volume: ntfs()}}, LooksRaw: 1000}, "partition table is damaged",
	},
	"a boot signature":            {winsim.Disk{Bytes: []winsim.Bytes{{Offset: 510, Hex: "55aa"}}}, "boot signature"},
	"the header of a GPT":         {winsim.Disk{Bytes: []winsim.Bytes{{Offset: 512, Text: "EFI PART"}}}, "header of a GPT"},
	"only the copy of a header":   {winsim.Disk{Bytes: []winsim.Bytes{{Offset: -512, Text: "EFI PART"}}}, "header of a GPT"},
	"a boot signature at the end": {winsim.Disk{Bytes: []winsim.Bytes{{Offset: -2, Hex: "55aa"}}}, "boot signature"},
	"large sectors": {
		winsim.Disk{SectorSize: 4096, Bytes: []winsim.Bytes{{Offset: 4096, Text: "EFI PART"}}}, "header of a GPT",
	},
	"large sectors, written with small ones": {
		winsim.Disk{SectorSize: 4096, Bytes: []winsim.Bytes{{Offset: 512, Text: "EFI PART"}}}, "header of a GPT",
	},
	"ext4":                                   {winsim.Disk{Bytes: []winsim.Bytes{{Offset: 1080, Hex: "53ef"}}}, "ext4"},
	"XFS":                                    {winsim.Disk{Bytes: []winsim.Bytes{{Text: "XFSB"}}}, "XFS"},
	"Btrfs":                                  {winsim.Disk{Bytes: []winsim.Bytes{{Offset: 64*winsim.KiB + 64, Text: "_BHRfS_M"}}}, "Btrfs"},
	"LVM":                                    {winsim.Disk{Bytes: []winsim.Bytes{{Offset: 512, Text: "LABELONE"}}}, "LVM"},
	"LUKS":                                   {winsim.Disk{Bytes: []winsim.Bytes{{Hex: "4c554b53babe"}}}, "LUKS"},
	"swap":                                   {winsim.Disk{Bytes: []winsim.Bytes{{Offset: 4086, Text: "SWAPSPACE2"}}}, "swap"},
	"RAID":                                   {winsim.Disk{Bytes: []winsim.Bytes{{Offset: -8192, Hex: "fc4e2ba9"}}}, "Linux RAID"},
	"ZFS":                                    {winsim.Disk{Bytes: []winsim.Bytes{{Offset: 128 * winsim.KiB, Hex: "0cb1ba0000000000"}}}, "ZFS"},
	"ISO":                                    {winsim.Disk{SectorSize: 4096, Bytes: []winsim.Bytes{{Offset: 32769, Text: "CD001"}}}, "ISO 9660"},
	"the copy of a header for large sectors": {winsim.Disk{Bytes: []winsim.Bytes{{Offset: -4096, Text: "EFI PART"}}}, "header of a GPT"},
	"the copy of an NTFS boot sector":        {winsim.Disk{Bytes: []winsim.Bytes{{Offset: -512, Hex: "eb52904e54465320202020"}}}, "NTFS"},
	"something unknown":                      {winsim.Disk{Bytes: []winsim.Bytes{{Text: "a raw database"}}}, "not blank"},
	"something unknown, further in":          {winsim.Disk{SectorSize: 4096, Bytes: []winsim.Bytes{{Offset: 8191, Hex: "01"}}}, "not blank"},
	"something unknown at the end":           {winsim.Disk{Size: 32 * winsim.MiB, Bytes: []winsim.Bytes{{Offset: -8192, Hex: "01"}}}, "not blank"},
}

func TestPartition_SuspectDisk(t *testing.T) {
	for name, c := range suspect {
		for _, offline := range []bool{false, true} {
			c.disk.Offline, c.disk.ReadOnly = offline, offline
			for way, partition := range ways {
				node := newNode(t, withDisk(c.disk))
				unchanged(t, node, added, func() {
					err := partition(bound(t.Context(), node), added)
					wantKind(t, name+", "+way, err, winerr.InUse)
					if err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "disk 7")) {
						t.Errorf("%s, %s: %v, want it to name disk 7 and %q", name, way, err, c.want)
					}
				})
			}
		}
	}
}

// TestPartition_UnreadableDisk: what cannot be read is not empty.
func TestPartition_UnreadableDisk(t *testing.T) {
	for _, fault := range []winsim.Fault{
		{Call: "DriveLayout", Error: 1117},
		{Call: "DriveLayout", Error: 1117, Nth: 2},
		{Call: "DriveLayout", Error: 21},
		{Call: "ReadDevice", Error: 23},
		{Call: "ReadDevice", Error: 1117, Nth: 2},
		{Call: "DiskGeometry", Error: 1117},
	} {
		node := newNode(t, winsim.Default())
		fault.Object = device(blank)
		inject(t, node, fault)
		unchanged(t, node, blank, func() {
			if err := bound(t.Context(), node).PartitionDisk(blank); winerr.CodeOf(err) != winerr.Code(fault.Error) {
				t.Errorf("%+v: %v", fault, err)
			}
		})
	}
}

// blankMBR is a driver that calls a disk without a table MBR.
type blankMBR struct{ *winsim.Node }

func (m blankMBR) DriveLayout(ctx context.Context, d win.Device) (win.DriveLayout, error) {
	layout, err := m.Node.DriveLayout(ctx, d)
	if layout.Style == win.StyleRaw {
		layout = win.DriveLayout{Style: win.StyleMBR, Partitions: make([]win.Partition, 4)}
	}
	return layout, err
}

func TestPartition_BlankDiskShownAsMBR(t *testing.T) {
	node := newNode(t, winsim.Default())
	h := diskapi.NewOn(blankMBR{node})
	if initialized, err := h.IsDiskInitialized(blank); err != nil || initialized {
		t.Errorf("IsDiskInitialized = %v, %v, want false", initialized, err)
	}
	require.NoError(t, h.PartitionDisk(blank))
	wantPartition(t, node, blank)

	node = newNode(t, withDisk(winsim.Disk{Bytes: []winsim.Bytes{{Offset: 510, Hex: "55aa"}}}))
	h = diskapi.NewOn(blankMBR{node})
	if initialized, err := h.IsDiskInitialized(added); err != nil || !initialized {
		t.Errorf("with a boot signature: IsDiskInitialized = %v, %v, want true", initialized, err)
	}
	unchanged(t, node, added, func() { wantKind(t, "with a boot signature", h.PartitionDisk(added), winerr.InUse) })
}

// slowReader goes on to show a new table as RAW for some more looks.
type slowReader struct {
	*winsim.Node
	looks *int
}

func (m slowReader) CreateDisk(ctx context.Context, d win.Device, id win.GUID) error {
	*m.looks = -*m.looks // from now on they count
	return m.Node.CreateDisk(ctx, d, id)
}

func (m slowReader) DriveLayout(ctx context.Context, d win.Device) (win.DriveLayout, error) {
	if *m.looks > 0 {
		*m.looks--
		return win.DriveLayout{Style: win.StyleRaw}, nil
	}
	return m.Node.DriveLayout(ctx, d)
}

func TestInitializeDisk_TableShowsLate(t *testing.T) {
	for _, c := range []struct {
		looks int
		kind  winerr.Kind
		ok    bool
	}{{1, 0, true}, {100, 0, true}, {1000, winerr.Deadline, false}} {
		node := newNode(t, winsim.Default())
		looks := -c.looks
		err := diskapi.NewOn(slowReader{node, &looks}).InitializeDisk(blank)
		if c.ok {
			if err != nil {
				t.Errorf("after %d looks: %v", c.looks, err)
			}
		} else {
			wantKind(t, "never", err, c.kind)
		}
		if got := node.Calls()["CreateDisk"]; got != 1 {
			t.Errorf("the table was written %d times, want once", got)
		}
	}
}

func TestIsDiskInitialized_UnreadableMBR(t *testing.T) {
	for _, call := range []string{"DriveLayout", "DiskGeometry", "ReadDevice"} {
		node := newNode(t, winsim.Default())
		inject(t, node, winsim.Fault{Call: call, Error: 1117})
		if initialized, err := diskapi.NewOn(blankMBR{node}).IsDiskInitialized(blank); winerr.CodeOf(err) != winerr.IODevice {
			t.Errorf("%s fails: %v, %v, want code 1117", call, initialized, err)
		}
	}
}
