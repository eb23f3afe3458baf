package api_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// lookCalls are the calls of a change to a disk, before each of which something may happen.
var lookCalls = []string{
	"CreateDisk", "DeviceDescriptor", "DeviceIdentifiers", "DeviceNumber", "DiskAttributes", "DiskDevices", "DiskGeometry",
	"DriveLayout", "ReadDevice", "SetDiskAttributes", "SetDriveLayout", "SystemVolumes", "UpdateDisk",
}

// atEachCall runs PartitionDisk on a disk again and again, and lets something happen before
// each of its calls in turn.
func atEachCall(t *testing.T, model func() winsim.Model, disk uint32, happen func(*winsim.Node), check func(t *testing.T, node *winsim.Node, when string, err error)) {
	t.Helper()
	for _, call := range lookCalls {
		for nth := 1; ; nth++ {
			node := newNode(t, model())
			var calls atomic.Int32
			err := diskapi.NewOn(win.Intercept(node, func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
				if c.Method == call && int(calls.Add(1)) == nth {
					happen(node) // not below the bounds, where the host may go on meanwhile
				}
				return next(ctx)
			})).PartitionDisk(disk)
			if int(calls.Load()) < nth {
				break
			}
			check(t, node, call, err)
		}
	}
}

// TestPartition_DiskIsReplaced: the disk leaves in the middle of the change, and one with
// data gets its number.
func TestPartition_DiskIsReplaced(t *testing.T) {
	other := used["NTFS"]
	other.Number, other.Size = added, 10*winsim.GiB
	for name, disk := range map[string]winsim.Disk{
		"blank":                 {Size: 10 * winsim.GiB},
		"offline and read-only": {Size: 10 * winsim.GiB, Offline: true, ReadOnly: true},
		"an empty table":        {Size: 10 * winsim.GiB, Layout: winsim.LayoutGPT},
	} {
		for _, readOnly := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				before := ""
				other := other
				other.ReadOnly = readOnly
				atEachCall(t, func() winsim.Model { return withDisk(disk) }, added, func(node *winsim.Node) {
					require.NoError(t, node.DetachDisk(added))
					if _, err := node.AttachDisk(other); err != nil {
						t.Fatal(err)
					}
					_ = node.Sleep(t.Context(), time.Second)
					before = fingerprint(t, node, added)
				}, func(t *testing.T, node *winsim.Node, when string, err error) {
					t.Helper()
					if fingerprint(t, node, added) != before {
						t.Errorf("replaced before %s: the data is lost (%v)", when, err)
					}
					if readOnly && !attributes(t, node, added).ReadOnly {
						t.Errorf("replaced before %s: an online disk with data was made writable (%v)", when, err)
					}
				})
			})
		}
	}
}

// sameSlot is a machine whose disk has the same interface before and after it is replaced,
// as on buses that name it after its slot.
type sameSlot struct {
	*winsim.Node
	serial *string
}

func (m sameSlot) DeviceDescriptor(ctx context.Context, d win.Device) (win.DeviceDescriptor, error) {
	descriptor, err := m.Node.DeviceDescriptor(ctx, d)
	descriptor.Serial = *m.serial
	return descriptor, err
}

func (m sameSlot) Sleep(ctx context.Context, d time.Duration) error {
	*m.serial = "another"
	return m.Node.Sleep(ctx, d)
}

func TestPartition_AnotherDiskInItsPlace(t *testing.T) {
	for _, disk := range []winsim.Disk{{}, {Layout: winsim.LayoutGPT}} {
		node, serial := newNode(t, withDisk(disk)), "one"
		unchanged(t, node, added, func() {
			err := diskapi.NewOn(sameSlot{node, &serial}).PartitionDisk(added)
			wantKind(t, "PartitionDisk", err, winerr.Busy)
			if err != nil && !strings.Contains(err.Error(), `"another"`) {
				t.Errorf("%v does not say what is there now", err)
			}
		})
	}
}

// TestPartition_DiskIsFilled: another program writes a table with a partition, before any
// call but the two that write.
func TestPartition_DiskIsFilled(t *testing.T) {
	for name, disk := range map[string]winsim.Disk{
		"blank":          {},
		"read-only":      {Offline: true, ReadOnly: true},
		"an empty table": {Layout: winsim.LayoutGPT},
	} {
		t.Run(name, func(t *testing.T) {
			id, device, before := win.NewGUID(), win.PhysicalDrive(added), ""
			atEachCall(t, func() winsim.Model { return withDisk(disk) }, added, func(node *winsim.Node) {
				ctx := t.Context()
				was := attributes(t, node, added)
				all := win.DiskAttributes{Offline: true, ReadOnly: true}
				_ = node.SetDiskAttributes(ctx, device, win.DiskAttributes{}, all)
				require.NoError(t, node.CreateDisk(ctx, device, id))
				table, _, err := diskapi.WithDataPartition(layout(t, node, added), int64(winsim.GiB))
				require.NoError(t, err)
				require.NoError(t, node.SetDriveLayout(ctx, device, table))
				_ = node.SetDiskAttributes(ctx, device, was, all)
				before = fingerprint(t, node, added)
			}, func(t *testing.T, node *winsim.Node, when string, err error) {
				t.Helper()
				if when != "CreateDisk" && when != "SetDriveLayout" && fingerprint(t, node, added) != before {
					t.Errorf("filled before %s: the data is lost (%v)", when, err)
				}
			})
		})
	}
}

// forgetful shows the table of a disk without its partitions, for some looks.
type forgetful struct {
	*winsim.Node
	looks *int
}

func (m forgetful) DriveLayout(ctx context.Context, d win.Device) (win.DriveLayout, error) {
	layout, err := m.Node.DriveLayout(ctx, d)
	if number, _ := m.DeviceNumber(ctx, d); number.Number == added && *m.looks > 0 {
		*m.looks--
		layout.Partitions = nil
	}
	return layout, err
}

// TestPartition_TableSeemsEmpty: what Windows shows of a table is not all there is.
func TestPartition_TableSeemsEmpty(t *testing.T) {
	for _, sector := range []uint32{512, 4096} {
		for _, readOnly := range []bool{false, true} {
			for looks := 1; looks <= 12; looks++ {
				disk := gpt(winsim.Partition{Type: "msr", Size: 128 * winsim.MiB}, winsim.Partition{Volume: ntfs()})
				disk.SectorSize, disk.ReadOnly = sector, readOnly
				node, left := newNode(t, withDisk(disk)), looks
				h := diskapi.NewOn(forgetful{node, &left})
				unchanged(t, node, added, func() {
					if err := h.PartitionDisk(added); (err == nil) != (looks < 3) {
						t.Errorf("empty %d times: %v", looks, err)
					} else if err != nil {
						wantKind(t, "PartitionDisk", err, winerr.InUse)
					}
				})
				if attributes(t, node, added).ReadOnly != readOnly {
					t.Errorf("empty %d times: a disk with data was made writable", looks)
				}
			}
		}
	}
}

// TestPartition_DamagedTable: a table of which Windows has only the copy is not ours.
func TestPartition_DamagedTable(t *testing.T) {
	for name, bytes := range map[string]winsim.Bytes{
		"no header":       {Offset: 512, Text: "damaged!"},
		"no entries":      {Offset: 512 + 80, Hex: "00000000"},
		"too many":        {Offset: 512 + 80, Hex: "ffffffff"},
		"too small":       {Offset: 512 + 84, Hex: "01000000"},
		"far away":        {Offset: 512 + 72, Hex: "ffffffffffffff7f"},
		"a lonely entry":  {Offset: 1024 + 5*128, Hex: "0102"},
		"the last of all": {Offset: 1024 + 127*128 + 100, Hex: "01"},
	} {
		node := newNode(t, withDisk(winsim.Disk{Layout: winsim.LayoutGPT, Bytes: []winsim.Bytes{bytes}}))
		unchanged(t, node, added, func() {
			wantKind(t, name, diskapi.NewOn(node).PartitionDisk(added), winerr.InUse)
		})
	}
}

// TestPartition_SuspectStaysReadOnly: a disk that is not empty is not made writable.
func TestPartition_SuspectStaysReadOnly(t *testing.T) {
	for name, c := range suspect {
		c.disk.ReadOnly = true
		node := newNode(t, withDisk(c.disk))
		wantKind(t, name, diskapi.NewOn(node).PartitionDisk(added), winerr.InUse)
		if changes(node) != 0 {
			t.Errorf("%s: calls were made: %v", name, node.Calls())
		}
	}
}
