package winsim

import (
	"context"
	"regexp"
	"strconv"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// The calls below take disks and volumes.

// DeviceNumber returns the disk and partition of a device. For a volume that is not a single
// partition, the volume manager does not support the request.
func (m *volumes) DeviceNumber(_ context.Context, device win.Device) (win.DeviceNumber, error) {
	if !isVolume(device) {
		return read(m.disks.onDisk, device, func(d *disk) (win.DeviceNumber, error) {
			return win.DeviceNumber{Type: win.DeviceTypeDisk, Number: d.Number}, nil
		})
	}
	return read(m.onVolume, device, func(v *volume) (win.DeviceNumber, error) {
		if v.CDROM {
			return win.DeviceNumber{Type: win.DeviceTypeCDROM, Partition: 0xffffffff}, nil
		}
		p := v.partition()
		if p == nil {
			return win.DeviceNumber{}, winerr.InvalidFunction
		}
		return win.DeviceNumber{Type: win.DeviceTypeDisk, Number: v.extents[0].disk.Number, Partition: p.Number}, nil
	})
}

// ReadDevice reads the bytes of a disk or volume. They do not include file contents.
func (m *volumes) ReadDevice(_ context.Context, device win.Device, offset int64, length int) (b []byte, err error) {
	b = make([]byte, length)
	if !isVolume(device) {
		return b, m.disks.onMedium(device, func(d *disk) error { return d.read(0, d.visibleSize, offset, b) })
	}
	return b, m.onContent(device, func(v *volume) error {
		first := v.extents[0]
		if v.offline {
			return winerr.NotReady
		}
		return first.disk.read(first.offset, first.length, offset, b)
	})
}

// isVolume reports whether a device is a volume, not a disk.
func isVolume(device win.Device) bool {
	_, ok := win.ParseVolumeID(string(device))
	return ok || partitionDevice.MatchString(string(device))
}

var partitionDevice = regexp.MustCompile(`^(?i)\\\\\?\\GLOBALROOT\\Device\\Harddisk(\d{1,9})\\Partition(\d{1,9})$`)

// volumeAt finds a volume by its ID, or by disk and partition number. mu is held.
func (m *volumes) volumeAt(device win.Device) *volume {
	numbers := partitionDevice.FindStringSubmatch(string(device))
	if numbers == nil {
		return m.volumeByID(string(device))
	}
	disk, _ := strconv.ParseUint(numbers[1], 10, 32) // at most nine digits
	partition, _ := strconv.ParseUint(numbers[2], 10, 32)
	if d := m.disks.byNumber[uint32(disk)]; d != nil && partition > 0 && partition <= uint64(len(d.table.partitions)) {
		return d.table.partitions[partition-1].volume
	}
	return nil
}

// onVolume runs a call that the volume manager answers, see fromMemory.
func (m *volumes) onVolume(device win.Device, do func(*volume) error) error {
	defer m.lock()()
	v := m.volumeAt(device)
	if err := v.openError(); err != nil {
		return err
	}
	return do(v)
}

// onContent runs a call that reads or writes the volume.
func (m *volumes) onContent(device win.Device, do func(*volume) error) error {
	return m.onVolume(device, func(v *volume) error {
		if err := v.contentError(); err != nil {
			return err
		}
		return do(v)
	})
}
