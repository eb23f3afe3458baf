package lostvolume

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskprobe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Storage is what has been listed of a machine.
type Storage struct {
	Volumes  map[win.VolumeID]bool   // that any list has had; nil if there was none
	offline  map[win.VolumeID]string // the volumes of disks that are offline, each with its disk
	notReady string                  // what could hold any other one; empty if nothing could
}

// Look lists the storage of a machine as it is now.
func Look(ctx context.Context, m win.Machine) *Storage {
	s := &Storage{}
	s.list(ctx, m)
	return s
}

// NotReady says what could hold a volume that Windows does not list; it is empty if nothing could.
func (s *Storage) NotReady(id win.VolumeID) string { return cmp.Or(s.notReady, s.offline[id]) }

// list asks for nothing that needs access to a disk, so one that fails or hangs does not matter, unless it looks raw.
func (s *Storage) list(ctx context.Context, m win.Machine) {
	ids, err := m.VolumeIDs(ctx)
	if err != nil {
		s.notReady = "volumes: " + reason(err)
		return
	}
	if s.Volumes == nil {
		s.Volumes, s.offline = map[win.VolumeID]bool{}, map[win.VolumeID]string{}
	}
	locations := make([]location, len(ids))
	s.each(ctx, len(ids), func(ctx context.Context, i int) (err error) {
		locations[i], err = locate(ctx, m, ids[i])
		return err
	})
	for _, id := range ids {
		s.Volumes[id] = true
	}
	devices, err := m.DiskDevices(ctx)
	if err != nil {
		s.notReady = "disks: " + reason(err)
		return
	}
	// They may hold virtual disks that are detached.
	if hidden, err := m.HiddenDiskDevices(ctx); err != nil {
		s.notReady = "hidden disks: " + reason(err)
	} else if len(hidden) > 0 {
		s.notReady = fmt.Sprintf("the disk %s is hidden, as members of storage pools are", hidden[0])
	}
	disks := make([]checkedDisk, len(devices))
	s.each(ctx, len(devices), func(ctx context.Context, i int) (err error) {
		disks[i], err = checkDisk(ctx, m, devices[i], locations)
		return err
	})
	listed := map[uint32]bool{}
	var raw []uint32
	for _, disk := range disks {
		if disk.known {
			listed[disk.number] = true
			s.noteOffline(disk)
		}
		if disk.raw {
			raw = append(raw, disk.number)
		}
	}
	if s.notReady == "" {
		s.notReady = SessionsNotReady(ctx, m, listed)
	}
	if s.notReady == "" {
		s.each(ctx, len(raw), func(ctx context.Context, i int) error { return checkRaw(ctx, m, raw[i]) })
	}
}

// checkRaw fails for a disk whose table Windows may not have read.
func checkRaw(ctx context.Context, m win.Machine, disk uint32) error {
	const head = 8 << 10 // the first two sectors, where a table begins
	switch data, err := m.ReadDevice(ctx, win.PhysicalDrive(disk), 0, head); {
	case err != nil:
		return fmt.Errorf("disk %d looks raw and cannot be read: %s", disk, reason(err))
	case mayHoldVolume(data):
		return fmt.Errorf("disk %d looks raw, and begins like a partition table or a volume", disk)
	}
	return nil
}

// mayHoldVolume reports whether a disk begins like one with a partition table, or with a file system of Windows and no
// table. All of them but ReFS end their first sector with 55 AA; a disk of LUKS or of a database does not.
func mayHoldVolume(head []byte) bool {
	const sector, large = 512, 4096
	at := func(offset int, magic string) bool {
		return bytes.HasPrefix(head[min(offset, len(head)):], []byte(magic))
	}
	return at(sector-2, "\x55\xaa") || at(sector, "EFI PART") || at(large, "EFI PART") || at(3, "ReFS\x00")
}

// noteOffline notes the volumes of a disk that is offline. If another disk has a volume of that name, this one is a copy,
// whose volume may have got another name.
func (s *Storage) noteOffline(disk checkedDisk) {
	text := fmt.Sprintf("disk %d is offline", disk.number)
	for _, id := range disk.offline {
		if of, found := s.offline[id]; s.Volumes[id] || found && of != text {
			s.notReady = cmp.Or(s.notReady, text)
		}
		s.offline[id] = text
	}
}

// each notes the first failure.
func (s *Storage) each(ctx context.Context, n int, do func(ctx context.Context, i int) error) {
	for _, err := range tasks.Each(ctx, n, objectLimit, do) {
		s.note(err)
	}
}

func (s *Storage) note(err error) {
	if err != nil && s.notReady == "" {
		s.notReady = err.Error()
	}
}

// location is where a volume lies: on a partition, or on disks.
type location struct {
	disks     []uint32
	partition uint32
}

// locate finds out where a volume lies. CD drives and RAM disks are on no disk.
func locate(ctx context.Context, m win.Machine, id win.VolumeID) (location, error) {
	number, err := m.DeviceNumber(ctx, id.Device())
	switch {
	case err == nil && number.Type == win.DeviceTypeDisk:
		return location{[]uint32{number.Number}, number.Partition}, nil
	case err == nil:
		return location{}, nil
	case missing(err):
		return location{}, fmt.Errorf("the volume %s comes or goes", id)
	}
	extents, err := m.VolumeExtents(ctx, id)
	switch {
	case errors.Is(err, winerr.Unsupported), winerr.CodeOf(err) == winerr.NotReady: // a drive without a disc; a partition is missed then
		return location{}, nil
	case err != nil:
		return location{}, fmt.Errorf("the volume %s: %s", id, reason(err))
	}
	var found location
	for _, extent := range extents {
		found.disks = append(found.disks, extent.Disk)
	}
	return found, nil
}

// checkedDisk is a disk that could hold no volume that Windows does not list, but for those that are offline.
type checkedDisk struct {
	known   bool // other devices have the interface of a disk, too
	number  uint32
	raw     bool // Windows shows no partition table
	offline []win.VolumeID
}

// checkDisk fails for a disk that could hold any volume that Windows does not list.
func checkDisk(ctx context.Context, m win.Machine, device win.Device, locations []location) (found checkedDisk, err error) {
	id, err := m.DeviceNumber(ctx, device)
	switch {
	case err != nil:
		return found, fmt.Errorf("the disk %s: %s", device, reason(err))
	case id.Type != win.DeviceTypeDisk:
		return found, nil
	}
	found = checkedDisk{known: true, number: id.Number}
	var layout win.DriveLayout
	attributes, err := m.DiskAttributes(ctx, device)
	if err == nil {
		layout, err = m.DriveLayout(ctx, device)
	}
	if err != nil {
		if descriptor, _ := m.DeviceDescriptor(ctx, device); diskprobe.NoMedium(ctx, m, device, descriptor) {
			return checkedDisk{}, nil
		}
		return found, fmt.Errorf("disk %d: %s", id.Number, reason(err))
	}
	found.raw = layout.Style == win.StyleRaw
	for _, p := range layout.Partitions {
		data, dynamic := HoldsVolume(layout.Style, p)
		named := layout.Style == win.StyleGPT && !dynamic && p.Type != win.PartitionSpaces
		switch {
		case p.Number == 0 && !(attributes.Offline && layout.Style == win.StyleGPT): // an unused entry, which only an MBR has
		case attributes.Offline && named: // by its partition
			found.offline = append(found.offline, win.VolumeID(`\\?\Volume{`+p.ID.String()+`}\`))
		case attributes.Offline: // by the mount manager, or in a database of dynamic disks or of a pool
			return found, fmt.Errorf("disk %d is offline", id.Number)
		case data && !holds(locations, id.Number, p.Number):
			return found, fmt.Errorf("partition %d of disk %d has no volume yet", p.Number, id.Number)
		case dynamic && !holds(locations, id.Number, 0):
			return found, fmt.Errorf("disk %d is dynamic and has no volume yet", id.Number)
		}
	}
	return found, nil
}

// holds reports whether a volume lies on a partition, or with 0 anywhere on a disk.
func holds(locations []location, disk, partition uint32) bool {
	for _, at := range locations {
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
