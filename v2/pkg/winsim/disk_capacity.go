package winsim

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// UpdateDisk makes Windows read the partition table again, and the size too unless the model
// says otherwise. On a disk that has grown, the backup GPT moves to the new end.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_disk_update_properties
func (m *disks) UpdateDisk(_ context.Context, device win.Device) error {
	return m.onMedium(device, func(d *disk) error {
		if d.table.style != win.StyleRaw && !d.hasTable() {
			m.setTable(d, table{style: win.StyleRaw})
		}
		if m.storage.CapacityFollows != CapacityRescan {
			m.noticeSize(d)
		}
		return nil
	})
}

// UpdateDriveSize makes Windows read the size again.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_disk_update_drive_size
func (m *disks) UpdateDriveSize(ctx context.Context, device win.Device) error {
	return m.UpdateDisk(ctx, device)
}

// noticeSize makes Windows see the size of a disk. mu is held.
func (m *disks) noticeSize(d *disk) {
	d.visibleSize = d.size
	if d.table.style != win.StyleGPT || d.table.size == d.visibleSize || m.storage.TableLags {
		return
	}
	m.after(m.storage.CapacityDelay, d.moveTable)
}

// moveTable moves the backup GPT to the end of a disk that has grown.
func (d *disk) moveTable() {
	if d.table.style == win.StyleGPT && d.table.size != d.visibleSize && d.writable() == nil {
		d.eraseTable()
		d.table.size = d.visibleSize
		d.writeTable()
	}
}
