package api

import (
	"context"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const opDisk = "get disk of volume"

func (b boundHost) GetDiskNumberFromVolumeID(volumeID string) (uint32, error) {
	ctx, h := b.ctx, b.host
	id, err := parseID(opDisk, volumeID)
	if err != nil {
		return 0, err
	}
	disks, err := h.disksOf(ctx, opDisk, id)
	if err != nil {
		return 0, err
	}
	if len(disks) > 1 {
		return 0, winerr.New(winerr.Unsupported, opDisk, string(id), "it spans several disks, %v", disks)
	}
	return disks[0], nil
}

// disksOf returns the numbers of the disks that a volume lies on, at least one.
func (h host) disksOf(ctx context.Context, op string, id win.VolumeID) ([]uint32, error) {
	number, err := h.m.DeviceNumber(ctx, id.Device())
	switch {
	case err == nil && number.Type != win.DeviceTypeDisk:
		return nil, winerr.New(winerr.InUse, op, string(id), "it is not on a disk but on a device of type %d", number.Type)
	case err == nil:
		return []uint32{number.Number}, nil
	case !unknown(err):
		return nil, failed(op, id, err)
	}
	extents, err := h.m.VolumeExtents(ctx, id)
	switch {
	case unknown(err) || (err == nil && len(extents) == 0):
		return nil, winerr.New(winerr.InUse, op, string(id), "it is not on a disk that has a number, like a RAM disk")
	case err != nil:
		return nil, failed(op, id, err)
	}
	disks := make([]uint32, 0, len(extents))
	for _, extent := range extents {
		disks = append(disks, extent.Disk)
	}
	slices.Sort(disks)
	return slices.Compact(disks), nil
}

// unknown reports whether a volume does not know a request. Dynamic and spanned volumes and
// RAM disks have no disk and partition number.
func unknown(err error) bool {
	switch winerr.CodeOf(err) {
	case winerr.InvalidFunction, winerr.NotSupported, winerr.InvalidParameter:
		return true
	default:
		return false
	}
}

// refuseSystemDisk fails for a volume that shares a disk with Windows or its boot files, or
// may do so.
func (h host) refuseSystemDisk(ctx context.Context, op string, id win.VolumeID) error {
	disks, err := h.disksOf(ctx, op, id)
	if err != nil {
		return err
	}
	system, err := h.m.SystemVolumes(ctx)
	if err != nil {
		return winerr.As(winerr.KindOf(err), op, string(id), err, "so csi-proxy cannot tell the disk of the system from others")
	}
	for _, other := range system {
		systemDisks, err := h.disksOf(ctx, op, other)
		if err != nil {
			return err
		}
		for _, disk := range systemDisks {
			if slices.Contains(disks, disk) {
				return winerr.New(winerr.Denied, op, string(id), "disk %d holds the system, and csi-proxy changes nothing on it", disk)
			}
		}
	}
	return nil
}
