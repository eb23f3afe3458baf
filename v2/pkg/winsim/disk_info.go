package winsim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// DiskInfo describes a disk as Describe does.
func (n *Node) DiskInfo(number uint32) (info Disk, err error) {
	err = n.disks.withDisk("describe disk", number, func(d *disk) error {
		info = n.describeDisk(d, false)
		return nil
	})
	return info, err
}

func (t table) kind() Layout {
	switch {
	case t.style == win.StyleGPT:
		return LayoutGPT
	case t.style == win.StyleRaw:
		return LayoutRaw
	case len(t.partitions) == 1 && t.partitions[0].Offset == 0:
		return LayoutSuperfloppy
	default:
		return LayoutMBR
	}
}

// describe returns the disk without volumes, content and events.
func (d *disk) describe() Disk {
	m := d.Disk
	m.Size, m.SectorSize, m.Hanging, m.Layout = Size(d.size), uint32(d.sector), d.hanging != nil, d.table.kind()
	m.Offline, m.ReadOnly, m.Visible = d.attributes.Offline, d.attributes.ReadOnly, Size(d.visibleSize)
	if m.SCSI != nil {
		scsi := *m.SCSI
		m.SCSI = &scsi
	}
	switch {
	case d.table.style == win.StyleGPT:
		m.ID = d.table.id.String()
	case d.table.signature != 0:
		m.ID = fmt.Sprintf("%08x", d.table.signature)
	default:
		m.ID = ""
	}
	for _, p := range d.table.partitions {
		m.Partitions = append(m.Partitions, p.describe(d.table.style))
	}
	return m
}

// describe returns the partition without its volume.
func (p *partition) describe(style win.PartitionStyle) Partition {
	m := Partition{Type: p.Type.String(), Offset: Size(p.Offset), Size: Size(p.Length), Attributes: p.Attributes, Name: p.Name, Boot: p.MBRBoot}
	if p.ID != (win.GUID{}) {
		m.ID = p.ID.String()
	}
	if style != win.StyleGPT {
		m.Type = fmt.Sprintf("%#02x", p.MBRType)
	}
	for name, id := range partitionTypes {
		if style == win.StyleGPT && id == p.Type {
			m.Type = name
		}
	}
	return m
}

// DiskFingerprint is a hash of what is on the disk: partition table, bytes, files, labels and access lists.
func (n *Node) DiskFingerprint(number uint32) (fingerprint string, err error) {
	err = n.disks.withDisk("read disk", number, func(d *disk) error {
		fingerprint = d.fingerprint()
		return nil
	})
	return fingerprint, err
}

func (d *disk) fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "%+v\n", d.layout())
	d.content.fill(h)
	for _, offset := range slices.Sorted(maps.Keys(d.fileSystems)) {
		fs := d.fileSystems[offset]
		fmt.Fprintf(h, "%d %s %d %d %d %q %s\n", offset, fs.kind, fs.sectors, fs.used, fs.cluster, fs.label, fs.rootAccess)
		fs.refreshAll()
		var tree strings.Builder
		fs.root.describe(&tree, "")
		h.Write([]byte(tree.String()))
	}
	return hex.EncodeToString(h.Sum(nil))
}
