package windows_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

func device(d scratchDisk) win.Device { return win.PhysicalDrive(d.Number()) }

// settle is how Windows is waited for: volumes and disks come and go in the background.
var settle = win.Backoff{First: 20 * time.Millisecond, Longest: 200 * time.Millisecond, Limit: 30 * time.Second}

// await calls try until it succeeds, and returns its error after 30 seconds. took is how long that
// was on the machine's clock.
func (n *node) await(ctx context.Context, try func() error) (took time.Duration, err error) {
	began := n.machine.Now()
	err = await(ctx, n.machine, try)
	return n.machine.Now().Sub(began), err
}

func await(ctx context.Context, clock win.Clock, try func() error) (err error) {
	_, pollErr := win.Poll(ctx, clock, settle, func(time.Duration) (bool, error) {
		err = try()
		return err == nil, nil
	})
	if pollErr != nil {
		return pollErr
	}
	return err
}

func (n *node) volumesOn(ctx context.Context, number uint32) ([]win.VolumeID, error) {
	return volumesOn(ctx, n.machine, number)
}

// volumesOn lists the volumes of a disk, past the library.
func volumesOn(ctx context.Context, m win.Machine, number uint32) ([]win.VolumeID, error) {
	ids, err := m.VolumeIDs(ctx)
	var on []win.VolumeID
	for _, id := range ids {
		extents, err := m.VolumeExtents(ctx, id)
		if err == nil && slices.ContainsFunc(extents, func(e win.Extent) bool { return e.Disk == number }) {
			on = append(on, id)
		}
	}
	slices.Sort(on)
	return on, err
}

// settledVolumesOn lists the volumes of a disk when no more of them come and go.
func (n *node) settledVolumesOn(ctx context.Context, number uint32) (settled []win.VolumeID, err error) {
	const rest = 500 * time.Millisecond
	_, err = n.await(ctx, func() error {
		before, err := n.volumesOn(ctx, number)
		if err != nil {
			return err
		}
		if err := n.machine.Sleep(ctx, rest); err != nil {
			return err
		}
		if settled, err = n.volumesOn(ctx, number); err == nil && !slices.Equal(before, settled) {
			err = fmt.Errorf("the volumes of disk %d keep changing: %q, %q", number, before, settled)
		}
		return err
	})
	return settled, err
}

// awaitVolume waits for the one volume of a disk.
func (n *node) awaitVolume(ctx context.Context, number uint32) (id win.VolumeID, took time.Duration, err error) {
	took, err = n.await(ctx, func() error {
		ids, err := n.volumesOn(ctx, number)
		if err == nil && len(ids) != 1 {
			err = fmt.Errorf("disk %d has the volumes %q, want one", number, ids)
		}
		if err == nil {
			id = ids[0]
		}
		return err
	})
	return id, took, err
}

// newVolume makes a volume of an empty disk, by the library.
func (n *node) newVolume(t *testing.T, d scratchDisk) win.VolumeID {
	t.Helper()
	if _, err := n.disks.PartitionDisk(t.Context(), &disk.PartitionDiskRequest{DiskNumber: d.Number()}); err != nil {
		t.Fatal(err)
	}
	id, _, err := n.awaitVolume(t.Context(), d.Number())
	must(t, err)
	return id
}

// newFormatted makes a volume with a file system of an empty disk, by the library.
func (n *node) newFormatted(t *testing.T, d scratchDisk) win.VolumeID {
	t.Helper()
	id := n.newVolume(t, d)
	if _, err := n.volumes.FormatVolume(t.Context(), &volume.FormatVolumeRequest{VolumeID: string(id)}); err != nil {
		t.Fatal(err)
	}
	return id
}

// dataPartition returns the one partition of a disk that holds data.
func (n *node) dataPartition(ctx context.Context, number uint32) (win.Partition, error) {
	layout, err := n.machine.DriveLayout(ctx, win.PhysicalDrive(number))
	if err != nil {
		return win.Partition{}, err
	}
	if found := layout.Mountable(); len(found) == 1 {
		return found[0], nil
	}
	return win.Partition{}, fmt.Errorf("disk %d has the partitions %+v, want one with data", number, layout.Partitions)
}
