package winlayout

import (
	"fmt"
	"math"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// The parts of PARTITION_INFORMATION_EX: what all partitions have, and the members of its union.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-partition_information_ex
type (
	partitionInformation struct {
		PartitionStyle                       uint32
		_                                    uint32
		StartingOffset, PartitionLength      int64
		PartitionNumber                      uint32
		RewritePartition, IsServicePartition bool
		_                                    [2]byte
	}
	partitionInformationGPT struct {
		PartitionType, PartitionID guid
		Attributes                 uint64
		Name                       [2 * partitionNameUnits]byte
	}
	partitionInformationMBR struct {
		PartitionType                      byte
		BootIndicator, RecognizedPartition bool
		_                                  byte
		HiddenSectors                      uint32
		PartitionID                        guid
		_                                  [88]byte // the union is as large as its largest member
	}
)

const (
	partitionUnion     = 32
	partitionSize      = 144
	partitionNameUnits = 36
)

// sectorOfMBR is the unit of HiddenSectors. Disks with larger sectors have a GPT.
const sectorOfMBR = 512

func decodePartition(b []byte, style win.PartitionStyle) (win.Partition, error) {
	p, err := decode[partitionInformation](b, "PARTITION_INFORMATION_EX")
	if err != nil {
		return win.Partition{}, err
	}
	partition := win.Partition{Offset: p.StartingOffset, Length: p.PartitionLength, Number: p.PartitionNumber}
	if !isRange(partition.Offset, partition.Length) {
		return win.Partition{}, fmt.Errorf("%d bytes from %d: %w", partition.Length, partition.Offset, ErrMalformed)
	}
	if style == win.StyleRaw && partition.Length == 0 {
		// A disk without a table may show four empty entries of style MBR: ReactOS reads
		// it with its MBR reader. How Windows fills them is not documented.
		return win.Partition{}, nil
	}
	if own := win.PartitionStyle(p.PartitionStyle); own != style {
		return win.Partition{}, fmt.Errorf("%v in a table of style %v: %w", own, style, ErrMalformed)
	}
	switch b = b[partitionUnion:]; style {
	case win.StyleGPT:
		g, err := decode[partitionInformationGPT](b, "PARTITION_INFORMATION_GPT")
		if err != nil {
			return win.Partition{}, err
		}
		partition.Type, partition.ID, partition.Attributes = g.PartitionType.value(), g.PartitionID.value(), g.Attributes
		partition.Name, _, _ = strings.Cut(decodeUTF16(g.Name[:]), "\x00")
	case win.StyleMBR:
		m, err := decode[partitionInformationMBR](b, "PARTITION_INFORMATION_MBR")
		if err != nil {
			return win.Partition{}, err
		}
		partition.MBRType, partition.MBRBoot = m.PartitionType, m.BootIndicator
	case win.StyleRaw:
	}
	return partition, nil
}

// encodePartition writes one entry of a table in that style behind b. RewritePartition is set for
// all of them, as the documentation requires.
func encodePartition(b []byte, style win.PartitionStyle, partition win.Partition) ([]byte, error) {
	if !isRange(partition.Offset, partition.Length) {
		return nil, fmt.Errorf("%d bytes from %d: %w", partition.Length, partition.Offset, ErrMalformed)
	}
	b = encode(b, partitionInformation{
		PartitionStyle: uint32(style), StartingOffset: partition.Offset, PartitionLength: partition.Length,
		PartitionNumber: partition.Number, RewritePartition: true,
	})
	if style == win.StyleMBR {
		hidden := partition.Offset / sectorOfMBR
		if hidden < 0 || hidden > math.MaxUint32 {
			return nil, fmt.Errorf("an MBR cannot describe a partition at %d: %w", partition.Offset, ErrMalformed)
		}
		return encode(b, partitionInformationMBR{
			PartitionType: partition.MBRType, BootIndicator: partition.MBRBoot, RecognizedPartition: partition.MBRType != 0, HiddenSectors: uint32(hidden),
		}), nil
	}
	g := partitionInformationGPT{PartitionType: toGUID(partition.Type), PartitionID: toGUID(partition.ID), Attributes: partition.Attributes}
	name := encodeUTF16(partition.Name)
	if len(name) > len(g.Name) || strings.Contains(partition.Name, "\x00") {
		return nil, fmt.Errorf("the name %q has more than %d characters, or a NUL", partition.Name, partitionNameUnits)
	}
	copy(g.Name[:], name)
	return encode(b, g), nil
}
