package diskid

import (
	"context"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// Machine answers which disks Windows runs from.
type Machine interface {
	SystemVolumes(ctx context.Context) ([]win.VolumeID, error)
	VolumeExtents(ctx context.Context, volume win.VolumeID) ([]win.Extent, error)
	DeviceNumber(ctx context.Context, device win.Device) (win.DeviceNumber, error)
}

// System returns the disks that Windows and its boot files are on, at least one. Callers never change
// or return one of them.
func System(ctx context.Context, m Machine) ([]uint32, error) {
	volumes, err := m.SystemVolumes(ctx)
	if err != nil {
		return nil, err
	}
	if len(volumes) == 0 {
		return nil, errors.New("there is no system volume")
	}
	var system []uint32
	for _, volume := range volumes {
		disks, err := OfVolume(ctx, m, volume)
		if err != nil {
			return nil, err
		}
		system = append(system, disks...)
	}
	return system, nil
}

// OfVolume returns the disks that a volume lies on, at least one. The device number of a volume
// without extents is that of its disk.
func OfVolume(ctx context.Context, m Machine, volume win.VolumeID) ([]uint32, error) {
	extents, err := m.VolumeExtents(ctx, volume)
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
	number, err := m.DeviceNumber(ctx, volume.Device())
	if err != nil {
		return nil, err
	}
	return []uint32{number.Number}, nil
}
