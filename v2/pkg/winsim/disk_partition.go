package winsim

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

const (
	mebibyte = int64(MiB)
	// msrEnd is the end of the reserved partition of Windows 10, Server 2016 and later. It
	// starts at the start of the usable space.
	msrEnd = 16 * mebibyte
	// maxPartitions is the size of a GPT, in entries of 128 bytes.
	maxPartitions = 128
)

func alignUp(x, to int64) int64   { return (x + to - 1) / to * to }
func alignDown(x, to int64) int64 { return x / to * to }

// gptBounds is the part of a GPT disk for partitions. Before it are the protective MBR, the header
// and the entries; after it the entries and the header again: 34 and 33 sectors of 512 bytes,
// or 6 and 5 of 4096.
func gptBounds(size, sector int64) (from, to int64) {
	entries := alignUp(maxPartitions*128, sector)
	return 2*sector + entries, alignDown(size, sector) - entries - sector
}

// bounds is the part of the disk for partitions of its table.
func (d *disk) bounds() (from, to int64) {
	if d.table.style == win.StyleGPT {
		return gptBounds(d.table.size, d.sector)
	}
	// An MBR counts sectors with 32 bits.
	return d.sector, alignDown(min(d.visibleSize, d.sector<<32), d.sector)
}

// misfit returns the index of the first partition that the disk has no room for, or -1.
func (d *disk) misfit(partitions []*partition) int {
	from, to := d.bounds()
	for i, p := range partitions {
		if p.Offset < from || p.Length <= 0 || p.Offset > to-p.Length || p.Offset%d.sector != 0 || p.Length%d.sector != 0 {
			return i
		}
		for _, other := range partitions[:i] {
			if p.Offset < other.End() && other.Offset < p.End() {
				return i
			}
		}
	}
	return -1
}

// number sorts and numbers the partitions. Numbers change with the table, so tests catch code
// that relies on an old number.
func (t *table) number() {
	slices.SortFunc(t.partitions, func(a, b *partition) int { return cmp.Compare(a.Offset, b.Offset) })
	for i, p := range t.partitions {
		p.Number = uint32(i) + 1
	}
}

func (d *disk) partition(m Disk) *ModelError {
	limit := mbrEntries
	switch {
	case m.Layout == LayoutGPT:
		limit, d.table = maxPartitions, table{style: win.StyleGPT, id: diskGUID(d.Number), size: d.size}
	case m.Layout == LayoutMBR:
		d.table = table{style: win.StyleMBR, signature: 0xd0000000 + d.Number}
	case m.Layout == LayoutSuperfloppy:
		d.table = table{style: win.StyleMBR}
	case len(m.Partitions) > 0:
		return problem("partitions", "a raw disk has no partitions; set layout")
	default:
		return nil
	}
	floppy := m.Layout == LayoutSuperfloppy
	if floppy && (len(m.Partitions) != 1 || m.Partitions[0].Volume == nil || m.Partitions[0].Offset != 0 || m.Partitions[0].Size != 0) {
		return problem("partitions", "a superfloppy needs exactly one partition, with a volume and without offset and size")
	}
	if len(m.Partitions) > limit {
		return problem("partitions", "the table has room for %d partitions", limit)
	}
	if err := d.table.setID(m.ID); err != nil {
		return err
	}
	at := int64(0)
	for i, p := range m.Partitions {
		if floppy {
			p.Size = cmp.Or(p.Size, m.Size)
		}
		built, err := p.build(d, i, at, floppy)
		if err != nil {
			return err.at("partitions", i)
		}
		d.table.partitions = append(d.table.partitions, built)
		if !floppy && (d.misfit(d.table.partitions) >= 0 || built.Offset < at) {
			return problem("offset", "%d bytes at offset %d overlap another partition, do not fit on the disk, are out of order, or are not whole sectors", built.Length, built.Offset).at("partitions", i)
		}
		if err := d.addVolume(built, p); err != nil {
			return err.at("partitions", i)
		}
		at = built.End()
	}
	d.table.number()
	if !floppy {
		d.writeTable()
	}
	return nil
}

// setID gives a table the id of the model, if it has one.
func (t *table) setID(text string) *ModelError {
	var err error
	switch {
	case text == "":
	case t.style == win.StyleGPT:
		if t.id, err = win.ParseGUID(text); err != nil {
			return problem("id", "%q is not a GUID", text)
		}
	default:
		signature, err := strconv.ParseUint(text, 16, 32)
		if err != nil || len(text) != 8 {
			return problem("id", "%q is not a signature of eight hexadecimal digits", text)
		}
		t.signature = uint32(signature)
	}
	return nil
}

// build returns a partition of the model. The previous partition ends at at. An exact one has no defaults.
func (m Partition) build(d *disk, index int, at int64, exact bool) (*partition, *ModelError) {
	p := &partition{Partition: win.Partition{Offset: int64(m.Offset), Length: int64(m.Size), Attributes: m.Attributes, Name: m.Name, MBRBoot: m.Boot}}
	err := m.setType(p, d.table.style, exact)
	if err == nil && d.table.style == win.StyleGPT && (m.ID != "" || !exact) {
		err = m.setID(p, d.Number, index)
	}
	if err != nil || exact {
		return p, err
	}
	from, to := d.bounds()
	msr := d.table.style == win.StyleGPT && p.Type == win.PartitionMSR
	if p.Offset == 0 {
		p.Offset = alignUp(max(at, from), mebibyte)
		if msr && at == 0 {
			p.Offset = from
		}
	}
	if p.Length == 0 {
		p.Length = alignDown(to-p.Offset, mebibyte)
		if msr {
			p.Length = max(msrEnd-p.Offset, mebibyte)
		}
	}
	return p, nil
}

func (m Partition) setID(p *partition, disk uint32, index int) *ModelError {
	p.ID = partitionGUID(disk, index)
	field, text := "id", m.ID
	if text == "" && m.Volume != nil {
		field, text = "volume.id", m.Volume.ID
	}
	if text == "" {
		return nil
	}
	id, err := win.ParseGUID(normalGUID(text))
	if err != nil {
		return problem(field, "%q is not a GUID", text)
	}
	p.ID = id
	return nil
}

func (m Partition) setType(p *partition, style win.PartitionStyle, exact bool) *ModelError {
	if style != win.StyleGPT {
		number, err := strconv.ParseUint(cmp.Or(m.Type, "0x07"), 0, 8)
		if err != nil || number == 0 && !exact {
			return problem("type", "%q is not an MBR partition type such as 0x07", m.Type)
		}
		p.MBRType = uint8(number)
		return nil
	}
	known, ok := partitionTypes[cmp.Or(m.Type, "basic")]
	if !ok {
		var err error
		if known, err = win.ParseGUID(m.Type); err != nil || known == (win.GUID{}) && !exact {
			return problem("type", "%q is not a GUID or one of basic, msr, efi, recovery, ldm-metadata, ldm-data, linux", m.Type)
		}
	}
	p.Type = known
	return nil
}

// hasVolume reports whether Windows creates a volume for the partition. It creates none for
// reserved, dynamic and foreign partitions, nor for those with the hidden attribute.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-partition_information_gpt
func (p *partition) hasVolume(style win.PartitionStyle) bool {
	const hidden = 0x4000000000000000
	if style == win.StyleMBR {
		return p.MBRType == mbrBasic || p.MBRType == 0x06 || p.MBRType == 0x0b || p.MBRType == 0x0c || p.MBRType == 0x0e || p.MBRType == 0x01 || p.MBRType == 0x04
	}
	switch p.Type {
	case win.PartitionBasicData, win.PartitionEFI, win.PartitionRecovery:
		return p.Attributes&hidden == 0
	default:
		return false
	}
}

// diskGUID and partitionGUID are predictable IDs for tests.
func diskGUID(disk uint32) win.GUID {
	return win.MustGUID(fmt.Sprintf("d%07x-0000-4000-8000-d15c00000000", disk&0xfffffff))
}

func partitionGUID(disk uint32, index int) win.GUID {
	return win.MustGUID(fmt.Sprintf("d%07x-0000-4000-8000-%012x", disk&0xfffffff, index+1))
}

// mbrVolumeGUID is the GUID of a volume on an MBR disk in Windows 10 and later: the disk's
// signature and the partition's offset in little-endian order.
func mbrVolumeGUID(signature uint32, offset int64) win.GUID {
	var id win.GUID
	binary.BigEndian.PutUint32(id[:], signature)
	binary.LittleEndian.PutUint64(id[8:], uint64(offset)&math.MaxInt64)
	return id
}
