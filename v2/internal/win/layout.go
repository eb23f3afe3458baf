package win

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// GUID is a Windows GUID in the order in which it is written, most significant byte
// first; winlayout puts it into the order of memory.
type GUID [16]byte

// NewGUID returns a random GUID (version 4).
func NewGUID() GUID {
	var g GUID
	_, _ = rand.Read(g[:]) // never fails
	g[6] = g[6]&0x0f | 0x40
	g[8] = g[8]&0x3f | 0x80
	return g
}

// ParseGUID reads a GUID with or without braces, in any case.
func ParseGUID(text string) (GUID, error) {
	var g GUID
	plain := strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}")
	if len(plain) != 36 || plain[8] != '-' || plain[13] != '-' || plain[18] != '-' || plain[23] != '-' {
		return g, fmt.Errorf("%q is not a GUID", text)
	}
	digits := plain[:8] + plain[9:13] + plain[14:18] + plain[19:23] + plain[24:]
	if _, err := hex.Decode(g[:], []byte(digits)); err != nil {
		return g, fmt.Errorf("%q is not a GUID", text)
	}
	return g, nil
}

// MustGUID is ParseGUID for constants.
func MustGUID(text string) GUID {
	g, err := ParseGUID(text)
	if err != nil {
		panic(err)
	}
	return g
}

// String returns the GUID in lower case without braces.
func (g GUID) String() string {
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", binary.BigEndian.Uint32(g[:]), g[4:6], g[6:8], g[8:10], g[10:])
}

// MarshalText is String, for encoders such as JSON.
func (g GUID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText is ParseGUID.
func (g *GUID) UnmarshalText(text []byte) (err error) {
	*g, err = ParseGUID(string(text))
	return err
}

// Types of GPT partitions.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-partition_information_gpt
var (
	PartitionBasicData   = MustGUID("ebd0a0a2-b9e5-4433-87c0-68b6b72699c7")
	PartitionMSR         = MustGUID("e3c9e316-0b5c-4db8-817d-f92df00215ae")
	PartitionEFI         = MustGUID("c12a7328-f81f-11d2-ba4b-00a0c93ec93b")
	PartitionLDMMetadata = MustGUID("5808c8aa-7e8f-42e0-85d2-e1e90434cfb3")
	PartitionLDMData     = MustGUID("af9b60a0-1431-4f62-bc68-3311714a69ad")
	PartitionRecovery    = MustGUID("de94bba4-06d1-4d40-a16a-bfd50179d6ac")
	PartitionSpaces      = MustGUID("e75caf8f-f680-4cee-afa3-b001e56efc2d") // of a storage pool
)

// PartitionStyle is PARTITION_STYLE of winioctl.h. WMI has other numbers.
type PartitionStyle uint32

// The partition styles.
const (
	StyleMBR PartitionStyle = 0
	StyleGPT PartitionStyle = 1
	StyleRaw PartitionStyle = 2
)

func (s PartitionStyle) String() string {
	switch s {
	case StyleMBR:
		return "MBR"
	case StyleGPT:
		return "GPT"
	case StyleRaw:
		return "RAW"
	default:
		return fmt.Sprintf("style %d", uint32(s))
	}
}

// DriveLayout is DRIVE_LAYOUT_INFORMATION_EX: the partition table of a disk.
type DriveLayout struct {
	Style PartitionStyle

	// Of GPT disks.
	DiskID        GUID
	UsableOffset  int64 // first byte a partition may use
	UsableLength  int64
	MaxPartitions uint32

	// Of MBR disks.
	Signature uint32

	Partitions []Partition
}

// UsableEnd is the first byte that a partition may not use.
func (l DriveLayout) UsableEnd() int64 { return l.UsableOffset + l.UsableLength }

// Mountable returns the partitions of which Windows always makes volumes once the disk is
// online: basic data that is not hidden, and the MBR types of FAT, NTFS and exFAT. Windows
// makes volumes of some other partitions, too.
// https://learn.microsoft.com/windows-hardware/drivers/storage/msft-partition
func (l DriveLayout) Mountable() (found []Partition) {
	for _, p := range l.Partitions {
		switch l.Style {
		case StyleGPT:
			if p.Type == PartitionBasicData && p.Attributes&HiddenPartition == 0 {
				found = append(found, p)
			}
		case StyleMBR:
			switch p.MBRType {
			case 0x01, 0x04, 0x06, 0x07, 0x0b, 0x0c, 0x0e:
				found = append(found, p)
			}
		case StyleRaw:
		}
	}
	return found
}

// Partition is PARTITION_INFORMATION_EX. MBR tables have four entries per sector, most of
// them unused, with type 0.
type Partition struct {
	Offset, Length int64  // bytes
	Number         uint32 // from 1; 0 for unused entries of an MBR table

	// Of GPT partitions.
	Type       GUID
	ID         GUID
	Attributes uint64
	Name       string

	// Of MBR partitions.
	MBRType uint8
	MBRBoot bool
}

// Attributes of GPT partitions that hold data.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-partition_information_gpt
const (
	ReadOnlyPartition uint64 = 0x1000000000000000 // its volume takes no writes
	HiddenPartition   uint64 = 0x4000000000000000 // the mount manager ignores it
	NoDriveLetter     uint64 = 0x8000000000000000 // its volume gets no letter on its own
)

// End is the first byte after the partition.
func (p Partition) End() int64 { return p.Offset + p.Length }
