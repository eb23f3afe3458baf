package api_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// The disks of winsim.Default.
const (
	systemDisk = 0
	blank      = 1 // 10 GiB
	blank1G    = 2
	blank4K    = 3 // 20 GiB with large sectors
	missing    = 99
)

func newNode(t *testing.T, model winsim.Model) *winsim.Node {
	t.Helper()
	node, err := winsim.New(model)
	require.NoError(t, err)
	t.Cleanup(node.Reboot) // ends what hangs
	return node
}

// withStorage is the default node, its storage changed.
func withStorage(change func(s *winsim.Storage)) winsim.Model {
	model := winsim.Default()
	change(&model.Storage)
	return model
}

// withDisk is the default node with one more disk, which is number 7.
func withDisk(disk winsim.Disk) winsim.Model {
	model := winsim.Default()
	disk.Number = added
	if disk.Size == 0 {
		disk.Size = winsim.GiB
	}
	model.Disks = append(model.Disks, disk)
	return model
}

const added = 7

func inject(t *testing.T, node *winsim.Node, fault winsim.Fault) *winsim.Injection {
	t.Helper()
	injection, err := node.Inject(fault)
	require.NoError(t, err)
	t.Cleanup(injection.Remove)
	return injection
}

// device is how faults name a disk.
func device(disk uint32) string { return string(win.PhysicalDrive(disk)) }

func layout(t *testing.T, node *winsim.Node, disk uint32) win.DriveLayout {
	t.Helper()
	layout, err := node.DriveLayout(context.WithoutCancel(t.Context()), win.PhysicalDrive(disk))
	require.NoError(t, err)
	return layout
}

func attributes(t *testing.T, node *winsim.Node, disk uint32) win.DiskAttributes {
	t.Helper()
	attributes, err := node.DiskAttributes(context.WithoutCancel(t.Context()), win.PhysicalDrive(disk))
	require.NoError(t, err)
	return attributes
}

// volumesOn returns the volumes that Windows shows of a disk.
func volumesOn(t *testing.T, node *winsim.Node, disk uint32) (found []win.VolumeID) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	ids, err := node.VolumeIDs(ctx)
	require.NoError(t, err)
	for _, id := range ids {
		extents, err := node.VolumeExtents(ctx, id)
		if err == nil && len(extents) > 0 && extents[0].Disk == disk {
			found = append(found, id)
		}
	}
	return found
}

// unchanged checks that something leaves each byte of a disk as it is.
func unchanged(t *testing.T, node *winsim.Node, disk uint32, do func()) {
	t.Helper()
	before := fingerprint(t, node, disk)
	do()
	if fingerprint(t, node, disk) != before {
		t.Errorf("disk %d was written to", disk)
	}
}

func fingerprint(t *testing.T, node *winsim.Node, disk uint32) string {
	t.Helper()
	fingerprint, err := node.DiskFingerprint(disk)
	require.NoError(t, err)
	return fingerprint
}

func wantKind(t *testing.T, what string, err error, want winerr.Kind) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v of kind %v, want %v", what, err, winerr.KindOf(err), want)
	}
}

// calls returns how many of the calls that change a disk were made.
func changes(node *winsim.Node) (n int) {
	for _, call := range []string{"SetDiskAttributes", "CreateDisk", "SetDriveLayout", "GrowPartition"} {
		n += node.Calls()[call]
	}
	return n
}

// bound is the host of a node, its calls bounded by ctx.
func bound(ctx context.Context, node *winsim.Node) diskapi.DiskAPI {
	return diskapi.NewOn(node).WithContext(ctx).(diskapi.DiskAPI)
}
