package winsim

import (
	"context"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// offlineAgainAfter is the delay after which the partition manager processes the arrival of a
// disk and takes it offline again.
const offlineAgainAfter = 20 * time.Millisecond

func (m *disks) DiskAttributes(_ context.Context, device win.Device) (win.DiskAttributes, error) {
	return read(m.onDisk, device, func(d *disk) (win.DiskAttributes, error) {
		return d.attributes, nil
	})
}

// SetDiskAttributes changes them. Volumes exist only while their disk is online; the partition
// table can always be read.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntdddisk/ni-ntdddisk-ioctl_disk_set_disk_attributes
func (m *disks) SetDiskAttributes(_ context.Context, device win.Device, attributes, mask win.DiskAttributes) error {
	return m.onDisk(device, func(d *disk) error { return m.change(d, attributes, mask) })
}

// TakeUnusedOffline locks the volumes first: that fails while a file on one is open.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-fsctl_lock_volume
func (m *disks) TakeUnusedOffline(_ context.Context, device win.Device, volumes []win.VolumeID) error {
	return m.onDisk(device, func(d *disk) error {
		for _, id := range volumes {
			v := m.volumes.volumeAt(id.Device())
			if err := v.contentError(); err != nil {
				return err
			}
			if fs := v.fileSystem(); fs != nil && fs.root.anyInUse() {
				return winerr.AccessDenied
			}
		}
		offline := win.DiskAttributes{Offline: true}
		return m.change(d, offline, offline)
	})
}

// change is SetDiskAttributes. mu is held.
func (m *disks) change(d *disk, attributes, mask win.DiskAttributes) error {
	wanted := d.attributes
	if mask.Offline {
		wanted.Offline = attributes.Offline
	}
	if mask.ReadOnly {
		wanted.ReadOnly = attributes.ReadOnly
	}
	if d.WriteProtected && mask.ReadOnly && !attributes.ReadOnly {
		// Which code Windows gives is not documented; it is that of a write to such a disk.
		return winerr.WriteProtect
	}
	if wanted.Offline && !d.attributes.Offline && m.isSystemDisk(d) {
		// The code is not documented; the storage service says "critical disk".
		return winerr.AccessDenied
	}
	if d.attributes.Offline {
		wanted = m.resolveCollision(d, wanted)
	}
	if d.SCSI != nil {
		m.persisted[*d.SCSI] = wanted
	}
	wasOffline := d.attributes.Offline
	m.setAttributes(d, wanted)
	if wasOffline && !wanted.Offline && d.relapses > 0 {
		d.relapses--
		m.after(offlineAgainAfter, func() {
			m.setAttributes(d, win.DiskAttributes{Offline: true, ReadOnly: d.attributes.ReadOnly})
		})
	}
	return nil
}

// setAttributes changes the attributes and updates the volumes. mu is held.
func (m *disks) setAttributes(d *disk, attributes win.DiskAttributes) {
	d.attributes = attributes
	if attributes.Offline {
		m.volumes.takeDown(d)
	} else {
		m.volumes.bringUp(d)
	}
}

// arrivalState is the state of a newly attached disk. Windows stores attributes per device
// instance, which depends on the SCSI address, so a disk inherits those of an earlier disk at
// its address.
func (m *disks) arrivalState(d *disk) win.DiskAttributes {
	attributes := m.policyState(d)
	attributes.ReadOnly = attributes.ReadOnly || d.WriteProtected
	attributes.Offline = attributes.Offline || (!d.System && m.hasTwin(d))
	return attributes
}

// policyState is the part of it that the SAN policy decides.
func (m *disks) policyState(d *disk) win.DiskAttributes {
	if d.System || d.Online {
		return d.attributes
	}
	if d.SCSI != nil {
		if attributes, ok := m.persisted[*d.SCSI]; ok {
			return attributes
		}
	}
	if m.storage.SANPolicy == OfflineAll || (m.storage.SANPolicy == OfflineShared && d.Bus.isShared()) {
		return win.DiskAttributes{Offline: true, ReadOnly: true}
	}
	return d.attributes
}

func (m *disks) isSystemDisk(d *disk) bool {
	return d.System || m.volumes.needs(d)
}

// online reports whether Windows shows the volumes of a disk.
func (m *disks) online(d *disk) bool {
	return d.nameless || (m.shows(d) && !d.attributes.Offline)
}
