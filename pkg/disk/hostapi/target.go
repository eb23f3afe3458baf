package api

import (
	"context"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskid"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// target is a disk that is being changed: the number by which the caller and errors know it, and
// the device to ask.
type target struct {
	number uint32
	device win.Device
	identity
	// onlyRead is set while the disk must not be online and writable, not for a moment.
	onlyRead bool
}

// identity distinguishes a disk from another one in the same slot. A value that the disk does not report,
// or not at the moment, is empty.
type identity struct {
	size           int64
	serial, page83 string
}

func (t target) name() string { return diskName(t.number) }

// numbered is the disk that has the number at the time of each call. That is good enough to read,
// and for changes that destroy nothing.
func numbered(disk uint32) target { return target{number: disk, device: win.PhysicalDrive(disk)} }

// pinned is the one disk that has the number now. Windows reuses numbers: when a disk leaves and
// another one comes in the middle of a change, calls by number go to the other one. A device
// interface goes with its disk.
//
// It asks all disks for their numbers, so it is only for changes that destroy something. It waits
// for disks that do not answer only until it finds the right one.
func (h *host) pinned(ctx context.Context, op string, disk uint32) (target, error) {
	t := target{number: disk}
	devices, err := h.m.DiskDevices(ctx)
	if err != nil {
		return t, winerr.Wrap(op, t.name(), err)
	}
	untilFound, found := context.WithCancel(ctx)
	defer found()
	var mu sync.Mutex
	failures := tasks.Each(untilFound, len(devices), diskTimeout, func(ctx context.Context, i int) error {
		number, err := h.m.DeviceNumber(ctx, devices[i])
		if err != nil || number.Type != win.DeviceTypeDisk || number.Number != disk {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		t.device = devices[i]
		found()
		return nil
	})
	if t.device != "" {
		_, err := h.recognize(ctx, op, &t)
		return t, err
	}
	for _, err := range failures {
		if err != nil { // it may be the one
			return t, winerr.As(kindOfOther(err), op, t.name(), err, "")
		}
	}
	return t, winerr.Wrap(op, t.name(), winerr.FileNotFound)
}

// recognize fails if a disk is not the one it was. Some buses name an interface after the slot,
// and the next disk in the slot gets the same interface.
//
// It completes the identity, and returns the geometry of the disk.
func (h *host) recognize(ctx context.Context, op string, t *target) (win.DiskGeometry, error) {
	geometry, err := h.m.DiskGeometry(ctx, t.device)
	if err != nil {
		return geometry, winerr.Wrap(op, t.name(), err)
	}
	now := identity{size: geometry.Size}
	if descriptor, err := h.m.DeviceDescriptor(ctx, t.device); err == nil {
		now.serial = descriptor.Serial
	}
	if identifiers, err := h.m.DeviceIdentifiers(ctx, t.device); err == nil {
		now.page83 = diskid.Page83(identifiers)
	}
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	if before := t.identity; before.size != 0 &&
		(now.size != before.size || differ(now.serial, before.serial) || differ(now.page83, before.page83)) {
		return geometry, winerr.New(winerr.Busy, op, t.name(),
			"it had %d bytes and the serial number %q, and now has %d and %q; find the disk again by its ids", before.size, before.serial, now.size, now.serial)
	}
	t.size = now.size
	if t.serial == "" {
		t.serial = now.serial
	}
	if t.page83 == "" {
		t.page83 = now.page83
	}
	return geometry, nil
}
