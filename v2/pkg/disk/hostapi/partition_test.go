package api_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// published is the way of hosts without PartitionDisk, over the four published methods.
func published(h diskapi.HostAPI, disk uint32) error {
	initialized, err := h.IsDiskInitialized(disk)
	if err == nil && !initialized {
		err = h.InitializeDisk(disk)
	}
	if err != nil {
		return err
	}
	partitioned, err := h.BasicPartitionsExist(disk)
	if err == nil && !partitioned {
		err = h.CreateBasicPartition(disk)
	}
	return err
}

// ways are the two ways to a partition.
var ways = map[string]func(diskapi.DiskAPI, uint32) error{
	"PartitionDisk":     diskapi.DiskAPI.PartitionDisk,
	"published methods": func(h diskapi.DiskAPI, disk uint32) error { return published(h, disk) },
}

// wantPartition checks that a disk has the one partition it should.
func wantPartition(t *testing.T, node *winsim.Node, disk uint32) {
	t.Helper()
	geometry, err := node.DiskGeometry(context.WithoutCancel(t.Context()), win.PhysicalDrive(disk))
	require.NoError(t, err)
	usable := emptyGPT(geometry.Size, int64(geometry.BytesPerSector)).UsableOffset
	want := []win.Partition{msr(usable, 16*mib-usable), data(16*mib, (geometry.Size-17*mib)/mib*mib)}
	got := layout(t, node, disk)
	if diff := cmp.Diff(want, got.Partitions, cmpopts.IgnoreFields(win.Partition{}, "ID", "Number")); got.Style != win.StyleGPT || diff != "" {
		t.Errorf("disk %d is %s (-want +got):\n%s", disk, got.Style, diff)
	}
	if now := attributes(t, node, disk); now != (win.DiskAttributes{}) {
		t.Errorf("disk %d is %+v", disk, now)
	}
	if volumes := volumesOn(t, node, disk); len(volumes) != 1 {
		t.Errorf("disk %d has the volumes %q, want one", disk, volumes)
	}
}

// TestPartition_Blank goes through what Windows may do with a new disk.
func TestPartition_Blank(t *testing.T) {
	for name, change := range map[string]func(s *winsim.Storage){
		"usual":                             func(*winsim.Storage) {},
		"everything at once":                func(s *winsim.Storage) { *s = winsim.Storage{} },
		"reserved partition at once":        func(s *winsim.Storage) { s.CreateDiskMSR = winsim.MSRAtOnce },
		"reserved partition late":           func(s *winsim.Storage) { s.CreateDiskMSR = winsim.MSRLate },
		"offline and read-only":             func(s *winsim.Storage) { s.SANPolicy = winsim.OfflineAll },
		"put offline again":                 func(s *winsim.Storage) { s.SANPolicy, s.OfflineAgain = winsim.OfflineAll, 2 },
		"volume arrives after 20 s":         func(s *winsim.Storage) { s.VolumeArrival = 20 * time.Second },
		"volume has a name of its own":      func(s *winsim.Storage) { s.ForeignVolumeIDs = true },
		"automatic mounting off":            func(s *winsim.Storage) { s.Automount = winsim.AutomountOffline },
		"the same, and a name of its own":   func(s *winsim.Storage) { s.Automount, s.ForeignVolumeIDs = winsim.AutomountNameless, true },
		"file system unreadable at arrival": func(s *winsim.Storage) { s.ArrivalTrouble = time.Second },
	} {
		for way, partition := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				node := newNode(t, withStorage(change))
				h := bound(t.Context(), node)
				for _, disk := range []uint32{blank, blank1G, blank4K} {
					require.NoError(t, partition(h, disk))
					wantPartition(t, node, disk)
					unchanged(t, node, disk, func() {
						if err := partition(h, disk); err != nil {
							t.Errorf("again: %v", err)
						}
					})
				}
				if name == "automatic mounting off" {
					if _, err := node.FileSystem(t.Context(), volumesOn(t, node, blank)[0]); winerr.CodeOf(err) != winerr.UnrecognizedVolume {
						t.Errorf("the volume answers %v, want it online and without a file system", err)
					}
				}
			})
		}
	}
}

// gpt, mbr are disks with partitions.
func gpt(partitions ...winsim.Partition) winsim.Disk {
	return winsim.Disk{Layout: winsim.LayoutGPT, Partitions: partitions}
}

func ntfs() *winsim.Volume {
	return &winsim.Volume{Files: []winsim.File{{Path: `\precious`, Content: "data"}}}
}

// used are disks that have partitions, or what Windows shows as one.
var used = map[string]winsim.Disk{
	"NTFS":                gpt(winsim.Partition{Type: "msr"}, winsim.Partition{Volume: ntfs()}),
	"NTFS, not formatted": gpt(winsim.Partition{Type: "msr"}, winsim.Partition{}),
	"Linux":               gpt(winsim.Partition{Type: "linux"}),
	"EFI only":            gpt(winsim.Partition{Type: "efi", Size: 100 * winsim.MiB}),
	"recovery only":       gpt(winsim.Partition{Type: "recovery", Size: 100 * winsim.MiB}),
	"LDM":                 gpt(winsim.Partition{Type: "ldm-metadata", Size: winsim.MiB}, winsim.Partition{Type: "msr", Size: 16 * winsim.MiB}, winsim.Partition{Type: "ldm-data"}),
	"unknown type":        gpt(winsim.Partition{Type: "12345678-1234-1234-1234-123456789abc"}),
	"hidden":              gpt(winsim.Partition{Attributes: 0x4000000000000000}),
	"MBR":                 {Layout: winsim.LayoutMBR, Partitions: []winsim.Partition{{Volume: ntfs()}}},
	"MBR of Linux":        {Layout: winsim.LayoutMBR, Partitions: []winsim.Partition{{Type: "0x83"}}},
	"superfloppy":         {Layout: winsim.LayoutSuperfloppy, Partitions: []winsim.Partition{{Volume: ntfs()}}},
}

// foreign are those of them of which Windows makes no volume, and what the error says of them.
var foreign = map[string]string{
	"Linux":         "partition 1 has type Linux file system {0fc63daf-8483-4772-8e79-3d69d8477de4}",
	"unknown type":  "partition 1 has type {12345678-1234-1234-1234-123456789abc}",
	"hidden":        "partition 1 has type basic data, hidden {ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}",
	"MBR of Linux":  "partition 1 has type 0x83",
	"LDM":           "it is a dynamic disk without a volume",
	"EFI only":      "partition 1 has type EFI system {c12a7328-f81f-11d2-ba4b-00a0c93ec93b}",
	"recovery only": "partition 1 has type Windows recovery {de94bba4-06d1-4d40-a16a-bfd50179d6ac}",
}

// wantUsable checks the answer to a call that promises a volume, on one of the used disks.
func wantUsable(t *testing.T, what string, err error, disk winsim.Disk) {
	t.Helper()
	for name, text := range foreign {
		if reflect.DeepEqual(used[name].Partitions, disk.Partitions) && used[name].Layout == disk.Layout {
			wantKind(t, what, err, winerr.InUse)
			if err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v does not contain %q", what, err, text)
			}
			return
		}
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// TestPartition_UsedDisk: a disk with partitions is online afterwards and otherwise as it
// was, and its volumes are there. A disk of another system is refused, and not touched.
func TestPartition_UsedDisk(t *testing.T) {
	for name, disk := range used {
		for _, state := range []struct {
			name              string
			offline, readOnly bool
			looksRaw          int
		}{
			{name: "online"},
			{name: "offline and read-only", offline: true, readOnly: true},
			{name: "raw at the first look", looksRaw: 1},
			{name: "offline and raw at the first look", offline: true, looksRaw: 1},
		} {
			disk.Offline, disk.ReadOnly, disk.LooksRaw = state.offline, state.readOnly, state.looksRaw
			t.Run(name+", "+state.name, func(t *testing.T) {
				node := newNode(t, withDisk(disk))
				h := bound(t.Context(), node)
				unchanged(t, node, added, func() {
					for range 2 {
						wantUsable(t, "PartitionDisk", h.PartitionDisk(added), disk)
					}
				})
				want := win.DiskAttributes{}
				if foreign[name] != "" && name != "LDM" && state.looksRaw == 0 {
					want = win.DiskAttributes{Offline: state.offline, ReadOnly: state.readOnly}
				}
				if got := attributes(t, node, added); got != want {
					t.Errorf("the disk is %+v, want %+v", got, want)
				}
				if disk.Partitions[len(disk.Partitions)-1].Volume != nil && len(volumesOn(t, node, added)) != 1 {
					t.Errorf("the volumes are %q, want one", volumesOn(t, node, added))
				}
				if exist, err := h.BasicPartitionsExist(added); err != nil || !exist {
					t.Errorf("BasicPartitionsExist = %v, %v", exist, err)
				}
				if initialized, err := h.IsDiskInitialized(added); err != nil || !initialized {
					t.Errorf("IsDiskInitialized = %v, %v", initialized, err)
				}
			})
		}
	}
}

func TestPartition_SystemDisk(t *testing.T) {
	node := newNode(t, winsim.Default())
	h := bound(t.Context(), node)
	unchanged(t, node, systemDisk, func() {
		for name, call := range map[string]func(uint32) error{
			"PartitionDisk": h.PartitionDisk, "InitializeDisk": h.InitializeDisk, "CreateBasicPartition": h.CreateBasicPartition,
		} {
			wantKind(t, name, call(systemDisk), winerr.Denied)
		}
	})
	if changes(node) != 0 {
		t.Errorf("calls were made: %v", node.Calls())
	}
}

// TestPartition_SystemUnknown: no disk is changed if the disk of Windows is not known.
func TestPartition_SystemUnknown(t *testing.T) {
	for _, call := range []string{"SystemVolumes", "VolumeExtents"} {
		node := newNode(t, withStorage(func(s *winsim.Storage) { s.SANPolicy = winsim.OfflineAll }))
		inject(t, node, winsim.Fault{Call: call, Error: 2})
		h := bound(t.Context(), node)
		for name, do := range map[string]func(uint32) error{
			"PartitionDisk": h.PartitionDisk, "InitializeDisk": h.InitializeDisk, "CreateBasicPartition": h.CreateBasicPartition,
		} {
			wantKind(t, name, do(blank), winerr.Unavailable)
		}
		if changes(node) != 0 {
			t.Errorf("calls were made: %v", node.Calls())
		}
	}
}

func TestPartition_SmallDisk(t *testing.T) {
	for _, c := range []struct {
		size winsim.Size
		kind winerr.Kind
		want []win.Partition
	}{
		{size: 32*winsim.MiB - 4096, kind: winerr.Invalid},
		{size: 32 * winsim.MiB, want: []win.Partition{data(mib, 30*mib)}},
		{size: 127 * winsim.MiB, want: []win.Partition{data(mib, 125*mib)}},
	} {
		node := newNode(t, withDisk(winsim.Disk{Size: c.size}))
		err := bound(t.Context(), node).PartitionDisk(added)
		if c.want == nil {
			wantKind(t, c.size.String(), err, c.kind)
			if changes(node) != 0 {
				t.Errorf("%s: calls were made: %v", c.size, node.Calls())
			}
			continue
		}
		diff := cmp.Diff(c.want, layout(t, node, added).Partitions, cmpopts.IgnoreFields(win.Partition{}, "ID", "Number"))
		if err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.size, err, diff)
		}
	}
}

func TestPartition_NoRoom(t *testing.T) {
	node := newNode(t, withDisk(gpt(winsim.Partition{Type: "msr", Size: 1016 * winsim.MiB})))
	unchanged(t, node, added, func() {
		wantKind(t, "PartitionDisk", bound(t.Context(), node).PartitionDisk(added), winerr.NoSpace)
	})
}

// TestPartition_EmptyTable: a table without partitions may be what is left of our own
// interrupted call, even on another node; an MBR is never ours.
func TestPartition_EmptyTable(t *testing.T) {
	for name, disk := range map[string]winsim.Disk{
		"no partition":         {Layout: winsim.LayoutGPT},
		"a reserved partition": {Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Type: "msr", Name: "Microsoft reserved partition"}}},
		"read-only":            {Layout: winsim.LayoutGPT, Offline: true, ReadOnly: true},
	} {
		node := newNode(t, withDisk(disk))
		if err := bound(t.Context(), node).PartitionDisk(added); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantPartition(t, node, added)
	}
	node := newNode(t, withDisk(winsim.Disk{Layout: winsim.LayoutMBR}))
	unchanged(t, node, added, func() {
		wantKind(t, "an empty MBR", bound(t.Context(), node).PartitionDisk(added), winerr.InUse)
	})
}

func TestCreateBasicPartition_NotInitialized(t *testing.T) {
	node := newNode(t, winsim.Default())
	unchanged(t, node, blank, func() {
		wantKind(t, "CreateBasicPartition", bound(t.Context(), node).CreateBasicPartition(blank), winerr.InUse)
	})
}

// TestCreateBasicPartition_TableChanges: Windows adds a reserved partition between our
// reading and our writing the table, and refuses ours.
func TestCreateBasicPartition_TableChanges(t *testing.T) {
	node := newNode(t, withStorage(func(s *winsim.Storage) { s.CreateDiskMSR = winsim.MSRLate }))
	inject(t, node, winsim.Fault{Call: "SetDriveLayout", Error: 87, Times: 2, Do: func(n *winsim.Node) { _ = n.Sleep(t.Context(), time.Second) }})
	require.NoError(t, bound(t.Context(), node).PartitionDisk(blank))
	wantPartition(t, node, blank)
	if got := node.Calls()["SetDriveLayout"]; got != 3 {
		t.Errorf("the table was written %d times, want 3", got)
	}
}

func TestCreateBasicPartition_AlwaysRefused(t *testing.T) {
	node := newNode(t, winsim.Default())
	fault := inject(t, node, winsim.Fault{Call: "SetDriveLayout", Error: 87})
	err := bound(t.Context(), node).PartitionDisk(blank)
	wantKind(t, "PartitionDisk", err, winerr.Internal) // it is not the caller's fault
	if winerr.CodeOf(err) != winerr.InvalidParameter || fault.Hits() != 3 {
		t.Errorf("%v after %d attempts, want code 87 after 3", err, fault.Hits())
	}
}

// TestCreateBasicPartition_CreatedConcurrently: another program creates it first.
func TestCreateBasicPartition_CreatedConcurrently(t *testing.T) {
	node := newNode(t, withDisk(winsim.Disk{Layout: winsim.LayoutGPT}))
	other := diskapi.NewOn(node)
	inject(t, node, winsim.Fault{Call: "DiskGeometry", Object: device(added), Times: 1, Do: func(*winsim.Node) {
		if err := other.CreateBasicPartition(added); err != nil {
			t.Error(err)
		}
	}})
	require.NoError(t, bound(t.Context(), node).CreateBasicPartition(added))
	wantPartition(t, node, added)
	if got := node.Calls()["SetDriveLayout"]; got != 1 {
		t.Errorf("the table was written %d times, want 1", got)
	}
}

// TestPartition_VolumeNeverArrives: the error says what there is, and the next call finds
// the partition and waits for its volume again.
func TestPartition_VolumeNeverArrives(t *testing.T) {
	node := newNode(t, withStorage(func(s *winsim.Storage) { s.VolumeArrival = time.Minute }))
	h := bound(t.Context(), node)
	start := node.Now()
	err := h.PartitionDisk(blank)
	if took := node.Now().Sub(start); took < 30*time.Second || took > 35*time.Second {
		t.Errorf("it took %s to give up, want 30 s", took)
	}
	wantKind(t, "PartitionDisk", err, winerr.Deadline)
	partitions := layout(t, node, blank).Partitions
	for _, want := range []string{"disk 1", partitions[1].ID.String(), "GPT, partition 1 at 17408 with 16759808 bytes, partition 2 at 16777216 with 10719592448 bytes"} {
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not contain %q", err, want)
		}
	}
	require.NoError(t, h.PartitionDisk(blank), "the retry, after a minute:")
	wantPartition(t, node, blank)
}

// TestPartition_OfflineDuringArrival: the disk is put offline again after we made sure
// that it is online.
func TestPartition_OfflineDuringArrival(t *testing.T) {
	node := newNode(t, winsim.Default())
	inject(t, node, winsim.Fault{Call: "UpdateDisk", Nth: 2, Times: 1, Do: func(n *winsim.Node) {
		if err := n.SetDiskAttributes(t.Context(), win.PhysicalDrive(blank), win.DiskAttributes{Offline: true}, win.DiskAttributes{Offline: true}); err != nil {
			t.Error(err)
		}
	}})
	require.NoError(t, bound(t.Context(), node).PartitionDisk(blank))
	wantPartition(t, node, blank)
}

func TestPartition_OldFileSystem(t *testing.T) {
	boot := []winsim.Bytes{{Offset: 16*winsim.MiB + 3, Text: "NTFS    "}, {Offset: 16*winsim.MiB + 510, Hex: "55aa"}}
	node := newNode(t, withDisk(winsim.Disk{Bytes: boot}))
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	require.NoError(t, bound(klog.NewContext(t.Context(), log), node).PartitionDisk(added))
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, `"fileSystem"="NTFS"`) }) {
		t.Errorf("the log does not speak of the old file system: %q", lines)
	}
}
