package api

import (
	"context"
	"maps"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// describeCollision is the error for a disk that does not stay online. Most often another disk
// has the same id: a copy, such as a restored snapshot, beside its original. Windows gives the
// second one a new id when it goes online, if it can write to it, and otherwise keeps it offline.
// https://github.com/kubernetes-csi/csi-proxy/issues/287
func (h *host) describeCollision(ctx context.Context, op string, disk target) error {
	if twin, ok := h.twin(ctx, disk); ok {
		return winerr.New(winerr.Busy, op, disk.name(),
			"Windows keeps it offline, because disk %d has the same id and is online; detach one of them, or attach this one for writing so that Windows can give it a new id", twin)
	}
	return winerr.New(winerr.Busy, op, disk.name(),
		"Windows keeps undoing it; look for another disk with the same signature, and check the SAN policy")
}

// twin finds an online disk with the same id as another one. It asks every disk, so it is for
// the way into an error only.
func (h *host) twin(ctx context.Context, disk target) (number uint32, ok bool) {
	layout, err := h.m.DriveLayout(ctx, disk.device)
	if err != nil {
		return 0, false
	}
	twins, _, err := eachDisk(ctx, h, "look for copies of "+disk.name(), func(ctx context.Context, d win.Device) (found, ok bool, err error) {
		other, err := h.m.DriveLayout(ctx, d)
		if err != nil || !sameID(layout, other) {
			return false, false, err
		}
		attributes, err := h.m.DiskAttributes(ctx, d)
		return true, !attributes.Offline, err
	})
	if err != nil {
		return 0, false
	}
	delete(twins, disk.number)
	for _, number := range slices.Sorted(maps.Keys(twins)) {
		return number, true
	}
	return 0, false
}

// sameID reports whether two partition tables have the same id.
func sameID(a, b win.DriveLayout) bool {
	switch {
	case a.Style != b.Style:
		return false
	case a.Style == win.StyleGPT:
		return a.DiskID == b.DiskID
	default:
		return a.Style == win.StyleMBR && a.Signature == b.Signature && a.Signature != 0
	}
}
