package winlayout

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// PARTITION_INFORMATION_EX
//
//	typedef struct _PARTITION_INFORMATION_MBR {
//	  BYTE    PartitionType;
//	  BOOLEAN BootIndicator;
//	  BOOLEAN RecognizedPartition;
//	  DWORD   HiddenSectors;
//	  GUID    PartitionId;
//	} PARTITION_INFORMATION_MBR;
//
//	typedef struct _PARTITION_INFORMATION_GPT {
//	  GUID    PartitionType;
//	  GUID    PartitionId;
//	  DWORD64 Attributes;
//	  WCHAR   Name[36];
//	} PARTITION_INFORMATION_GPT;
//
//	typedef struct _PARTITION_INFORMATION_EX {
//	  PARTITION_STYLE PartitionStyle;
//	  LARGE_INTEGER   StartingOffset;
//	  LARGE_INTEGER   PartitionLength;
//	  DWORD           PartitionNumber;
//	  BOOLEAN         RewritePartition;
//	  BOOLEAN         IsServicePartition;
//	  union {
//	    PARTITION_INFORMATION_MBR Mbr;
//	    PARTITION_INFORMATION_GPT Gpt;
//	  };
//	} PARTITION_INFORMATION_EX;
//
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-partition_information_ex
const (
	partitionStyle      = 0
	partitionOffset     = 8
	partitionLength     = 16
	partitionNumber     = 24
	partitionRewrite    = 28
	partitionGPTType    = 32
	partitionGPTID      = 48
	partitionGPTFlags   = 64
	partitionGPTName    = 72
	partitionMBRType    = 32
	partitionMBRBoot    = 33
	partitionMBRKnown   = 34
	partitionMBRHidden  = 36
	partitionSize       = 144
	partitionNameUnits  = 36
	partitionNameLength = 2 * partitionNameUnits
)

// sectorOfMBR is the unit of HiddenSectors. Disks with larger sectors have a GPT.
const sectorOfMBR = 512

// decodePartition reads one entry of a table in that style.
func decodePartition(b []byte, style win.PartitionStyle) (win.Partition, error) {
	if err := need(b, partitionSize, "PARTITION_INFORMATION_EX"); err != nil {
		return win.Partition{}, err
	}
	partition := win.Partition{
		Offset: int64At(b, partitionOffset),
		Length: int64At(b, partitionLength),
		Number: uint32At(b, partitionNumber),
	}
	if !isRange(partition.Offset, partition.Length) {
		return win.Partition{}, fmt.Errorf("%d bytes from %d: %w", partition.Length, partition.Offset, ErrMalformed)
	}
	own := win.PartitionStyle(uint32At(b, partitionStyle))
	if style == win.StyleRaw && partition.Length == 0 {
		// A disk without a table may show four empty entries of style MBR: ReactOS reads
		// it with its MBR reader. How Windows fills them is not documented.
		return win.Partition{}, nil
	}
	if own != style {
		return win.Partition{}, fmt.Errorf("%v in a table of style %v: %w", own, style, ErrMalformed)
	}
	switch style {
	case win.StyleGPT:
		partition.Type = decodeGUID(b[partitionGPTType:])
		partition.ID = decodeGUID(b[partitionGPTID:])
		partition.Attributes = binary.LittleEndian.Uint64(b[partitionGPTFlags:])
		partition.Name, _, _ = strings.Cut(decodeUTF16(b[partitionGPTName:partitionGPTName+partitionNameLength]), "\x00")
	case win.StyleMBR:
		partition.MBRType = b[partitionMBRType]
		partition.MBRBoot = b[partitionMBRBoot] != 0
	case win.StyleRaw:
	}
	return partition, nil
}

// encodePartition writes one entry of a table in that style. RewritePartition is set for
// all of them, as the documentation requires.
func encodePartition(b []byte, style win.PartitionStyle, partition win.Partition) error {
	if !isRange(partition.Offset, partition.Length) {
		return fmt.Errorf("%d bytes from %d: %w", partition.Length, partition.Offset, ErrMalformed)
	}
	binary.LittleEndian.PutUint32(b[partitionStyle:], uint32(style))
	putInt64(b, partitionOffset, partition.Offset)
	putInt64(b, partitionLength, partition.Length)
	binary.LittleEndian.PutUint32(b[partitionNumber:], partition.Number)
	b[partitionRewrite] = 1
	if style == win.StyleMBR {
		hidden := partition.Offset / sectorOfMBR
		if hidden < 0 || hidden > math.MaxUint32 {
			return fmt.Errorf("an MBR cannot describe a partition at %d: %w", partition.Offset, ErrMalformed)
		}
		b[partitionMBRType] = partition.MBRType
		if partition.MBRBoot {
			b[partitionMBRBoot] = 1
		}
		if partition.MBRType != 0 {
			b[partitionMBRKnown] = 1
		}
		binary.LittleEndian.PutUint32(b[partitionMBRHidden:], uint32(hidden))
		return nil
	}
	name := encodeUTF16(partition.Name)
	if len(name) > partitionNameLength || strings.Contains(partition.Name, "\x00") {
		return fmt.Errorf("the name %q has more than %d characters, or a NUL", partition.Name, partitionNameUnits)
	}
	EncodeGUID(b[partitionGPTType:], partition.Type)
	EncodeGUID(b[partitionGPTID:], partition.ID)
	binary.LittleEndian.PutUint64(b[partitionGPTFlags:], partition.Attributes)
	copy(b[partitionGPTName:], name)
	return nil
}
