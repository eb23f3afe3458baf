package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	isPinned bool
	// mustBe is what the caller says of it.
	mustBe MustBe
	// unused are volumes that must have no open file when the disk goes offline.
	unused []win.VolumeID
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

// meant is the disk with a number, pinned if the caller says which one that must be.
func (h *host) meant(ctx context.Context, op string, disk uint32, mustBe MustBe) (target, error) {
	t := numbered(disk)
	if mustBe == (MustBe{}) {
		return t, nil
	}
	t.mustBe = mustBe
	if mustBe.Device == "" {
		return h.pinned(ctx, op, t)
	}
	name, whole := strings.CutPrefix(mustBe.Device, `\\?\`)
	if !whole || !strings.Contains(name, "#") || strings.ContainsAny(name, `\/`) { // to open a path may call a server, as LocalSystem
		return t, winerr.New(winerr.Invalid, op, t.name(), "%.250q is not the interface of a disk", mustBe.Device)
	}
	t.device = win.Device(mustBe.Device)
	switch number, err := h.m.DeviceNumber(ctx, t.device); {
	case errors.Is(err, winerr.NotFound):
		return t, t.isAnother(op, fmt.Sprintf("%.250q", mustBe.Device))
	case err != nil:
		return t, winerr.Wrap(op, t.name(), err)
	case number.Type != win.DeviceTypeDisk || number.Number != disk:
		return t, t.isAnother(op, fmt.Sprintf("%.250q", mustBe.Device))
	}
	t.isPinned = true
	return t, h.confirm(ctx, op, &t)
}

// isAnother is the error for a disk that the caller does not mean.
func (t target) isAnother(op, key string) error {
	return winerr.New(winerr.Busy, op, t.name(), "it is not the disk of %s any more; find the disk again by its ids", key)
}

// confirm fails if a pinned disk is not the one that it was, or not the one that the caller means.
func (h *host) confirm(ctx context.Context, op string, t *target) error {
	mustBe := t.mustBe
	if mustBe.VolumeID == "" || mustBe.Serial != "" || mustBe.Page83 != "" { // a disk that fails may still say what volume it has
		if _, err := h.recognize(ctx, op, t); err != nil {
			return err
		}
	}
	switch {
	case mustBe.Serial != "" && t.serial != mustBe.Serial:
		return t.isAnother(op, fmt.Sprintf("the serial number %.250q", mustBe.Serial))
	case mustBe.Page83 != "" && t.page83 != mustBe.Page83:
		return t.isAnother(op, fmt.Sprintf("page 83 %.250q", mustBe.Page83))
	case mustBe.VolumeID == "":
		return nil
	}
	id, ok := win.ParseVolumeID(mustBe.VolumeID)
	if !ok {
		return winerr.New(winerr.Invalid, op, t.name(), "%.250q is not the id of a volume", mustBe.VolumeID)
	}
	// Windows does not know the volumes of an offline disk.
	if layout, err := h.m.DriveLayout(ctx, t.device); err == nil && slices.ContainsFunc(layout.Partitions, func(p win.Partition) bool { return volumeNamed(p) == id }) {
		return nil
	}
	switch extents, err := h.m.VolumeExtents(ctx, id); {
	case ignoreNotFound(err) != nil:
		return winerr.As(kindOfOther(err), op, t.name(), err, "")
	case !slices.ContainsFunc(extents, func(e win.Extent) bool { return e.Disk == t.number }):
		return t.isAnother(op, mustBe.VolumeID)
	}
	return nil
}

// volumeNamed is the name that Windows usually gives to the volume of a GPT partition.
func volumeNamed(p win.Partition) win.VolumeID {
	return win.VolumeID(`\\?\Volume{` + p.ID.String() + `}\`)
}

// pinned is the one disk that has the number now. Windows reuses numbers: when a disk leaves and
// another one comes in the middle of a change, calls by number go to the other one. A device
// interface goes with its disk.
//
// It asks all disks for their numbers, so it is only for changes that destroy something. It waits
// for disks that do not answer only until it finds the right one.
func (h *host) pinned(ctx context.Context, op string, t target) (target, error) {
	if t.isPinned {
		return t, nil
	}
	t.device = ""
	devices, err := h.m.DiskDevices(ctx)
	if err != nil {
		return t, winerr.Wrap(op, t.name(), err)
	}
	untilFound, found := context.WithCancel(ctx)
	defer found()
	var mu sync.Mutex
	failures := tasks.Each(untilFound, len(devices), diskTimeout, func(ctx context.Context, i int) error {
		number, err := h.m.DeviceNumber(ctx, devices[i])
		if err != nil || number.Type != win.DeviceTypeDisk || number.Number != t.number {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		t.device = devices[i]
		found()
		return nil
	})
	if t.device != "" {
		t.isPinned = true
		return t, h.confirm(ctx, op, &t)
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
