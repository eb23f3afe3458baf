package winlayout

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// DRIVE_LAYOUT_INFORMATION_EX
//
//	typedef struct _DRIVE_LAYOUT_INFORMATION_MBR {
//	  DWORD Signature;
//	  DWORD CheckSum;
//	} DRIVE_LAYOUT_INFORMATION_MBR;
//
//	typedef struct _DRIVE_LAYOUT_INFORMATION_GPT {
//	  GUID          DiskId;
//	  LARGE_INTEGER StartingUsableOffset;
//	  LARGE_INTEGER UsableLength;
//	  DWORD         MaxPartitionCount;
//	} DRIVE_LAYOUT_INFORMATION_GPT;
//
//	typedef struct _DRIVE_LAYOUT_INFORMATION_EX {
//	  DWORD PartitionStyle;
//	  DWORD PartitionCount;
//	  union {
//	    DRIVE_LAYOUT_INFORMATION_MBR Mbr;
//	    DRIVE_LAYOUT_INFORMATION_GPT Gpt;
//	  };
//	  PARTITION_INFORMATION_EX PartitionEntry[1];
//	} DRIVE_LAYOUT_INFORMATION_EX;
//
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-drive_layout_information_ex
const (
	layoutStyle           = 0
	layoutCount           = 4
	layoutGPTDiskID       = 8
	layoutGPTUsableOffset = 24
	layoutGPTUsableLength = 32
	layoutGPTMax          = 40
	layoutMBRSignature    = 8
	layoutPartitions      = 48
)

// DriveLayoutSize has room for a table of 16 partitions, more than most disks have.
const DriveLayoutSize = layoutPartitions + 16*partitionSize

// DecodeDriveLayout reads a DRIVE_LAYOUT_INFORMATION_EX. It refuses all
// contradictions, because new partitions are made where this table shows none.
func DecodeDriveLayout(b []byte) (win.DriveLayout, error) {
	if err := need(b, layoutPartitions, "DRIVE_LAYOUT_INFORMATION_EX"); err != nil {
		return win.DriveLayout{}, err
	}
	layout := win.DriveLayout{Style: win.PartitionStyle(uint32At(b, layoutStyle))}
	switch layout.Style {
	case win.StyleGPT:
		layout.DiskID = decodeGUID(b[layoutGPTDiskID:])
		layout.UsableOffset = int64At(b, layoutGPTUsableOffset)
		layout.UsableLength = int64At(b, layoutGPTUsableLength)
		layout.MaxPartitions = uint32At(b, layoutGPTMax)
		if !isRange(layout.UsableOffset, layout.UsableLength) {
			return win.DriveLayout{}, fmt.Errorf("%d usable bytes from %d: %w", layout.UsableLength, layout.UsableOffset, ErrMalformed)
		}
	case win.StyleMBR:
		layout.Signature = uint32At(b, layoutMBRSignature)
	case win.StyleRaw:
	default:
		return win.DriveLayout{}, fmt.Errorf("partition table with %v: %w", layout.Style, ErrMalformed)
	}
	count := uint64(uint32At(b, layoutCount))
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
	b := make([]byte, layoutPartitions+count*partitionSize)
	binary.LittleEndian.PutUint32(b[layoutStyle:], uint32(layout.Style))
	binary.LittleEndian.PutUint32(b[layoutCount:], uint32(count))
	switch layout.Style {
	case win.StyleGPT:
		EncodeGUID(b[layoutGPTDiskID:], layout.DiskID)
		putInt64(b, layoutGPTUsableOffset, layout.UsableOffset)
		putInt64(b, layoutGPTUsableLength, layout.UsableLength)
		binary.LittleEndian.PutUint32(b[layoutGPTMax:], layout.MaxPartitions)
	case win.StyleMBR:
		binary.LittleEndian.PutUint32(b[layoutMBRSignature:], layout.Signature)
	default:
		return nil, fmt.Errorf("a partition table cannot be written in the style %v", layout.Style)
	}
	for i, partition := range layout.Partitions {
		if err := encodePartition(b[layoutPartitions+i*partitionSize:], layout.Style, partition); err != nil {
			return nil, fmt.Errorf("partition %d of %d: %w", i+1, len(layout.Partitions), err)
		}
	}
	return b, nil
}
