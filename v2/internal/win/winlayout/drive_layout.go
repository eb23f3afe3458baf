package winlayout

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// driveLayout is DRIVE_LAYOUT_INFORMATION_EX up to PartitionEntry, with a DRIVE_LAYOUT_INFORMATION_GPT.
// A DRIVE_LAYOUT_INFORMATION_MBR has its Signature, a DWORD, where this has DiskID.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-drive_layout_information_ex
type driveLayout struct {
	PartitionStyle, PartitionCount     uint32
	DiskID                             guid
	StartingUsableOffset, UsableLength int64
	MaxPartitionCount                  uint32
	_                                  uint32
}

// layoutPartitions is where PartitionEntry is.
const layoutPartitions = 48

// DriveLayoutSize has room for a table of 16 partitions, more than most disks have.
const DriveLayoutSize = layoutPartitions + 16*partitionSize

// DecodeDriveLayout reads a DRIVE_LAYOUT_INFORMATION_EX. It refuses all
// contradictions, because new partitions are made where this table shows none.
func DecodeDriveLayout(b []byte) (win.DriveLayout, error) {
	d, err := decode[driveLayout](b, "DRIVE_LAYOUT_INFORMATION_EX")
	if err != nil {
		return win.DriveLayout{}, err
	}
	layout := win.DriveLayout{Style: win.PartitionStyle(d.PartitionStyle)}
	switch layout.Style {
	case win.StyleGPT:
		layout.DiskID = d.DiskID.value()
		layout.UsableOffset, layout.UsableLength = d.StartingUsableOffset, d.UsableLength
		layout.MaxPartitions = d.MaxPartitionCount
		if !isRange(layout.UsableOffset, layout.UsableLength) {
			return win.DriveLayout{}, fmt.Errorf("%d usable bytes from %d: %w", layout.UsableLength, layout.UsableOffset, ErrMalformed)
		}
	case win.StyleMBR:
		layout.Signature = binary.LittleEndian.Uint32(d.DiskID[:])
	case win.StyleRaw:
	default:
		return win.DriveLayout{}, fmt.Errorf("partition table with %v: %w", layout.Style, ErrMalformed)
	}
	count := uint64(d.PartitionCount)
	b = b[layoutPartitions:]
	if count > uint64(len(b)/partitionSize) {
		return win.DriveLayout{}, fmt.Errorf("table of %d partitions in %d bytes: %w", count, len(b), ErrTruncated)
	}
	for i := range count {
		partition, err := decodePartition(b[i*partitionSize:], layout.Style)
		if err != nil {
			return win.DriveLayout{}, fmt.Errorf("partition %d of %d: %w", i+1, count, err)
		}
		layout.Partitions = append(layout.Partitions, partition)
	}
	return layout, nil
}

// EncodeDriveLayout builds a DRIVE_LAYOUT_INFORMATION_EX of exactly the length that its
// partitions need, for GPT and MBR disks.
func EncodeDriveLayout(layout win.DriveLayout) ([]byte, error) {
	count := len(layout.Partitions)
	if count > math.MaxInt32 {
		return nil, fmt.Errorf("a table of %d partitions: %w", count, ErrMalformed)
	}
	d := driveLayout{PartitionStyle: uint32(layout.Style), PartitionCount: uint32(count)}
	switch layout.Style {
	case win.StyleGPT:
		d.DiskID = toGUID(layout.DiskID)
		d.StartingUsableOffset, d.UsableLength = layout.UsableOffset, layout.UsableLength
		d.MaxPartitionCount = layout.MaxPartitions
	case win.StyleMBR:
		binary.LittleEndian.PutUint32(d.DiskID[:], layout.Signature)
	default:
		return nil, fmt.Errorf("a partition table cannot be written in the style %v", layout.Style)
	}
	b := encode(nil, d)
	for i, partition := range layout.Partitions {
		var err error
		if b, err = encodePartition(b, layout.Style, partition); err != nil {
			return nil, fmt.Errorf("partition %d of %d: %w", i+1, len(layout.Partitions), err)
		}
	}
	return b, nil
}
