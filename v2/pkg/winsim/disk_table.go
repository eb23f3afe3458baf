package winsim

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"unicode/utf16"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

const (
	mbrBasic      = 0x07 // NTFS and other installable file systems
	mbrProtective = 0xee
	mbrEntries    = 4

	gptSignature = "EFI PART"
)

// writeTable writes the partition table to the sectors of the disk, as Windows does.
func (d *disk) writeTable() {
	switch d.table.style {
	case win.StyleMBR:
		d.writeMBR(d.table.signature, d.table.partitions)
	case win.StyleGPT:
		all := &partition{Partition: win.Partition{Offset: d.sector, Length: d.table.size - d.sector, MBRType: mbrProtective}}
		d.writeMBR(0, []*partition{all})
		d.writeGPT()
	case win.StyleRaw:
	}
}

func (d *disk) eraseTable() {
	from, to := gptBounds(d.table.size, d.sector)
	d.content.write(0, make([]byte, from))
	d.content.write(to, make([]byte, d.table.size-to))
}

func (d *disk) writeMBR(signature uint32, partitions []*partition) {
	mbr := make([]byte, d.sector)
	binary.LittleEndian.PutUint32(mbr[440:], signature)
	for i, p := range partitions {
		entry := mbr[446+16*i:]
		if p.MBRBoot {
			entry[0] = 0x80
		}
		entry[4] = p.MBRType
		binary.LittleEndian.PutUint32(entry[8:], clamp32(p.Offset/d.sector))
		binary.LittleEndian.PutUint32(entry[12:], clamp32(p.Length/d.sector))
	}
	copy(mbr[bootAt:], bootSignature)
	d.content.write(0, mbr)
}

func clamp32(x int64) uint32 { return uint32(min(x, 1<<32-1)) }

// writeGPT writes both copies of a GPT.
// https://uefi.org/specs/UEFI/2.10/05_GUID_Partition_Table_Format.html
func (d *disk) writeGPT() {
	entries := make([]byte, alignUp(maxPartitions*128, d.sector))
	for i, p := range d.table.partitions {
		entry := entries[128*i:]
		winlayout.EncodeGUID(entry, p.Type)
		winlayout.EncodeGUID(entry[16:], p.ID)
		binary.LittleEndian.PutUint64(entry[32:], uint64(p.Offset/d.sector))
		binary.LittleEndian.PutUint64(entry[40:], uint64(p.End()/d.sector-1))
		binary.LittleEndian.PutUint64(entry[48:], p.Attributes)
		for at, unit := range utf16.Encode([]rune(p.Name)) {
			if at < 36 {
				binary.LittleEndian.PutUint16(entry[56+2*at:], unit)
			}
		}
	}
	first, end := gptBounds(d.table.size, d.sector)
	last := alignDown(d.table.size, d.sector) - d.sector
	d.content.write(2*d.sector, entries)
	d.content.write(end, entries)
	d.content.write(d.sector, d.headerGPT(d.sector, last, 2*d.sector, first, end, entries))
	d.content.write(last, d.headerGPT(last, d.sector, end, first, end, entries))
}

func (d *disk) headerGPT(here, other, entriesAt, first, end int64, entries []byte) []byte {
	sectors := func(offset int64) uint64 { return uint64(offset / d.sector) }
	const headerSize = 92
	var id [16]byte
	winlayout.EncodeGUID(id[:], d.table.id)
	var b bytes.Buffer
	b.WriteString(gptSignature)
	for _, field := range []any{
		uint32(0x00010000), uint32(headerSize), uint32(0), uint32(0),
		sectors(here), sectors(other), sectors(first), sectors(end) - 1,
		id,
		sectors(entriesAt), uint32(maxPartitions), uint32(128), crc32.ChecksumIEEE(entries[:maxPartitions*128]),
	} {
		_ = binary.Write(&b, binary.LittleEndian, field) // into memory
	}
	header := make([]byte, d.sector)
	copy(header, b.Bytes())
	binary.LittleEndian.PutUint32(header[16:], crc32.ChecksumIEEE(header[:headerSize]))
	return header
}
