package api

import (
	"context"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskid"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// refuseSystemDisk fails if Windows or its boot files are on the disk, and if that cannot be
// found out.
func (h *host) refuseSystemDisk(ctx context.Context, op string, disk uint32) error {
	const advice = "Windows did not say which disks it runs from, so nothing was changed"
	volumes, err := h.m.SystemVolumes(ctx)
	if err != nil {
		return winerr.As(kindOfOther(err), op, diskName(disk), err, advice)
	}
	for _, volume := range volumes {
		disks, err := diskid.OfVolume(ctx, h.m, volume)
		if err != nil {
			return winerr.As(kindOfOther(err), op, diskName(disk), err, advice)
		}
		if slices.Contains(disks, disk) {
			return winerr.New(winerr.Denied, op, diskName(disk), "Windows runs from it (volume %s)", volume)
		}
	}
	return nil
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
