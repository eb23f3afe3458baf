package winsim

import (
	"context"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// ResizePartition is MSFT_Partition.Resize: the storage service extends the table to the end of
// the disk, and then the partition and its file system.
// https://learn.microsoft.com/windows-hardware/drivers/storage/resize-msft-partition
func (m *disks) ResizePartition(_ context.Context, number uint32, id win.GUID, size int64) error {
	defer m.lock()()
	d := m.byNumber[number]
	if d == nil {
		return winerr.WMINotFound
	}
	i := slices.IndexFunc(d.table.partitions, func(p *partition) bool { return p.ID == id })
	switch {
	case i < 0:
		return winerr.WMINotFound
	case d.Dying:
		return winerr.StorageIOError
	case d.attributes.Offline:
		return winerr.StorageDiskOffline
	case d.writable() != nil:
		return winerr.StorageDiskReadOnly
	case size <= d.table.partitions[i].Length:
		return winerr.StorageInvalidParameter
	}
	d.visibleSize = d.size
	d.moveTable()
	if !m.growPartition(d, i, size-d.table.partitions[i].Length) {
		return winerr.StorageNoSpace
	}
	if v := d.table.partitions[i].volume; v != nil {
		if fs := v.fileSystem(); fs != nil && (fs.kind == NTFS || fs.kind == ReFS) {
			fs.sectors = alignDown(v.length(), fs.cluster) / fs.sector
			v.writeBoot(fs.kind, false, fs.sector)
		}
	}
	return nil
}
