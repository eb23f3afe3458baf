package winsim

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// UpdateDisk makes Windows read the partition table again, and the size too unless the model
// says otherwise. On a disk that has grown, the backup GPT moves to the new end.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_disk_update_properties
func (n storage) UpdateDisk(_ context.Context, device win.Device) error {
	return n.update(device)
}

// UpdateDriveSize makes Windows read the size again.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_disk_update_drive_size
func (n storage) UpdateDriveSize(_ context.Context, device win.Device) error {
	return n.update(device)
}

func (n *Node) update(device win.Device) error {
	d, unlock, err := n.openFor(device)
	if err != nil {
		return err
	}
	defer unlock()
	if d.table.style != win.StyleRaw && !d.hasTable() {
		n.setTable(d, table{style: win.StyleRaw})
	}
	if n.storage.CapacityFollows != CapacityRescan {
		n.noticeSize(d)
	}
	return nil
}

// noticeSize makes Windows see the size of a disk. n.mu is held.
func (n *Node) noticeSize(d *disk) {
	if d.visibleSize != d.size {
		d.visibleSize = d.size
		n.changed()
	}
	if d.table.style != win.StyleGPT || d.table.size == d.visibleSize || n.storage.TableLags {
		return
	}
	n.changed()
	n.after(n.storage.CapacityDelay, tableMove{d})
}

// tableMove moves the backup GPT to the end of a disk that has grown.
type tableMove struct{ disk *disk }

func (m tableMove) run() {
	if d := m.disk; d.table.style == win.StyleGPT && d.table.size != d.visibleSize && d.writable() == nil {
		d.eraseTable()
		d.table.size = d.visibleSize
		d.writeTable()
	}
}
