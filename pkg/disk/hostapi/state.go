package api

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/hung"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	opOnline         = "online"
	opOnlineReadOnly = "bring online read-only"
	opOffline        = "offline"
	opMakeReadOnly   = "make read-only"
	opMakeWritable   = "make writable"
)

// takeOnline switches a disk on and waits for its volumes. It waits only if the disk was
// offline: a driver that repeats the call for a disk that is online gets its answer at once, and
// ListVolumesOnDisk waits again.
func (h *host) takeOnline(ctx context.Context, disk uint32) error {
	switched, err := h.online(ctx, opOnline, numbered(disk))
	if err != nil || !switched {
		return err
	}
	return h.awaitVolumesOf(ctx, opOnline, numbered(disk))
}

// refuseMounted fails if a volume of an online disk is mounted at a folder, where a pod may use it, or if a volume
// that is does not report on which disk. A drive letter does not count: Windows gives one to every new volume. It
// looks at no file system, which would mount it.
func (h *host) refuseMounted(ctx context.Context, op string, disk target, now win.DiskAttributes) error {
	if now.Offline {
		return nil
	}
	volumes, complete := h.volumesByName(ctx, disk)
	if !complete {
		var err error
		if volumes, err = h.m.VolumeIDs(ctx); err != nil {
			return winerr.As(kindOfOther(err), op, disk.name(), err, "")
		}
	}
	failures := tasks.Each(ctx, len(volumes), diskTimeout, func(ctx context.Context, i int) error {
		paths, err := h.m.VolumePaths(ctx, volumes[i])
		folder := slices.IndexFunc(paths, func(path string) bool { return len(path) > len(`C:\`) })
		if err != nil || folder < 0 {
			return ignoreNotFound(err)
		}
		extents, err := h.m.VolumeExtents(ctx, volumes[i])
		switch {
		case err != nil: // it may be on this disk
			return ignoreNotFound(err)
		case slices.ContainsFunc(extents, func(e win.Extent) bool { return e.Disk == disk.number }):
			return winerr.New(winerr.InUse, op, disk.name(), "it is mounted for writing at %s; unmount it first", paths[folder])
		}
		return nil
	})
	for i, err := range failures {
		if err != nil && !errors.Is(err, winerr.InUse) {
			err = winerr.As(kindOfOther(err), op, disk.name(), err, "whether volume "+string(volumes[i])+" is on it and in use is unknown, so it is not taken offline")
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// volumesByName returns the volumes of a GPT disk by the name that Windows usually gives them, the GUID of their
// partition. It asks no volume of another disk, which may hang. It is not complete if a volume has another name.
func (h *host) volumesByName(ctx context.Context, disk target) (volumes []win.VolumeID, complete bool) {
	layout, err := h.m.DriveLayout(ctx, disk.device)
	if err != nil || layout.Style != win.StyleGPT {
		return nil, false
	}
	for _, p := range layout.Partitions {
		if p.Type == win.PartitionMSR {
			continue // has no volume
		}
		id := win.VolumeID(`\\?\Volume{` + p.ID.String() + `}\`)
		at, err := h.m.DeviceNumber(ctx, id.Device())
		if err != nil || at != (win.DeviceNumber{Type: win.DeviceTypeDisk, Number: disk.number, Partition: p.Number}) {
			return nil, false
		}
		volumes = append(volumes, id)
	}
	return volumes, true
}

// ignoreNotFound is for volumes that have left since they were listed.
func ignoreNotFound(err error) error {
	if errors.Is(err, winerr.NotFound) {
		return nil
	}
	return err
}

// awaitVolumesOf waits for the volumes of a disk that has just come online.
func (h *host) awaitVolumesOf(ctx context.Context, op string, disk target) error {
	layout, err := h.m.DriveLayout(ctx, disk.device)
	if err != nil {
		return winerr.Wrap(op, disk.name(), err)
	}
	return h.awaitArrival(ctx, disk, layout)
}

// takeOnlineReadOnly switches a disk on for reading, and waits for its volumes.
//
// NTFS writes to its log when it mounts a volume of a writable disk, and anything that looks at the
// volume makes it mount. So the disk becomes read-only while it is offline, and an online disk goes
// offline first. If a step fails, the disk is not brought online.
func (h *host) takeOnlineReadOnly(ctx context.Context, number uint32) error {
	const op = opOnlineReadOnly
	offline, readOnly := win.DiskAttributes{Offline: true}, win.DiskAttributes{ReadOnly: true}
	if err := h.refuseSystemDisk(ctx, op, number); err != nil {
		return err
	}
	// Another disk that gets the number meanwhile must not go offline.
	disk, err := h.pinned(ctx, op, number)
	if err != nil {
		return err
	}
	disk.onlyRead = true
	now, err := h.m.DiskAttributes(ctx, disk.device)
	switch {
	case err != nil:
		return winerr.Wrap(op, disk.name(), err)
	case !now.ReadOnly:
		if err := h.refuseMounted(ctx, op, disk, now); err != nil {
			return err
		}
		if err := h.switchTo(ctx, op, disk, now, offline, offline); err != nil {
			return err
		}
		if err := h.switchTo(ctx, op, disk, offline, readOnly, readOnly); err != nil {
			return err
		}
	case !now.Offline:
		return nil
	}
	if err := h.switchTo(ctx, op, disk, offline, win.DiskAttributes{}, offline); err != nil {
		return err
	}
	return h.awaitVolumesOf(ctx, op, disk)
}

// online switches a disk on, and reports whether it was off.
//
// Windows' default SAN policy for servers brings disks of shared buses up offline and read-only
// at once. Nothing else clears the second flag, and a volume that has moved here from another
// node could be mounted but not written to. So a disk in this state loses both, in one request:
// a copy of another disk gets its own id only if it is writable when it goes online.
// https://github.com/kubernetes-csi/csi-proxy/issues/437
// https://github.com/kubernetes-csi/csi-proxy/issues/287
//
// A disk that is online and read-only was made so by its owner and stays so. A disk that the
// platform protects comes online read-only.
func (h *host) online(ctx context.Context, op string, disk target) (switched bool, err error) {
	now, err := h.m.DiskAttributes(ctx, disk.device)
	if err != nil {
		return false, winerr.Wrap(op, disk.name(), err)
	}
	return h.onlineFrom(ctx, op, disk, now)
}

// onlineFrom is online for a disk that was as given a moment ago. The disk may be pinned.
func (h *host) onlineFrom(ctx context.Context, op string, disk target, now win.DiskAttributes) (switched bool, err error) {
	switch {
	case !now.Offline, disk.onlyRead && !now.ReadOnly:
		return false, nil
	case !now.ReadOnly, disk.onlyRead:
		return true, h.switchTo(ctx, op, disk, now, win.DiskAttributes{}, win.DiskAttributes{Offline: true})
	}
	// Another disk that gets the number meanwhile must not become writable.
	if disk.size == 0 {
		if disk, err = h.pinned(ctx, op, disk.number); err != nil {
			return false, err
		}
		if now, err = h.m.DiskAttributes(ctx, disk.device); err != nil || !now.Offline {
			return false, winerr.Wrap(op, disk.name(), err)
		}
	}
	err = h.switchTo(ctx, op, disk, now, win.DiskAttributes{}, win.DiskAttributes{Offline: true, ReadOnly: true})
	switch {
	case err == nil:
		return true, nil
	case mayBeProtected(err):
		return true, h.onlineProtected(ctx, op, disk, err)
	}
	if now, lookErr := h.m.DiskAttributes(ctx, disk.device); lookErr == nil && !now.Offline { // Windows did half of it
		logReadOnly(ctx, disk, err)
		return true, nil
	}
	return false, err
}

// logReadOnly logs for operators, at the default verbosity, why pods cannot write to a disk.
func logReadOnly(ctx context.Context, disk target, reason error) {
	klog.FromContext(ctx).Info("A disk comes online read-only, because Windows does not make it writable", "disk", disk.number, "err", reason)
}

// onlineProtected brings a disk online that could not be made writable, for the given reason.
// It asks once more for a writable disk then: a reason that has passed must not leave the disk
// read-only, because nothing else would clear that.
func (h *host) onlineProtected(ctx context.Context, op string, disk target, reason error) error {
	now, err := h.m.DiskAttributes(ctx, disk.device)
	if err != nil {
		return winerr.Wrap(op, disk.name(), err)
	}
	if err := h.switchTo(ctx, op, disk, now, win.DiskAttributes{}, win.DiskAttributes{Offline: true}); err != nil {
		return err
	}
	if err := h.m.SetDiskAttributes(ctx, disk.device, win.DiskAttributes{}, win.DiskAttributes{ReadOnly: true}); err != nil {
		logReadOnly(ctx, disk, reason)
	}
	return nil
}

// mayBeProtected reports whether a change failed because the platform protects a disk against
// writes. Which code Windows gives for that is not documented.
func mayBeProtected(err error) bool {
	switch winerr.CodeOf(err) {
	case winerr.WriteProtect, winerr.AccessDenied, winerr.InvalidFunction, winerr.NotSupported, winerr.InvalidParameter:
		return true
	default:
		return false
	}
}

// offlinePause is how long switching a disk off may take before the disk must show that it answers.
const offlinePause = 5 * time.Second

// takeOffline switches a disk off. Windows removes its volumes.
func (h *host) takeOffline(ctx context.Context, disk uint32) error {
	offline := win.DiskAttributes{Offline: true}
	now, err := h.m.DiskAttributes(ctx, win.PhysicalDrive(disk))
	if err != nil || now.Offline {
		return winerr.Wrap(opOffline, diskName(disk), err)
	}
	if err := h.refuseSystemDisk(ctx, opOffline, disk); err != nil {
		return err
	}
	only := func(context.Context) ([]uint32, error) { return []uint32{disk}, nil }
	err = hung.Watch(ctx, h.m, offlinePause, only, func(ctx context.Context) error {
		return h.switchTo(ctx, opOffline, numbered(disk), now, offline, offline)
	})
	return winerr.Wrap(opOffline, diskName(disk), err)
}

// makeWritable switches a disk on, for writing.
func (h *host) makeWritable(ctx context.Context, op string, disk target) error {
	now, err := h.m.DiskAttributes(ctx, disk.device)
	if err != nil {
		return winerr.Wrap(op, disk.name(), err)
	}
	return h.switchTo(ctx, op, disk, now, win.DiskAttributes{}, win.DiskAttributes{Offline: true, ReadOnly: true})
}

// setReadOnly sets or clears the read-only attribute of a disk, whether it is online or not.
func (h *host) setReadOnly(ctx context.Context, op string, disk uint32, readOnly bool) error {
	if err := h.refuseSystemDisk(ctx, op, disk); err != nil {
		return err
	}
	now, err := h.m.DiskAttributes(ctx, win.PhysicalDrive(disk))
	if err != nil || now.ReadOnly == readOnly {
		return winerr.Wrap(op, diskName(disk), err)
	}
	err = h.switchTo(ctx, op, numbered(disk), now, win.DiskAttributes{ReadOnly: readOnly}, win.DiskAttributes{ReadOnly: true})
	if winerr.CodeOf(err) == winerr.WriteProtect {
		return winerr.As(winerr.InUse, op, diskName(disk), winerr.WriteProtect,
			"the platform attached the disk read-only; attach it for writing")
	}
	return err
}

// switchTo gives a disk the wanted attributes, of those in mask, and returns when it has them. It
// does not touch a disk that has them. now is what the disk was a moment ago.
//
// The partition manager may still be busy with the arrival of the disk, and then sets what the
// SAN policy says, after us. So a change must be seen twice, and is made again if it was undone.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_disk_set_disk_attributes
func (h *host) switchTo(ctx context.Context, op string, disk target, now, want, mask win.DiskAttributes) error {
	const (
		step   = 50 * time.Millisecond
		repeat = time.Second // a change without effect is made again this often
		limit  = 5 * time.Second
	)
	hasWanted := func() (wanted bool, err error) {
		now, err = h.m.DiskAttributes(ctx, disk.device)
		return masked(now, mask) == masked(want, mask), err
	}
	if masked(now, mask) == masked(want, mask) {
		return nil
	}
	var refusal error
	timesSeen := 0
	done, err := win.Poll(ctx, h.m, win.Backoff{First: step, Longest: step, Limit: limit}, func(waited time.Duration) (bool, error) {
		wanted, err := false, error(nil)
		if waited > 0 {
			wanted, err = hasWanted()
		}
		switch {
		case err != nil:
			return false, err
		case wanted:
			timesSeen++
			return timesSeen == 2 || waited == limit, nil
		case waited == limit || (timesSeen == 0 && waited%repeat != 0):
			return false, nil
		}
		refusal = h.m.SetDiskAttributes(ctx, disk.device, want, mask)
		if refusal != nil && !errors.Is(refusal, winerr.Busy) {
			return false, refusal
		}
		// For the volumes to come or go at once. They do in any case.
		_ = h.m.UpdateDisk(ctx, disk.device)
		timesSeen = 0
		if wanted, err = hasWanted(); wanted { // most often the change shows immediately
			timesSeen = 1
		}
		return false, err
	})
	switch {
	case err != nil:
		return winerr.Wrap(op, disk.name(), err)
	case done:
		return nil
	case refusal != nil:
		return winerr.As(winerr.Busy, op, disk.name(), refusal, "close what has the disk or its volumes open")
	case now.Offline && mask.Offline && !want.Offline:
		return h.describeCollision(ctx, op, disk)
	default:
		return winerr.New(winerr.Busy, op, disk.name(), "Windows keeps undoing it")
	}
}

func masked(a, mask win.DiskAttributes) win.DiskAttributes {
	return win.DiskAttributes{Offline: a.Offline && mask.Offline, ReadOnly: a.ReadOnly && mask.ReadOnly}
}
