package hosttest

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
)

// DiskNode is a node under test. Leave fields empty that the node does not have; the suite
// skips the cases that need them.
type DiskNode struct {
	// API is the implementation under test. Its errors must match those of io/fs.
	API disk.Interface

	// Empty is a blank disk of EmptySize bytes, at least 128 MiB, in the state of a new disk.
	// The suite may change it.
	Empty     uint32
	EmptySize int64
	// Others are more such disks.
	Others []uint32
	// Used are disks with partitions or data, by a description, that PartitionDisk must accept
	// and not change.
	Used map[string]uint32
	// Suspect are disks without visible partitions that are not empty, by the reason.
	// PartitionDisk must refuse them.
	Suspect map[string]uint32
	// System is the boot disk of Windows.
	System *uint32
	// Missing is a number that no disk has.
	Missing uint32

	// Content returns a fingerprint of the disk's content.
	Content func(number uint32) (string, error)
	// Volumes lists the IDs of the volumes on a disk without the API.
	Volumes func(number uint32) ([]string, error)
	// Grow enlarges the disk, as its backend does, and returns the number that it has then.
	Grow func(number uint32, size int64) (uint32, error)
	// IDs and Locations are expected entries of the lists.
	IDs       map[uint32]disk.DiskIDs
	Locations map[uint32]disk.DiskLocation
	// Unlocated are disks without a location, because they are files on another disk. They must
	// be listed with their IDs only.
	Unlocated []uint32

	// Lacks names methods that this version of the API does not have.
	Lacks []string
}

// Disk runs the cases of the disk group. newNode is called once per case.
func Disk(t *testing.T, newNode func(t *testing.T) DiskNode) {
	t.Helper()
	runCases(t, diskCases, func(t *testing.T) (*diskNode, []string) {
		t.Helper()
		n := &diskNode{DiskNode: newNode(t), runner: runner{t}}
		return n, n.Lacks
	})
}

// diskNode adds short names for the calls.
type diskNode struct {
	DiskNode
	runner
}

func (n *diskNode) partition(number uint32) error {
	return errOf(n.API.PartitionDisk(n.ctx(), &disk.PartitionDiskRequest{DiskNumber: number}))
}

func (n *diskNode) setState(number uint32, online bool) error {
	return errOf(n.API.SetDiskState(n.ctx(), &disk.SetDiskStateRequest{DiskNumber: number, IsOnline: online}))
}

func (n *diskNode) rescan() error {
	return errOf(n.API.Rescan(n.ctx(), &disk.RescanRequest{}))
}

func (n *diskNode) mustPartition(number uint32) {
	n.t.Helper()
	twice(n.t, "PartitionDisk", func() error { return n.partition(number) })
}

func (n *diskNode) wantOnline(number uint32, want bool) {
	n.t.Helper()
	if slices.Contains(n.Lacks, "GetDiskState") {
		return
	}
	response, err := n.API.GetDiskState(n.ctx(), &disk.GetDiskStateRequest{DiskNumber: number})
	if err != nil || response.IsOnline != want {
		n.t.Errorf("GetDiskState(%d) = %v, %v, want %v", number, response, err, want)
	}
}

func (n *diskNode) wantSize(number uint32, want int64) {
	n.t.Helper()
	response, err := n.API.GetDiskStats(n.ctx(), &disk.GetDiskStatsRequest{DiskNumber: number})
	if err != nil || response.TotalBytes != want {
		n.t.Errorf("GetDiskStats(%d) = %v, %v, want %d", number, response, err, want)
	}
}

// volumes returns the sorted volumes of a disk, or none if the node cannot list them.
func (n *diskNode) volumes(number uint32) []string {
	n.t.Helper()
	ids, err := n.Volumes(number)
	if err != nil {
		n.t.Fatalf("list the volumes of disk %d: %v", number, err)
	}
	return slices.Sorted(slices.Values(ids))
}

func (n *diskNode) wantVolumes(number uint32, want int) {
	n.t.Helper()
	if n.Volumes == nil {
		return
	}
	if got := n.volumes(number); len(got) != want {
		n.t.Errorf("disk %d has the volumes %q, want %d", number, got, want)
	}
}

// unchanged checks that do does not change the content of a disk.
func (n *diskNode) unchanged(number uint32, do func()) {
	n.t.Helper()
	content := func() string {
		if n.Content == nil {
			return ""
		}
		content, err := n.Content(number)
		if err != nil {
			n.t.Fatalf("content of disk %d: %v", number, err)
		}
		return content
	}
	before := content()
	do()
	if content() != before {
		n.t.Errorf("disk %d was written to", number)
	}
}

var diskCases = []testCase[*diskNode]{
	{name: "ListDiskIDs identifies disks", uses: []string{"ListDiskIDs"}, run: func(n *diskNode) {
		response, err := n.API.ListDiskIDs(n.ctx(), &disk.ListDiskIDsRequest{})
		n.must(err)
		if response.DiskIDs[n.Empty] == nil || response.DiskIDs[n.Missing] != nil {
			n.t.Errorf("the disks are %d, want %d among them and %d not",
				slices.Sorted(maps.Keys(response.DiskIDs)), n.Empty, n.Missing)
		}
		for number, want := range n.IDs {
			if got := response.DiskIDs[number]; got == nil || *got != want {
				n.t.Errorf("disk %d is %+v, want %+v", number, got, want)
			}
		}
		for _, number := range n.Unlocated {
			if response.DiskIDs[number] == nil {
				n.t.Errorf("disk %d is not listed", number)
			}
		}
	}},
	{name: "ListDiskLocations locates disks", run: func(n *diskNode) {
		response, err := n.API.ListDiskLocations(n.ctx(), &disk.ListDiskLocationsRequest{})
		n.must(err)
		for number, want := range n.Locations {
			if got := response.DiskLocations[number]; got == nil || *got != want {
				n.t.Errorf("disk %d is at %+v, want %+v", number, got, want)
			}
		}
		for _, number := range n.Unlocated {
			if got := response.DiskLocations[number]; got != nil {
				n.t.Errorf("disk %d is at %+v, want no location", number, got)
			}
		}
	}},
	{name: "PartitionDisk makes an empty disk ready", run: func(n *diskNode) {
		n.mustPartition(n.Empty)
		n.wantOnline(n.Empty, true)
		n.wantVolumes(n.Empty, 1)
		n.unchanged(n.Empty, func() { n.mustPartition(n.Empty) })
	}},
	{name: "concurrent PartitionDisk of one disk all succeed", run: func(n *diskNode) {
		n.atOnce("PartitionDisk", func() error { return n.partition(n.Empty) })
		n.wantVolumes(n.Empty, 1)
	}},
	{name: "concurrent PartitionDisk of several disks all succeed", run: func(n *diskNode) {
		var calls []func() error
		for _, number := range append(n.Others, n.Empty) {
			calls = append(calls, func() error { return n.partition(number) })
		}
		n.together("PartitionDisk", calls...)
		for _, number := range append(n.Others, n.Empty) {
			n.wantVolumes(number, 1)
		}
	}},
	{name: "PartitionDisk takes a partitioned disk online", uses: []string{"SetDiskState"}, run: func(n *diskNode) {
		n.need("way to list volumes", n.Volumes != nil)
		n.mustPartition(n.Empty)
		before := n.volumes(n.Empty)
		twice(n.t, "SetDiskState", func() error { return n.setState(n.Empty, false) })
		n.unchanged(n.Empty, func() { n.mustPartition(n.Empty) })
		n.wantOnline(n.Empty, true)
		if got := n.volumes(n.Empty); !slices.Equal(got, before) {
			n.t.Errorf("the volumes are %q, want %q", got, before)
		}
	}},
	{name: "PartitionDisk leaves disks with partitions alone", run: func(n *diskNode) {
		n.need("disks with partitions", len(n.Used) > 0)
		for name, number := range n.Used {
			n.t.Logf("%s: disk %d", name, number)
			n.unchanged(number, func() { n.mustPartition(number) })
		}
	}},
	{name: "PartitionDisk refuses disks that are not empty", run: func(n *diskNode) {
		n.need("suspect disks", len(n.Suspect) > 0)
		for name, number := range n.Suspect {
			n.unchanged(number, func() {
				for range 2 {
					wantError(n.t, "PartitionDisk of "+name, n.partition(number), ErrConflict)
				}
			})
		}
	}},
	{name: "PartitionDisk refuses the disk of Windows", run: func(n *diskNode) {
		n.need("system disk", n.System != nil)
		n.unchanged(*n.System, func() {
			for range 2 {
				wantError(n.t, "PartitionDisk", n.partition(*n.System), fs.ErrPermission)
			}
		})
	}},
	{name: "SetDiskState switches a disk off and on", uses: []string{"SetDiskState"}, run: func(n *diskNode) {
		n.mustPartition(n.Empty)
		n.unchanged(n.Empty, func() {
			twice(n.t, "SetDiskState", func() error { return n.setState(n.Empty, false) })
			n.wantOnline(n.Empty, false)
			n.wantVolumes(n.Empty, 0)
			twice(n.t, "SetDiskState", func() error { return n.setState(n.Empty, true) })
			n.wantOnline(n.Empty, true)
		})
	}},
	{name: "SetDiskState refuses to switch the disk of Windows off", uses: []string{"SetDiskState"}, run: func(n *diskNode) {
		n.need("system disk", n.System != nil)
		for range 2 {
			wantError(n.t, "SetDiskState", n.setState(*n.System, false), fs.ErrPermission)
		}
		n.wantOnline(*n.System, true)
		twice(n.t, "SetDiskState to online", func() error { return n.setState(*n.System, true) })
	}},
	{name: "GetDiskStats returns the size of a disk, offline or not", uses: []string{"GetDiskStats"}, run: func(n *diskNode) {
		n.wantSize(n.Empty, n.EmptySize)
		if !slices.Contains(n.Lacks, "SetDiskState") {
			for _, online := range []bool{true, false} {
				twice(n.t, "SetDiskState", func() error { return n.setState(n.Empty, online) })
				n.wantSize(n.Empty, n.EmptySize)
			}
		}
	}},
	{name: "Rescan makes a larger disk show", uses: []string{"GetDiskStats"}, run: func(n *diskNode) {
		n.need("way to make a disk larger", n.Grow != nil)
		grown, err := n.Grow(n.Empty, 2*n.EmptySize)
		n.must(err)
		twice(n.t, "Rescan", n.rescan)
		n.wantSize(grown, 2*n.EmptySize)
	}},
	{name: "concurrent Rescans all succeed", run: func(n *diskNode) {
		n.atOnce("Rescan", n.rescan)
	}},
	{name: "a disk that is not there is not found", run: func(n *diskNode) {
		for name, err := range n.numbered(n.ctx(), n.Missing) {
			wantError(n.t, name, err, fs.ErrNotExist)
		}
	}},
	{name: "a caller who has left changes nothing", run: func(n *diskNode) {
		ctx, cancel := context.WithCancel(n.ctx())
		cancel()
		n.unchanged(n.Empty, func() {
			for name, err := range n.numbered(ctx, n.Empty) {
				if err == nil || errors.Is(err, fs.ErrNotExist) {
					n.t.Errorf("%s without a caller: %v", name, err)
				}
			}
		})
	}},
}

func (n *diskNode) numbered(ctx context.Context, number uint32) map[string]error {
	results := map[string]error{}
	for name, call := range map[string]func() error{
		"PartitionDisk": func() error { return errOf(n.API.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: number})) },
		"GetDiskStats":  func() error { return errOf(n.API.GetDiskStats(ctx, &disk.GetDiskStatsRequest{DiskNumber: number})) },
		"GetDiskState":  func() error { return errOf(n.API.GetDiskState(ctx, &disk.GetDiskStateRequest{DiskNumber: number})) },
		"SetDiskState":  func() error { return errOf(n.API.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: number})) },
	} {
		if !slices.Contains(n.Lacks, name) {
			results[name] = call()
		}
	}
	return results
}
