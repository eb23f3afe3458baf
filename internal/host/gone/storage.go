package gone

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// storage is what looks at a machine have shown.
type storage struct {
	volumes  map[win.VolumeID]bool // that any look has found
	notReady string                // what could hold another one; empty if nothing could
}

// look asks for nothing that needs access to a disk, so one that fails or hangs does not matter.
func (s *storage) look(ctx context.Context, m win.Machine) {
	ids, err := m.VolumeIDs(ctx)
	if err != nil {
		s.notReady = "volumes: " + reason(err)
		return
	}
	if s.volumes == nil {
		s.volumes = map[win.VolumeID]bool{}
	}
	places := make([]place, len(ids))
	s.each(ctx, len(ids), func(ctx context.Context, i int) (err error) {
		places[i], err = locate(ctx, m, ids[i])
		return err
	})
	for _, id := range ids {
		s.volumes[id] = true
	}
	devices, err := m.DiskDevices(ctx)
	if err != nil {
		s.notReady = "disks: " + reason(err)
		return
	}
	numbers := make([]*uint32, len(devices))
	s.each(ctx, len(devices), func(ctx context.Context, i int) (err error) {
		numbers[i], err = checkDisk(ctx, m, devices[i], places)
		return err
	})
	if s.notReady == "" {
		listed := map[uint32]bool{}
		for _, number := range numbers {
			if number != nil {
				listed[*number] = true
			}
		}
		s.notReady = SessionsNotReady(ctx, m, listed)
	}
}

// each notes the first failure.
func (s *storage) each(ctx context.Context, n int, do func(ctx context.Context, i int) error) {
	for _, err := range tasks.Each(ctx, n, objectLimit, do) {
		if err != nil && s.notReady == "" {
			s.notReady = err.Error()
		}
	}
}

// place is where a volume lies: on a partition, or on disks.
type place struct {
	disks     []uint32
	partition uint32
}

// locate finds out where a volume lies. CD drives and RAM disks are on no disk.
func locate(ctx context.Context, m win.Machine, id win.VolumeID) (place, error) {
	number, err := m.DeviceNumber(ctx, id.Device())
	switch {
	case err == nil && number.Type == win.DeviceTypeDisk:
		return place{[]uint32{number.Number}, number.Partition}, nil
	case err == nil:
		return place{}, nil
	case missing(err):
		return place{}, fmt.Errorf("the volume %s comes or goes", id)
	}
	extents, err := m.VolumeExtents(ctx, id)
	switch {
	case errors.Is(err, winerr.Unsupported), winerr.CodeOf(err) == winerr.NotReady: // a drive without a disc; a partition is missed then
		return place{}, nil
	case err != nil:
		return place{}, fmt.Errorf("the volume %s: %s", id, reason(err))
	}
	var at place
	for _, extent := range extents {
		at.disks = append(at.disks, extent.Disk)
	}
	return at, nil
}

// checkDisk fails for a disk that could hold a volume that Windows does not list. number is nil for other devices that
// have the interface of a disk.
func checkDisk(ctx context.Context, m win.Machine, device win.Device, places []place) (number *uint32, err error) {
	id, err := m.DeviceNumber(ctx, device)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the disk %s: %s", device, reason(err))
	case id.Type != win.DeviceTypeDisk:
		return nil, nil
	}
	attributes, err := m.DiskAttributes(ctx, device)
	if err != nil {
		return nil, fmt.Errorf("disk %d: %s", id.Number, reason(err))
	}
	layout, err := m.DriveLayout(ctx, device)
	if err != nil {
		return nil, fmt.Errorf("disk %d: %s", id.Number, reason(err))
	}
	for _, p := range layout.Partitions {
		switch data, dynamic := HoldsVolume(layout.Style, p); {
		case p.Number == 0: // an unused entry
		case attributes.Offline:
			return nil, fmt.Errorf("disk %d is offline", id.Number)
		case data && !holds(places, id.Number, p.Number):
			return nil, fmt.Errorf("partition %d of disk %d has no volume yet", p.Number, id.Number)
		case dynamic && !holds(places, id.Number, 0):
			return nil, fmt.Errorf("disk %d is dynamic and has no volume yet", id.Number)
		}
	}
	return &id.Number, nil
}

// holds reports whether a volume lies on a partition, or with 0 anywhere on a disk.
func holds(places []place, disk, partition uint32) bool {
	for _, at := range places {
		for _, number := range at.disks {
			if number == disk && (partition == 0 || at.partition == partition) {
				return true
			}
		}
	}
	return false
}

// HoldsVolume reports whether a partition holds a volume of its own, or a part of dynamic ones.
// https://learn.microsoft.com/windows/win32/fileio/disk-partition-types
func HoldsVolume(style win.PartitionStyle, p win.Partition) (data, dynamic bool) {
	if style == win.StyleMBR {
		switch p.MBRType {
		case 0x01, 0x04, 0x06, 0x07, 0x0b, 0x0c, 0x0e: // FAT, NTFS, exFAT
			return true, false
		default:
			return false, p.MBRType == 0x42
		}
	}
	return p.Type == win.PartitionBasicData, p.Type == win.PartitionLDMData || p.Type == win.PartitionLDMMetadata
}

// reason is an error without operation and object.
func reason(err error) string { return winerr.Cause(err).Error() }
