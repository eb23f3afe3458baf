package winsim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// sparse is the content of a disk. Blocks of zeros do not exist, so disks with the same content
// are equal.
type sparse map[int64][]byte

const blockSize = 4096

func (s sparse) read(offset int64, b []byte) {
	for done := 0; done < len(b); {
		block, from := (offset+int64(done))/blockSize, (offset+int64(done))%blockSize
		size := min(len(b)-done, blockSize-int(from))
		if data, ok := s[block]; ok {
			copy(b[done:done+size], data[from:])
		} else {
			clear(b[done : done+size])
		}
		done += size
	}
}

func (s sparse) write(offset int64, b []byte) {
	for len(b) > 0 {
		block, from := offset/blockSize, offset%blockSize
		size := min(len(b), blockSize-int(from))
		data, ok := s[block]
		if zero := isZero(b[:size]); ok || !zero {
			if !ok {
				data = make([]byte, blockSize)
				s[block] = data
			}
			copy(data[from:], b[:size])
			if zero && isZero(data) {
				delete(s, block)
			}
		}
		offset, b = offset+int64(size), b[size:]
	}
}

// isZero reports whether b, at most a block, is all zeros.
func isZero(b []byte) bool { return bytes.Equal(b, zeros[:len(b)]) }

var zeros [blockSize]byte

// WriteDisk writes to a disk past its volumes, as a program that wipes disks. File systems that begin there are lost.
// Windows sees at the next UpdateDisk that a partition table is gone.
func (n *Node) WriteDisk(number uint32, offset int64, b []byte) error {
	return n.disks.withDisk("write to disk", number, func(d *disk) error {
		if err := d.writable(); err != nil {
			return err
		}
		size := int64(len(b))
		if offset < 0 || offset > d.visibleSize-size || offset%d.sector != 0 || size%d.sector != 0 {
			return winerr.InvalidParameter
		}
		d.content.write(offset, b)
		maps.DeleteFunc(d.fileSystems, func(begin int64, _ *fileSystem) bool { return begin >= offset && begin < offset+size })
		return nil
	})
}

// hasTable reports whether one of the places of a partition table still has one.
func (d *disk) hasTable() bool {
	sector := make([]byte, d.sector)
	d.content.read(0, sector)
	if string(sector[bootAt:bootAt+len(bootSignature)]) == bootSignature {
		return true
	}
	for _, offset := range []int64{d.sector, alignDown(d.table.size, d.sector) - d.sector} {
		d.content.read(offset, sector)
		if bytes.HasPrefix(sector, []byte(gptSignature)) {
			return true
		}
	}
	return false
}

// fill writes to a hash. Sums of the blocks are much quicker than the blocks.
func (s sparse) fill(h hash.Hash) {
	for _, block := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintln(h, block, crc32.Checksum(s[block], castagnoli))
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (b Bytes) put(content sparse, base, length int64) *ModelError {
	value, err := textOrHex(b.Text, b.Hex)
	if err != nil {
		return err
	}
	at := int64(b.Offset)
	if at < 0 {
		at += length
	}
	if at < 0 || at > length-int64(len(value)) {
		return problem("offset", "%d bytes at offset %s do not fit", len(value), b.Offset)
	}
	content.write(base+at, value)
	return nil
}

// The signatures of file systems.
const (
	bootSignature = "\x55\xaa"
	bootAt        = 510 // for every sector size
)

// bootSector is the first sector of a file system, with the fields that programs read; nil if
// it has none.
func bootSector(kind FileSystem, locked bool, sector int64) []byte {
	boot := make([]byte, sector)
	switch {
	case locked:
		copy(boot, "\xeb\x58\x90-FVE-FS-")
	case kind == NTFS:
		copy(boot, "\xeb\x52\x90NTFS    ")
	case kind == ReFS:
		copy(boot, "\x00\x00\x00ReFS\x00\x00\x00\x00")
	case kind == FAT32:
		copy(boot, "\xeb\x58\x90MSDOS5.0")
		copy(boot[82:], "FAT32   ")
	default:
		return nil
	}
	binary.LittleEndian.PutUint16(boot[11:], uint16(sector))
	copy(boot[bootAt:], bootSignature)
	return boot
}
