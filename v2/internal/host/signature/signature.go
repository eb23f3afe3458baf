// Package signature recognises file systems, encrypted volumes, volume managers and partition
// tables by their magic bytes. Hosts check disks and volumes with it before they write.
//
// Its purpose is not to find out what something is, but not to take it for empty: a few bytes
// at the right offset are enough for a host to keep its hands off.
package signature

import "bytes"

// How much to read for InHead and InTail. Both are whole sectors of any size.
const (
	HeadLength = 256 << 10 // the first label of a ZFS pool ends there
	TailLength = 128 << 10 // the oldest superblock of Linux RAID begins there at the latest
)

// sign is the bytes by which a format is recognised.
type sign struct {
	offset int
	magic  string
	what   string
}

const (
	raid = "\xfc\x4e\x2b\xa9"
	zfs  = "ZFS"
	swap = "Linux swap"
)

// head are the signs at fixed offsets from the beginning. Windows recognises the first ones
// unless they are damaged, and none of the others.
// https://git.kernel.org/pub/scm/utils/util-linux/util-linux.git/tree/libblkid/src/superblocks
var head = []sign{
	{3, "NTFS    ", "NTFS"},
	{3, "ReFS\x00\x00\x00\x00", "ReFS"},
	{3, "-FVE-FS-", "BitLocker"},
	{3, "EXFAT   ", "exFAT"},
	{54, "FAT1", "FAT"},
	{82, "FAT32   ", "FAT32"},
	{0, "LUKS\xba\xbe", "LUKS"},
	{16 << 10, "SKUL\xba\xbe", "LUKS"}, // the second header, which outlives the first
	{0, "XFSB", "XFS"},
	{0, "hsqs", "SquashFS"},
	{0, "sqsh", "SquashFS"},
	{0, "bluestore block device", "Ceph BlueStore"},
	{0, "dmvdo001", "VDO"},
	{0, raid, "Linux RAID"},       // 1.1
	{4 << 10, raid, "Linux RAID"}, // 1.2
	{32, "NXSB", "APFS"},
	{32, "ORCLDISK", "Oracle ASM"},
	{0, "LABELONE", "LVM"}, // in any of the first four sectors
	{512, "LABELONE", "LVM"},
	{1024, "LABELONE", "LVM"},
	{1536, "LABELONE", "LVM"},
	{516, "!Stra0tis", "Stratis"},
	{512, "EFI PART", "a GPT partition table"},
	{4 << 10, "EFI PART", "a GPT partition table"},
	{1024, "H+\x00\x04", "HFS+"},
	{1024, "HX\x00\x05", "HFSX"},
	{1024, "\x10\x20\xf5\xf2", "F2FS"},
	{1024, "\xe2\xe1\xf5\xe0", "EROFS"},
	{1080, "\x53\xef", "ext2, ext3 or ext4"},
	{4 << 10, "SPACEDB ", "Storage Spaces"},
	{4<<10 + 24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", "bcache"},
	{4<<10 + 24, "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef", "bcachefs"},
	{4<<10 - 10, "SWAPSPACE2", swap}, // at the end of the first page, and pages differ
	{8<<10 - 10, "SWAPSPACE2", swap},
	{16<<10 - 10, "SWAPSPACE2", swap},
	{32<<10 - 10, "SWAPSPACE2", swap},
	{64<<10 - 10, "SWAPSPACE2", swap},
	{4<<10 - 10, "SWAP-SPACE", swap},
	{8<<10 + 52, "ReIsEr", "ReiserFS"},
	{32 << 10, "JFS1", "JFS"},
	{32<<10 + 1, "CD001", "ISO 9660"},
	{32<<10 + 1, "BEA01", "UDF"},
	{64 << 10, "ReIsEr", "ReiserFS"}, // 4
	{64<<10 + 52, "ReIsEr", "ReiserFS"},
	{64 << 10, "\x01\x16\x19\x70", "GFS2"},
	{64<<10 + 64, "_BHRfS_M", "Btrfs"},
	{510, "\x55\xaa", "a boot sector or partition table"}, // of any kind
}

var blocks = []sign{
	{0, "\x0c\xb1\xba\x00\x00\x00\x00\x00", zfs}, // in either order of bytes
	{0, "\x00\x00\x00\x00\x00\xba\xb1\x0c", zfs},
}

// tail are the signs in one of the last blocks: RAID 0.90 and 1.0, the second copies of a GPT
// and of an NTFS boot sector.
var tail = append([]sign{
	{0, raid, "Linux RAID"},
	{0, "EFI PART", "a GPT partition table"},
	{3, "NTFS    ", "NTFS"},
}, blocks...)

// InHead names what the beginning of a disk or volume looks like, or returns "". With fewer
// than HeadLength bytes it may miss some.
func InHead(b []byte) string {
	const ring = 128 << 10 // of ZFS, to the end of its label
	if found := match(b, head); found != "" || len(b) < ring {
		return found
	}
	return inBlocks(b[ring:min(len(b), HeadLength)], blocks)
}

// InTail names what the end of a disk or volume looks like, or returns "". It needs the last
// TailLength bytes of the device; with fewer it may miss some.
func InTail(b []byte) string { return inBlocks(b[len(b)%block:], tail) }

// block is the alignment of signs whose offset is not fixed.
const block = 512

// inBlocks looks at the beginning of each block.
func inBlocks(b []byte, signs []sign) string {
	for ; len(b) >= block; b = b[block:] {
		if found := match(b[:block], signs); found != "" {
			return found
		}
	}
	return ""
}

func match(b []byte, signs []sign) string {
	for _, s := range signs {
		if s.offset <= len(b) && bytes.HasPrefix(b[s.offset:], []byte(s.magic)) {
			return s.what
		}
	}
	return ""
}

// Blank reports whether there is nothing but zeros.
func Blank(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
