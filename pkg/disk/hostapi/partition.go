package api

import (
	"context"
	"slices"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
)

const (
	opPartition       = "partition"
	opCreatePartition = "create a basic partition on"
)

func (h *host) hasPartitions(ctx context.Context, disk uint32) (bool, error) {
	layout, err := h.m.DriveLayout(ctx, win.PhysicalDrive(disk))
	return err == nil && partitioned(layout), winerr.Wrap("look for basic partitions on", name(disk), err)
}

// partition is PartitionDisk. The disk is locked.
//
// The disk is taken online whether it is empty or not: some drivers go on to list its
// volumes without asking for that themselves, and Windows shows no volumes of a disk that
// is offline.
func (h *host) partition(ctx context.Context, disk uint32) error {
	if err := h.refuseSystemDisk(ctx, opPartition, disk); err != nil {
		return err
	}
	if err := h.online(ctx, opPartition, disk); err != nil {
		return err
	}
	layout, initialized, err := h.inspect(ctx, opPartition, disk)
	if err == nil && !initialized {
		layout, err = h.writeTable(ctx, disk)
	}
	if err != nil {
		return err
	}
	return h.ensurePartition(ctx, disk, layout)
}

// createPartition is CreateBasicPartition. The disk is locked.
func (h *host) createPartition(ctx context.Context, disk uint32) error {
	if err := h.refuseSystemDisk(ctx, opCreatePartition, disk); err != nil {
		return err
	}
	layout, err := h.m.DriveLayout(ctx, win.PhysicalDrive(disk))
	if err != nil {
		return winerr.Wrap(opCreatePartition, name(disk), err)
	}
	return h.ensurePartition(ctx, disk, layout)
}

// ensurePartition creates a partition if the disk has none but reserved ones, and waits
// for the volumes of the partitions there are.
func (h *host) ensurePartition(ctx context.Context, disk uint32, layout win.DriveLayout) error {
	switch {
	case partitioned(layout):
		return h.settle(ctx, disk, layout)
	case layout.Style == win.StyleRaw:
		return winerr.New(winerr.InUse, opCreatePartition, name(disk), "it has no partition table; initialize it first")
	case layout.Style != win.StyleGPT:
		return winerr.New(winerr.InUse, opCreatePartition, name(disk),
			"it has an empty %s partition table, which was not written by us; if nothing on it is needed, clean it with diskpart", layout.Style)
	}
	layout, created, err := h.addPartition(ctx, disk)
	switch {
	case err != nil:
		return err
	case created == nil:
		return h.settle(ctx, disk, layout)
	default:
		return h.awaitNewVolume(ctx, disk, *created)
	}
}

// addPartition creates the partition on a disk with a GPT. It returns none if somebody
// else was faster, and the table as it is then.
//
// Windows may add a reserved partition of its own to a new table, some time after it was
// created. Nothing tells when it has; therefore the table is read immediately before it is
// written, what is there is kept, and a table that Windows refuses because it has changed
// in between is made anew.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_disk_set_drive_layout_ex
func (h *host) addPartition(ctx context.Context, disk uint32) (layout win.DriveLayout, created *win.Partition, err error) {
	const attempts = 3
	device := win.PhysicalDrive(disk)
	fail := func(err error) (win.DriveLayout, *win.Partition, error) {
		return layout, nil, winerr.Wrap(opCreatePartition, name(disk), err)
	}
	geometry, err := h.m.DiskGeometry(ctx, device)
	if err != nil {
		return fail(err)
	}
	if err := h.makeWritable(ctx, opCreatePartition, disk); err != nil {
		return fail(err)
	}
	for range attempts {
		if layout, err = h.m.DriveLayout(ctx, device); err != nil {
			return fail(err)
		}
		if partitioned(layout) {
			return layout, nil, nil
		}
		table, wanted, err := addPartition(layout, geometry.Size)
		if err != nil {
			return fail(winerr.As(winerr.NoSpace, opCreatePartition, name(disk), err, ""))
		}
		if err := h.m.SetDriveLayout(ctx, device, table); winerr.CodeOf(err) == winerr.InvalidParameter {
			klog.FromContext(ctx).V(4).Info("Windows refuses a partition table", "disk", disk, "table", describe(table))
			continue
		} else if err != nil {
			return fail(winerr.As(kindOfOurs(err), opCreatePartition, name(disk), err, ""))
		}
		_ = h.m.UpdateDisk(ctx, device) // Windows makes the volume by itself, only later
		if layout, err = h.m.DriveLayout(ctx, device); err != nil {
			return fail(err)
		}
		if i := slices.IndexFunc(layout.Partitions, func(p win.Partition) bool { return p.ID == wanted.ID }); i >= 0 {
			h.warnOfOldVolume(ctx, disk, geometry, wanted)
			return layout, &layout.Partitions[i], nil
		}
	}
	return fail(winerr.New(winerr.Internal, opCreatePartition, name(disk),
		"Windows refused or lost the new partition %d times (%w); the table is %s", attempts, winerr.InvalidParameter, describe(layout)))
}
