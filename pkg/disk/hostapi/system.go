package api

import (
	"context"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// refuseSystemDisk fails if Windows or its boot files are on the disk, and if that cannot be
// found out.
func (h *host) refuseSystemDisk(ctx context.Context, op string, disk uint32) error {
	const advice = "Windows did not say which disks it runs from, so nothing was changed"
	volumes, err := h.m.SystemVolumes(ctx)
	if err != nil {
		return winerr.As(kindOfOther(err), op, name(disk), err, advice)
	}
	for _, volume := range volumes {
		disks, err := h.disksOf(ctx, volume)
		if err != nil {
			return winerr.As(kindOfOther(err), op, name(disk), err, advice)
		}
		if slices.Contains(disks, disk) {
			return winerr.New(winerr.Denied, op, name(disk), "Windows runs from it (volume %s)", volume)
		}
	}
	return nil
}

// systemDisks returns the disks that Windows and its boot files are on.
func (h *host) systemDisks(ctx context.Context) ([]uint32, error) {
	volumes, err := h.m.SystemVolumes(ctx)
	if err != nil {
		return nil, err
	}
	var system []uint32
	for _, volume := range volumes {
		disks, err := h.disksOf(ctx, volume)
		if err != nil {
			return nil, err
		}
		system = append(system, disks...)
	}
	return system, nil
}

// disksOf returns the disks that a volume lies on, at least one.
func (h *host) disksOf(ctx context.Context, volume win.VolumeID) ([]uint32, error) {
	extents, err := h.m.VolumeExtents(ctx, volume)
	if err != nil {
		return nil, err
	}
	disks := make([]uint32, 0, len(extents))
	for _, extent := range extents {
		disks = append(disks, extent.Disk)
	}
	if len(disks) > 0 {
		return disks, nil
	}
	number, err := h.m.DeviceNumber(ctx, volume.Device())
	return append(disks, number.Number), err
}

// kindOfOther is the kind of a failure of another object than the one the caller named. The
// caller's own object is neither missing nor wrong.
func kindOfOther(err error) winerr.Kind {
	switch kind := winerr.KindOf(err); kind {
	case winerr.NotFound, winerr.Invalid:
		return winerr.Unavailable
	default:
		return kind
	}
}

// kindOfOurs is the kind of a failure of a call with parameters that we chose: if one is wrong,
// that is not the caller's fault.
func kindOfOurs(err error) winerr.Kind {
	switch kind := winerr.KindOf(err); kind {
	case winerr.Invalid:
		return winerr.Internal
	default:
		return kind
	}
}
