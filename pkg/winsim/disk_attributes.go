package winsim

import (
	"context"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// offlineAgainAfter is when the partition manager processes the arrival of a disk that
// somebody took online before that.
const offlineAgainAfter = 20 * time.Millisecond

// DiskAttributes tells whether the disk is offline or read-only.
func (n *Node) DiskAttributes(ctx context.Context, device win.Device) (win.DiskAttributes, error) {
	d, unlock, err := n.openFor(ctx, "DiskAttributes", device)
	if err != nil {
		return win.DiskAttributes{}, err
	}
	defer unlock()
	return d.attributes, nil
}

// SetDiskAttributes changes them. The volumes of a disk come and go with its being
// online; its partition table can be read in any case.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntdddisk/ni-ntdddisk-ioctl_disk_set_disk_attributes
func (n *Node) SetDiskAttributes(ctx context.Context, device win.Device, attributes, mask win.DiskAttributes) error {
	d, unlock, err := n.openFor(ctx, "SetDiskAttributes", device)
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
	if wanted.Offline && !d.attributes.Offline && n.isSystemDisk(d) {
		// Which code Windows gives is not documented; the storage service says
		// "critical disk".
		return winerr.AccessDenied
	}
	n.changed()
	if d.scsi != nil {
		n.persisted[*d.scsi] = wanted
	}
	wasOffline := d.attributes.Offline
	n.setAttributes(d, wanted)
	if wasOffline && !wanted.Offline && d.offlineAgain > 0 {
		d.offlineAgain--
		n.after(offlineAgainAfter, offlineRelapse{d})
	}
	return nil
}

// offlineRelapse puts a disk offline again.
type offlineRelapse struct{ disk *disk }

func (r offlineRelapse) run(n *Node) {
	again := r.disk.attributes
	again.Offline = true
	n.setAttributes(r.disk, again)
}

// setAttributes lets the volumes follow. n.mu is held.
func (n *Node) setAttributes(d *disk, attributes win.DiskAttributes) {
	d.attributes = attributes
	if attributes.Offline {
		takeDownVolumes(n.volumesOn(d)...)
	} else {
		n.bringUpVolumes(d, n.storage.VolumeArrival)
	}
}

// arrivalState is the state of a disk that Windows has not seen before, or has seen at the
// same place: the attributes are kept per device instance, which is made of the address,
// so that another disk can inherit them.
func (n *Node) arrivalState(d *disk) win.DiskAttributes {
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

// isSystemDisk reports whether Windows itself needs the disk.
func (n *Node) isSystemDisk(d *disk) bool {
	for _, v := range n.systemVolumes() {
		if v.on(d) {
			return true
		}
	}
	return d.system
}
