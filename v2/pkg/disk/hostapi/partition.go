package api

import (
	"context"
	"slices"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	opPartition       = "partition"
	opCreatePartition = "create a basic partition on"
)

// BasicPartitionsExist implements HostAPI.
func (d DiskAPI) BasicPartitionsExist(disk uint32) (bool, error) {
	ctx, h := d.bound()
	layout, err := h.m.DriveLayout(ctx, win.PhysicalDrive(disk))
	return err == nil && partitioned(layout), winerr.Wrap("look for basic partitions on", diskName(disk), err)
}

// partition is PartitionDisk, in the queue of the disk.
//
// It brings the disk online even if it has partitions: some drivers list its volumes next, without
// bringing it online themselves, and Windows shows no volumes of an offline disk.
func (h *host) partition(ctx context.Context, disk target) error {
	if err := h.refuseSystemDisk(ctx, opPartition, disk.number); err != nil {
		return err
	}
	now, err := h.m.DiskAttributes(ctx, disk.device)
	if err != nil {
		return winerr.Wrap(opPartition, disk.name(), err)
	}
	if now.Offline {
		if err := h.bringOnline(ctx, disk, now); err != nil {
			return err
		}
	}
	layout, initialized, err := h.inspect(ctx, opPartition, disk)
	if err != nil {
		return err
	}
	if initialized {
		return h.ensurePartition(ctx, disk, layout)
	}
	t, err := h.pinned(ctx, opPartition, disk)
	if err != nil {
		return err
	}
	layout, created, err := h.writeTable(ctx, t)
	switch {
	case err != nil:
		return err
	case created:
		return h.fillTable(ctx, t, layout.DiskID)
	default:
		return h.ensurePartition(ctx, disk, layout)
	}
}

// createPartition is CreateBasicPartition, in the queue of the disk.
func (h *host) createPartition(ctx context.Context, disk target) error {
	if err := h.refuseSystemDisk(ctx, opCreatePartition, disk.number); err != nil {
		return err
	}
	layout, err := h.m.DriveLayout(ctx, disk.device)
	if err != nil {
		return winerr.Wrap(opCreatePartition, disk.name(), err)
	}
	return h.ensurePartition(ctx, disk, layout)
}

// ensurePartition creates a partition in an older table that has only reserved ones. Otherwise it
// waits for the volumes of the disk.
//
// An empty table may be left from an interrupted call of ours. It may also be one that Windows
// could not read. So it must be empty twice, like a disk without a table.
func (h *host) ensurePartition(ctx context.Context, disk target, layout win.DriveLayout) error {
	if done, err := h.refuseTable(ctx, disk, layout); done || err != nil {
		return err
	}
	t, err := h.pinned(ctx, opCreatePartition, disk)
	if err != nil {
		return err
	}
	if layout, err = h.m.DriveLayout(ctx, t.device); err != nil {
		return winerr.Wrap(opCreatePartition, disk.name(), err)
	}
	if done, err := h.refuseTable(ctx, t, layout); done || err != nil {
		return err
	}
	if err := h.m.Sleep(ctx, secondLook); err != nil {
		return winerr.Wrap(opCreatePartition, disk.name(), err)
	}
	return h.fillTable(ctx, t, layout.DiskID)
}

// refuseTable fails if no partition can be created in a table. It is done, and has waited for the
// volumes, if there are partitions.
func (h *host) refuseTable(ctx context.Context, disk target, layout win.DriveLayout) (done bool, err error) {
	switch {
	case partitioned(layout):
		return true, h.awaitUsable(ctx, disk, layout)
	case layout.Style == win.StyleRaw:
		return false, winerr.New(winerr.InUse, opCreatePartition, disk.name(), "it has no partition table; initialize it first")
	case layout.Style != win.StyleGPT:
		return false, winerr.New(winerr.InUse, opCreatePartition, disk.name(),
			"it has an empty %s partition table that csi-proxy did not write; if nothing on it is needed, clean it with diskpart", layout.Style)
	}
	return false, nil
}

// fillTable creates the partition in the empty GPT with the given id, and waits for its
// volume.
func (h *host) fillTable(ctx context.Context, disk target, id win.GUID) error {
	layout, err := h.createInEmptyTable(ctx, disk, id)
	if err != nil {
		return err
	}
	return h.awaitUsable(ctx, disk, layout)
}

// awaitUsable waits for the volumes of a disk that has partitions. It fails if Windows makes no
// volume of any of them, as on a disk of a Linux pod: PartitionDisk promises a volume, and some
// drivers crash without one (azuredisk 1.30.0 and aws-ebs 1.63.0 take the first of none).
func (h *host) awaitUsable(ctx context.Context, disk target, layout win.DriveLayout) error {
	switch {
	case len(layout.Mountable()) > 0:
		return h.awaitArrival(ctx, disk, layout)
	case dynamic(layout):
		return h.awaitDynamicVolume(ctx, disk)
	default:
		return unusable(disk, layout)
	}
}

// bringOnline brings a disk online that is to be partitioned, and was as given a moment ago. It
// refuses a disk of another system before it is touched. A disk without a table stays read-only
// until it is known to be empty.
func (h *host) bringOnline(ctx context.Context, t target, now win.DiskAttributes) error {
	if now.ReadOnly {
		var err error
		if t, err = h.pinned(ctx, opPartition, t); err != nil {
			return err
		}
		if now, err = h.m.DiskAttributes(ctx, t.device); err != nil || !now.Offline {
			return winerr.Wrap(opPartition, t.name(), err)
		}
	}
	layout, err := h.m.DriveLayout(ctx, t.device)
	raw := err == nil && layout.Style == win.StyleRaw
	if err == nil && partitioned(layout) && !usable(layout) {
		return unusable(t, layout)
	}
	before := now
	before.ReadOnly = now.ReadOnly && !raw
	if _, err := h.onlineFrom(ctx, opPartition, t, before); err != nil || !raw || !now.ReadOnly {
		return err
	}
	// Windows may not have read the table before.
	if layout, err = h.m.DriveLayout(ctx, t.device); err != nil || layout.Style == win.StyleRaw {
		return winerr.Wrap(opPartition, t.name(), err)
	}
	return h.endPolicy(ctx, t)
}

// endPolicy makes a disk writable that the SAN policy had made read-only, and that this change has
// brought online.
func (h *host) endPolicy(ctx context.Context, disk target) error {
	readOnly := win.DiskAttributes{ReadOnly: true}
	err := h.switchTo(ctx, opPartition, disk, readOnly, win.DiskAttributes{}, readOnly)
	if err != nil && mayBeProtected(err) {
		logReadOnly(ctx, disk, err)
		return nil
	}
	return err
}

func unusable(disk target, layout win.DriveLayout) error {
	return winerr.New(winerr.InUse, opCreatePartition, disk.name(),
		"it has partitions, but Windows created no volume for any of them: %s; if nothing on the disk is needed, clean it with diskpart", typesOf(layout))
}

// createInEmptyTable creates the partition on a disk with the GPT that has the given id, unless
// another program was faster. It returns the table as it is then.
//
// Windows may add its own reserved partition to a new table some time later, without notice. So
// the table is read immediately before it is written, and its partitions are kept. If Windows
// refuses a table because it has changed in between, it is read and written again.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_disk_set_drive_layout_ex
func (h *host) createInEmptyTable(ctx context.Context, disk target, id win.GUID) (layout win.DriveLayout, err error) {
	const attempts = 3
	fail := func(err error) (win.DriveLayout, error) {
		return layout, winerr.Wrap(opCreatePartition, disk.name(), err)
	}
	if layout, err = h.lookForPartitions(ctx, &disk, id); err != nil || partitioned(layout) {
		return fail(err)
	}
	if err := h.makeWritable(ctx, opCreatePartition, disk); err != nil { // which may take seconds
		return fail(err)
	}
	for range attempts {
		if layout, err = h.lookForPartitions(ctx, &disk, id); err != nil || partitioned(layout) {
			return fail(err)
		}
		table, wanted, err := withDataPartition(layout, disk.size)
		if err != nil {
			return fail(winerr.As(winerr.NoSpace, opCreatePartition, disk.name(), err, ""))
		}
		if err := h.m.SetDriveLayout(ctx, disk.device, table); winerr.CodeOf(err) == winerr.InvalidParameter {
			klog.FromContext(ctx).V(4).Info("Windows refuses a partition table", "disk", disk.number, "table", describe(table))
			continue
		} else if err != nil {
			return fail(winerr.As(kindOfOurs(err), opCreatePartition, disk.name(), err, ""))
		}
		_ = h.m.UpdateDisk(ctx, disk.device) // Windows makes the volume by itself, only later
		if layout, err = h.m.DriveLayout(ctx, disk.device); err != nil {
			return fail(err)
		}
		if slices.ContainsFunc(layout.Partitions, func(p win.Partition) bool { return p.ID == wanted.ID }) {
			h.warnOfOldVolume(ctx, disk, wanted)
			return layout, nil
		}
	}
	return fail(winerr.New(winerr.Internal, opCreatePartition, disk.name(),
		"Windows refused or lost the new partition %d times (%w); the table is %s", attempts, winerr.InvalidParameter, describe(layout)))
}

// lookForPartitions reads the table of a disk. It fails if that is not the GPT with the given id,
// or if Windows shows no partitions but the sectors of the disk have some.
func (h *host) lookForPartitions(ctx context.Context, disk *target, id win.GUID) (layout win.DriveLayout, err error) {
	geometry, err := h.recognize(ctx, opCreatePartition, disk)
	if err != nil {
		return layout, err
	}
	entries, err := h.entries(ctx, *disk, geometry)
	if err != nil {
		return layout, winerr.Wrap(opCreatePartition, disk.name(), err)
	}
	layout, err = h.m.DriveLayout(ctx, disk.device)
	switch {
	case err != nil:
		return layout, winerr.Wrap(opCreatePartition, disk.name(), err)
	case layout.Style != win.StyleGPT || layout.DiskID != id:
		return layout, winerr.New(winerr.Busy, opCreatePartition, disk.name(),
			"its partition table was GPT {%s}, and now is %s {%s}; find out what else writes to it", id, layout.Style, layout.DiskID)
	case !partitioned(layout) && entries != "":
		return layout, winerr.New(winerr.InUse, opCreatePartition, disk.name(),
			"Windows shows an empty partition table, but there is %s; if nothing on it is needed, clean it with diskpart", entries)
	}
	return layout, nil
}
