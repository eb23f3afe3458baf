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

// takeOnline switches a disk on. It leaves a disk that is read-only so: on one with data
// that may be somebody's wish, and an empty one becomes writable when it is initialized.
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

// switchTo gives a disk the wanted attributes, of those in mask, and returns when it has
// them. A disk that has them is not touched.
//
// The partition manager may still be busy with the arrival of the disk, and then sets what
// the SAN policy says when it comes to it, after us. So a change has to be seen twice, and
// is asked for again if it was undone.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_disk_set_disk_attributes
func (h *host) switchTo(ctx context.Context, op string, disk target, want, mask win.DiskAttributes) error {
	const (
		step   = 50 * time.Millisecond
		repeat = time.Second // how often to ask
		limit  = 5 * time.Second
	)
	var refusal error
	for waited, seen := time.Duration(0), 0; ; waited += step {
		now, err := h.m.DiskAttributes(ctx, disk.device)
		switch {
		case err != nil:
			return winerr.Wrap(op, disk.name(), err)
		case masked(now, mask) == masked(want, mask):
			if seen++; seen == 2 || waited == 0 {
				return nil
			}
		case waited >= limit && refusal != nil:
			return winerr.As(winerr.Busy, op, disk.name(), refusal, "close what has the disk or its volumes open")
		case waited >= limit:
			return winerr.New(winerr.Busy, op, disk.name(),
				"Windows keeps undoing it; look for another disk with the same signature, and at the SAN policy")
		case seen > 0 || waited%repeat == 0: // undone, or without effect for a while
			refusal = h.m.SetDiskAttributes(ctx, disk.device, want, mask)
			if refusal != nil && !errors.Is(refusal, winerr.Busy) {
				return winerr.Wrap(op, disk.name(), refusal)
			}
			// For the volumes to come or go at once. They do in any case.
			_ = h.m.UpdateDisk(ctx, disk.device)
			seen = 0
			continue // most often it shows immediately
		}
		if err := h.m.Sleep(ctx, step); err != nil {
			return winerr.Wrap(op, disk.name(), err)
		}
	}
}

func masked(a, mask win.DiskAttributes) win.DiskAttributes {
	return win.DiskAttributes{Offline: a.Offline && mask.Offline, ReadOnly: a.ReadOnly && mask.ReadOnly}
}
