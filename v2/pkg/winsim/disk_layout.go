package winsim

import (
	"context"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const lateMSR = 100 * time.Millisecond

func (m *disks) DriveLayout(_ context.Context, device win.Device) (win.DriveLayout, error) {
	return read(m.onDisk, device, func(d *disk) (win.DriveLayout, error) {
		if err := d.mediumError(); err != nil {
			return win.DriveLayout{}, err
		}
		if d.LooksRaw <= 0 && d.table.style != win.StyleRaw {
			return d.layout(), nil
		}
		if d.LooksRaw > 0 {
			d.LooksRaw--
		}
		layout := win.DriveLayout{Style: win.StyleRaw}
		if m.storage.RawEntries {
			layout.Partitions = make([]win.Partition, mbrEntries)
		}
		return layout, nil
	})
}

func (d *disk) layout() win.DriveLayout {
	layout := win.DriveLayout{Style: d.table.style}
	for _, p := range d.table.partitions {
		layout.Partitions = append(layout.Partitions, p.Partition)
	}
	switch d.table.style {
	case win.StyleGPT:
		from, to := d.bounds()
		layout.DiskID, layout.MaxPartitions = d.table.id, maxPartitions
		layout.UsableOffset, layout.UsableLength = from, to-from
	case win.StyleMBR:
		// Windows shows the whole table, unused entries too.
		layout.Signature = d.table.signature
		for len(layout.Partitions) < mbrEntries {
			layout.Partitions = append(layout.Partitions, win.Partition{})
		}
	case win.StyleRaw:
	}
	return layout
}

// CreateDisk writes an empty GPT over any partition table. The content of the old partitions
// remains on the disk.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_disk_create_disk
func (m *disks) CreateDisk(_ context.Context, device win.Device, diskID win.GUID) error {
	return m.onMedium(device, func(d *disk) error {
		if err := d.writable(); err != nil {
			return err
		}
		if diskID == (win.GUID{}) {
			diskID = m.newGUID()
		}
		m.setTable(d, table{style: win.StyleGPT, id: diskID, size: d.visibleSize})
		switch m.storage.CreateDiskMSR {
		case MSRAtOnce:
			m.addMSR(d)
		case MSRLate:
			m.after(lateMSR, func() {
				if d.table.style == win.StyleGPT && d.table.id == diskID { // the disk still has that table
					m.addMSR(d)
				}
			})
		case MSRNever, "":
		}
		return nil
	})
}

// addMSR adds a reserved partition at the start of the disk, if it has none and the space is
// free. mu is held.
func (m *disks) addMSR(d *disk) {
	from, _ := d.bounds()
	msr := &partition{Partition: win.Partition{
		Offset: from, Length: msrEnd - from,
		Type: win.PartitionMSR, ID: m.newGUID(), Name: "Microsoft reserved partition",
	}}
	partitions := append(slices.Clone(d.table.partitions), msr)
	if d.misfit(partitions) < 0 && !slices.ContainsFunc(d.table.partitions, func(p *partition) bool { return p.Type == win.PartitionMSR }) {
		d.table.partitions = partitions
		d.table.number()
		d.writeTable()
	}
}

// SetDriveLayout replaces the whole table. Partitions with the same ID and offset keep their
// volumes; volumes of new partitions arrive later.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_disk_set_drive_layout_ex
func (m *disks) SetDriveLayout(_ context.Context, device win.Device, layout win.DriveLayout) error {
	return m.onMedium(device, func(d *disk) error {
		if err := d.writable(); err != nil {
			return err
		}
		if layout.Style != d.table.style || layout.Style == win.StyleRaw {
			return winerr.InvalidParameter
		}
		changed := d.table
		changed.partitions = nil
		ids := map[win.GUID]bool{}
		for _, p := range layout.Partitions {
			if p.Length == 0 && p.Type == (win.GUID{}) && p.MBRType == 0 {
				continue // an unused entry
			}
			if layout.Style == win.StyleGPT && p.ID == (win.GUID{}) {
				p.ID = m.newGUID()
			}
			if ids[p.ID] && layout.Style == win.StyleGPT {
				return winerr.InvalidParameter
			}
			ids[p.ID] = true
			changed.partitions = append(changed.partitions, &partition{Partition: p, volume: d.volumeOf(p)})
		}
		limit := maxPartitions
		if layout.Style == win.StyleMBR {
			limit = mbrEntries
			changed.signature = layout.Signature
		}
		if len(changed.partitions) > limit || d.misfit(changed.partitions) >= 0 {
			return winerr.InvalidParameter
		}
		m.setTable(d, changed)
		return nil
	})
}

// volumeOf returns the volume of the same partition in the current table, or nil.
func (d *disk) volumeOf(same win.Partition) *volume {
	for _, p := range d.table.partitions {
		if p.ID == same.ID && p.Offset == same.Offset {
			return p.volume
		}
	}
	return nil
}

// setTable replaces the table of a disk. Volumes of removed partitions leave, volumes of new
// ones arrive. mu is held.
func (m *disks) setTable(d *disk, changed table) {
	kept := map[*volume]bool{}
	for _, p := range changed.partitions {
		kept[p.volume] = true
	}
	for _, p := range d.table.partitions {
		if p.volume != nil && !kept[p.volume] {
			p.volume.leave()
		}
	}
	if d.table.style == win.StyleGPT {
		d.eraseTable()
	}
	d.table = changed
	d.table.number()
	d.writeTable()
	for _, p := range d.table.partitions {
		switch {
		case p.volume != nil:
			m.volumes.grow(p.volume)
		case p.hasVolume(d.table.style):
			p.volume = m.volumes.add(d, p)
		}
	}
	m.volumes.bringUp(d)
}

// GrowPartition enlarges a partition into the free space behind it.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_disk_grow_partition
func (m *disks) GrowPartition(_ context.Context, device win.Device, number uint32, bytes int64) error {
	return m.onMedium(device, func(d *disk) error {
		if err := d.writable(); err != nil {
			return err
		}
		i := slices.IndexFunc(d.table.partitions, func(p *partition) bool { return p.Number == number })
		if i < 0 || bytes <= 0 || !m.growPartition(d, i, bytes) {
			return winerr.InvalidParameter
		}
		return nil
	})
}

// growPartition makes a partition longer, if there is room behind it. mu is held.
func (m *disks) growPartition(d *disk, index int, bytes int64) bool {
	grown := slices.Clone(d.table.partitions)
	longer := *grown[index]
	longer.Length += bytes
	grown[index] = &longer
	if d.misfit(grown) >= 0 {
		return false
	}
	d.table.partitions = grown
	d.writeTable()
	if longer.volume != nil {
		m.volumes.grow(longer.volume)
	}
	return true
}
