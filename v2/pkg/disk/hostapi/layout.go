package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

const (
	mib = 1 << 20

	// minPartition is the smallest partition that NTFS fits on.
	minPartition = 8 * mib

	// Windows 10 and Server 2016 and later fill the first 16 MiB with a Microsoft
	// reserved partition, from the first byte they may use. Users expect the data in
	// partition 2, and disk tools the reserved one.
	// https://learn.microsoft.com/windows-hardware/manufacture/desktop/configure-uefigpt-based-hard-drive-partitions
	msrEnd     = 16 * mib
	msrMinDisk = 128 * mib // a smaller disk gets none
)

// partitioned reports whether there is a partition that is not reserved for Windows' own use.
// Partitions of other systems, of dynamic disks and of unknown types count: such a disk is in use.
// https://learn.microsoft.com/windows-hardware/drivers/storage/msft-partition
func partitioned(layout win.DriveLayout) bool {
	switch layout.Style {
	case win.StyleRaw:
		return false
	case win.StyleGPT:
		return slices.ContainsFunc(layout.Partitions, func(p win.Partition) bool {
			return p.Type != win.PartitionMSR && p.Type != win.GUID{}
		})
	case win.StyleMBR:
		return slices.ContainsFunc(layout.Partitions, func(p win.Partition) bool {
			switch p.MBRType {
			case 0x05, 0x0f, 0x85: // extended: contains other partitions
				return false
			default:
				return used(p)
			}
		})
	default:
		return true
	}
}

// dynamic reports whether the volumes of a disk are made by the logical disk manager. They can lie
// anywhere in its partitions.
func dynamic(layout win.DriveLayout) bool {
	return slices.ContainsFunc(layout.Partitions, func(p win.Partition) bool {
		return p.Type == win.PartitionLDMData || p.MBRType == 0x42
	})
}

// usable reports whether Windows makes a volume of any partition that a driver can use.
func usable(layout win.DriveLayout) bool { return len(layout.Mountable()) > 0 || dynamic(layout) }

// typeNames are types of partitions of other systems, which administrators know by name.
var typeNames = map[win.GUID]string{
	win.PartitionBasicData: "basic data, hidden",
	win.PartitionMSR:       "Microsoft reserved",
	win.PartitionEFI:       "EFI system",
	win.PartitionRecovery:  "Windows recovery",
	win.MustGUID("0fc63daf-8483-4772-8e79-3d69d8477de4"): "Linux file system",
	win.MustGUID("0657fd6d-a4ab-43c4-84e5-0933c84b4f4f"): "Linux swap",
	win.MustGUID("e6d6d379-f507-44c2-a23c-238f2a3df928"): "Linux LVM",
	win.MustGUID("a19d880f-05fc-4d3b-a006-743f0f84911e"): "Linux RAID",
}

// typesOf lists for people which types the partitions of a disk have.
func typesOf(layout win.DriveLayout) string {
	var types []string
	for _, p := range layout.Partitions {
		switch name := typeNames[p.Type]; {
		case !used(p):
		case layout.Style == win.StyleMBR:
			types = append(types, fmt.Sprintf("partition %d has type %#02x", p.Number, p.MBRType))
		case name != "":
			types = append(types, fmt.Sprintf("partition %d has type %s {%s}", p.Number, name, p.Type))
		default:
			types = append(types, fmt.Sprintf("partition %d has type {%s}", p.Number, p.Type))
		}
	}
	return strings.Join(types, ", ")
}

// withDataPartition returns the table with one more partition, as large as possible, and that
// partition. It fails if there is too little room.
//
// The table must have nothing but reserved partitions. Offset and length are multiples of
// 1 MiB, as New-Partition makes them: up to 1 MiB remains free at the end.
func withDataPartition(layout win.DriveLayout, diskSize int64) (win.DriveLayout, win.Partition, error) {
	table := layout
	table.Partitions = slices.Clone(layout.Partitions)
	add := func(p win.Partition) win.Partition {
		p.ID = win.NewGUID()
		p.Number = uint32(len(table.Partitions)) + 1
		table.Partitions = append(table.Partitions, p)
		return p
	}
	reserved := slices.ContainsFunc(table.Partitions, func(p win.Partition) bool { return p.Type == win.PartitionMSR })
	if !reserved && diskSize >= msrMinDisk && table.UsableOffset < msrEnd {
		add(win.Partition{
			Type: win.PartitionMSR, Name: "Microsoft reserved partition",
			Offset: table.UsableOffset, Length: msrEnd - table.UsableOffset,
		})
	}
	start, end := largestGap(table)
	start = (start + mib - 1) / mib * mib
	end = end / mib * mib
	if end-start < minPartition {
		return table, win.Partition{}, fmt.Errorf("the largest free range has %d bytes; a partition needs %d", max(0, end-start), minPartition)
	}
	return table, add(win.Partition{
		Type: win.PartitionBasicData, Name: "Basic data partition", Attributes: win.NoDriveLetter,
		Offset: start, Length: end - start,
	}), nil
}

// largestGap returns the longest range of bytes that no partition uses.
func largestGap(layout win.DriveLayout) (start, end int64) {
	byOffset := slices.SortedFunc(slices.Values(layout.Partitions), func(a, b win.Partition) int { return cmp.Compare(a.Offset, b.Offset) })
	byOffset = append(byOffset, win.Partition{Offset: layout.UsableEnd()})
	free := layout.UsableOffset
	for _, p := range byOffset {
		if p.Offset-free > end-start {
			start, end = free, p.Offset
		}
		free = max(free, p.End())
	}
	return start, end
}

// describe is a table in one line, for errors.
func describe(layout win.DriveLayout) string {
	var b strings.Builder
	b.WriteString(layout.Style.String())
	for _, p := range layout.Partitions {
		if used(p) {
			fmt.Fprintf(&b, ", partition %d at %d with %d bytes", p.Number, p.Offset, p.Length)
		}
	}
	return b.String()
}
