package api

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"

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
func (h *host) takeOnline(ctx context.Context, disk target) error {
	switched, err := h.online(ctx, opOnline, disk)
	if err != nil || !switched {
		return err
	}
	return h.awaitVolumesOf(ctx, opOnline, disk)
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
func (h *host) takeOnlineReadOnly(ctx context.Context, disk target) error {
	const op = opOnlineReadOnly
	offline, readOnly := win.DiskAttributes{Offline: true}, win.DiskAttributes{ReadOnly: true}
	if err := h.refuseSystemDisk(ctx, op, disk.number); err != nil {
		return err
	}
	// Another disk that gets the number meanwhile must not go offline.
	disk, err := h.pinned(ctx, op, disk)
	if err != nil {
		return err
	}
	disk.onlyRead = true
	now, err := h.m.DiskAttributes(ctx, disk.device)
	switch {
	case err != nil:
		return winerr.Wrap(op, disk.name(), err)
	case !now.ReadOnly:
		used := disk
		if used.unused, err = h.refuseMounted(ctx, op, disk, now, false); err != nil {
			return err
		}
		if err := h.switchTo(ctx, op, used, now, offline, offline); err != nil {
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
	if !disk.isPinned {
		if disk, err = h.pinned(ctx, op, disk); err != nil {
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

// takeOffline switches a disk off. Windows removes its volumes. Of a caller who does not say which disk it means, it is
// not known which mount that has unmounted, or will: then only one that a pod uses counts.
func (h *host) takeOffline(ctx context.Context, disk target) error {
	offline := win.DiskAttributes{Offline: true}
	now, err := h.m.DiskAttributes(ctx, disk.device)
	if err != nil || now.Offline {
		return winerr.Wrap(opOffline, disk.name(), err)
	}
	if err := h.refuseSystemDisk(ctx, opOffline, disk.number); err != nil {
		return err
	}
	if disk, err = h.pinnedIfKnown(ctx, opOffline, disk); err != nil {
		return err
	}
	if _, err := h.refuseMounted(ctx, opOffline, disk, now, disk.mustBe == (MustBe{})); err != nil {
		return err
	}
	return h.switchTo(ctx, opOffline, disk, now, offline, offline)
}

// pinnedIfKnown is pinned, except that a disk that fails to say what it is stays one by number.
func (h *host) pinnedIfKnown(ctx context.Context, op string, disk target) (target, error) {
	pinned, err := h.pinned(ctx, op, disk)
	if err == nil || ctx.Err() != nil || errors.Is(err, winerr.NotFound) || disk.mustBe != (MustBe{}) {
		return pinned, err
	}
	return disk, nil
}

func (h *host) makeWritable(ctx context.Context, op string, disk target) error {
	now, err := h.m.DiskAttributes(ctx, disk.device)
	if err != nil {
		return winerr.Wrap(op, disk.name(), err)
	}
	return h.switchTo(ctx, op, disk, now, win.DiskAttributes{}, win.DiskAttributes{Offline: true, ReadOnly: true})
}

// setReadOnly sets or clears the read-only attribute of a disk, whether it is online or not.
func (h *host) setReadOnly(ctx context.Context, op string, disk target, readOnly bool) error {
	if err := h.refuseSystemDisk(ctx, op, disk.number); err != nil {
		return err
	}
	now, err := h.m.DiskAttributes(ctx, disk.device)
	if err != nil || now.ReadOnly == readOnly {
		return winerr.Wrap(op, disk.name(), err)
	}
	if disk, err = h.pinnedIfKnown(ctx, op, disk); err != nil {
		return err
	}
	if readOnly {
		if _, err := h.refuseMounted(ctx, op, disk, now, false); err != nil {
			return err
		}
	}
	err = h.switchTo(ctx, op, disk, now, win.DiskAttributes{ReadOnly: readOnly}, win.DiskAttributes{ReadOnly: true})
	if winerr.CodeOf(err) == winerr.WriteProtect {
		return winerr.As(winerr.InUse, op, disk.name(), winerr.WriteProtect,
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
		if disk.isPinned {
			if err := h.confirm(ctx, op, &disk); err != nil {
				return false, err
			}
		}
		isOpen := false
		if len(disk.unused) > 0 {
			refusal = h.m.TakeUnusedOffline(ctx, disk.device, disk.unused)
			isOpen = winerr.CodeOf(refusal) == winerr.AccessDenied
		} else {
			refusal = h.m.SetDiskAttributes(ctx, disk.device, want, mask)
		}
		if refusal != nil && !isOpen && !errors.Is(refusal, winerr.Busy) {
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
