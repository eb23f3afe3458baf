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

// DiskAttributes tells whether the disk is offline or read-only.
func (n storage) DiskAttributes(_ context.Context, device win.Device) (win.DiskAttributes, error) {
	d, unlock, err := n.openFor(device)
	if err != nil {
		return win.DiskAttributes{}, err
	}
	defer unlock()
	return d.attributes, nil
}

// SetDiskAttributes changes them. Volumes exist only while their disk is online; the partition
// table can always be read.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntdddisk/ni-ntdddisk-ioctl_disk_set_disk_attributes
func (n storage) SetDiskAttributes(_ context.Context, device win.Device, attributes, mask win.DiskAttributes) error {
	d, unlock, err := n.openFor(device)
	if err != nil {
		return err
	}
	defer unlock()
	wanted := d.attributes
	if mask.Offline {
		wanted.Offline = attributes.Offline
	}
	if mask.ReadOnly {
		wanted.ReadOnly = attributes.ReadOnly
	}
	if d.writeProtected && mask.ReadOnly && !attributes.ReadOnly {
		// Which code Windows gives is not documented; it is that of a write to such a disk.
		return winerr.WriteProtect
	}
	if wanted.Offline && !d.attributes.Offline && n.isSystemDisk(d) {
		// The code is not documented; the storage service says "critical disk".
		return winerr.AccessDenied
	}
	n.changed()
	if d.attributes.Offline {
		wanted = n.resolveCollision(d, wanted)
	}
	if d.scsi != nil {
		n.persisted[*d.scsi] = wanted
	}
	wasOffline := d.attributes.Offline
	n.setAttributes(d, wanted)
	if wasOffline && !wanted.Offline && d.offlineAgain > 0 {
		d.offlineAgain--
		n.after(offlineAgainAfter, offlineRelapse{n.Node, d})
	}
	return nil
}

// offlineRelapse takes a disk offline again.
type offlineRelapse struct {
	n    *Node
	disk *disk
}

func (r offlineRelapse) run() {
	again := r.disk.attributes
	again.Offline = true
	r.n.setAttributes(r.disk, again)
}

// setAttributes changes the attributes and updates the volumes. n.mu is held.
func (n *Node) setAttributes(d *disk, attributes win.DiskAttributes) {
	d.attributes = attributes
	if attributes.Offline {
		takeDownVolumes(n.volumesOn(d)...)
	} else {
		n.bringUpVolumes(d, n.storage.VolumeArrival)
	}
}

// arrivalState is the state of a newly attached disk. Windows stores attributes per device
// instance, which depends on the SCSI address, so a disk inherits those of an earlier disk at
// its address.
func (n *Node) arrivalState(d *disk) win.DiskAttributes {
	attributes := n.policyState(d)
	attributes.ReadOnly = attributes.ReadOnly || d.writeProtected
	attributes.Offline = attributes.Offline || (!d.system && n.hasTwin(d))
	return attributes
}

// policyState is the part of it that the SAN policy decides.
func (n *Node) policyState(d *disk) win.DiskAttributes {
	if d.system || d.trusted {
		return d.attributes
	}
	if d.scsi != nil {
		if attributes, ok := n.persisted[*d.scsi]; ok {
			return attributes
		}
	}
	if n.storage.SANPolicy == OfflineAll || (n.storage.SANPolicy == OfflineShared && d.bus.isShared()) {
		return win.DiskAttributes{Offline: true, ReadOnly: true}
	}
	return d.attributes
}

// isSystemDisk reports whether Windows needs the disk.
func (n *Node) isSystemDisk(d *disk) bool {
	for _, v := range n.systemVolumes() {
		if v.on(d) {
			return true
		}
	}
	return d.system
}
