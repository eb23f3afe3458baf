package api

import (
	"context"
	"errors"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	opOnline  = "online"
	opOffline = "offline"
)

// takeOnline switches a disk on. A read-only disk stays read-only: if it has data that may be
// intended, and an empty one becomes writable when it is initialized.
func (h *host) takeOnline(ctx context.Context, disk uint32) error {
	return h.online(ctx, opOnline, numbered(disk))
}

func (h *host) online(ctx context.Context, op string, disk target) error {
	return h.switchTo(ctx, op, disk, win.DiskAttributes{}, win.DiskAttributes{Offline: true})
}

// takeOffline switches a disk off. Windows removes its volumes.
func (h *host) takeOffline(ctx context.Context, disk uint32) error {
	now, err := h.m.DiskAttributes(ctx, win.PhysicalDrive(disk))
	if err != nil || now.Offline {
		return winerr.Wrap(opOffline, name(disk), err)
	}
	if err := h.refuseSystemDisk(ctx, opOffline, disk); err != nil {
		return err
	}
	return h.switchTo(ctx, opOffline, numbered(disk), win.DiskAttributes{Offline: true}, win.DiskAttributes{Offline: true})
}

// makeWritable switches a disk on, for writing.
func (h *host) makeWritable(ctx context.Context, op string, disk target) error {
	return h.switchTo(ctx, op, disk, win.DiskAttributes{}, win.DiskAttributes{Offline: true, ReadOnly: true})
}

// switchTo gives a disk the wanted attributes, of those in mask, and returns when it has them. It
// does not touch a disk that has them.
//
// The partition manager may still be busy with the arrival of the disk, and then sets what the
// SAN policy says, after us. So a change must be seen twice, and is made again if it was undone.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_disk_set_disk_attributes
func (h *host) switchTo(ctx context.Context, op string, disk target, want, mask win.DiskAttributes) error {
	const (
		step   = 50 * time.Millisecond
		repeat = time.Second // a change without effect is made again this often
		limit  = 5 * time.Second
	)
	hasWanted := func() (bool, error) {
		now, err := h.m.DiskAttributes(ctx, disk.device)
		return masked(now, mask) == masked(want, mask), err
	}
	var refusal error
	timesSeen := 0
	done, err := win.Poll(ctx, h.m, win.Backoff{First: step, Longest: step, Limit: limit}, func(waited time.Duration) (bool, error) {
		wanted, err := hasWanted()
		switch {
		case err != nil:
			return false, err
		case wanted:
			timesSeen++
			return timesSeen == 2 || waited == 0 || waited == limit, nil
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
	default:
		return winerr.New(winerr.Busy, op, disk.name(),
			"Windows keeps undoing it; look for another disk with the same signature, and check the SAN policy")
	}
}

func masked(a, mask win.DiskAttributes) win.DiskAttributes {
	return win.DiskAttributes{Offline: a.Offline && mask.Offline, ReadOnly: a.ReadOnly && mask.ReadOnly}
}
