package api

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	// maxClusters is how many clusters NTFS has at most.
	// https://learn.microsoft.com/windows-server/storage/file-server/ntfs-overview
	maxClusters = 1<<32 - 1

	// maxMBRSectors is how many sectors an MBR partition table can describe.
	maxMBRSectors = 1 << 32

	// overhead is the most that partition tables and reserved partitions take from a
	// disk.
	overhead = 100 * mebibyte
)

// Types of MBR partitions that hold others, and of dynamic disks.
// https://learn.microsoft.com/windows/win32/fileio/disk-partition-types
const (
	mbrExtended    = 0x05
	mbrExtendedLBA = 0x0F
	mbrLDM         = 0x42
)

// partitionSpace is how far a partition can grow, in bytes. Ends and offset are positions on
// the disk.
type partitionSpace struct {
	offset, length int64
	end            int64 // of what it can grow into: the next partition, or usableEnd
	usableEnd      int64 // of the part of the disk that the table can describe
	ntfsEnd        int64 // of the largest file system with these clusters
	diskSize       int64
	sector         int64
	mbr            bool
	id             win.GUID // of a GPT partition
	readOnly       bool     // the partition; the disk may be read-only as well
}

// awaitSpace measures until there is space for size, or all of the disk can be used.
//
// Windows notices that a disk was enlarged only when asked to look, and updates the partition
// table only when it reads it again; moving the second table to the new end takes a while.
// If Windows refuses to look, its sizes may be old, so they do not prove that the disk is
// full.
func (h host) awaitSpace(ctx context.Context, id win.VolumeID, at partitionLocation, size int64, ntfs win.NTFSVolumeData) (partitionSpace, error) {
	disk := win.PhysicalDrive(at.disk)
	var s partitionSpace
	done, err := h.poll(ctx, func() (bool, error) {
		looked, refusal := false, error(nil)
		for _, update := range []func(context.Context, win.Device) error{h.m.UpdateDriveSize, h.m.UpdateDisk} {
			// One of them is enough. A disk that knows neither needs neither.
			switch err := update(ctx, disk); {
			case err == nil || unknown(err):
				looked = true
			case !answered(err):
				return false, err
			default:
				refusal = err
			}
		}
		var err error
		if s, err = h.measure(ctx, id, at, ntfs); err != nil {
			return false, err
		}
		enough := size > 0 && size <= s.maxLength()
		if !looked && !enough {
			return false, failed(opResize, id, refusal)
		}
		return !s.tableLags() || enough, nil
	})
	if err != nil || done {
		return s, winerr.Wrap(opResize, string(id), err)
	}
	if err := h.refuseReadOnly(ctx, id, disk); err != nil {
		return s, err // Windows cannot move the second table
	}
	return h.resizeByService(ctx, id, at, s, size, ntfs)
}

// resizeByService has the storage service extend the partition table, once. Whether Windows
// does that by itself while the disk is in use is not documented. The service cannot extend a
// table alone, so it grows the partition as well.
// https://learn.microsoft.com/windows-hardware/drivers/storage/resize-msft-partition
func (h host) resizeByService(ctx context.Context, id win.VolumeID, at partitionLocation, s partitionSpace, size int64, ntfs win.NTFSVolumeData) (partitionSpace, error) {
	lags := func(cause error) error {
		err := fmt.Errorf("disk %d has %d bytes, but its partition table still ends at %d", at.disk, s.diskSize, s.usableEnd)
		if cause != nil {
			err = fmt.Errorf("%w, and the storage service does not extend it: %w", err, cause)
		}
		return winerr.As(winerr.Unavailable, opResize, string(id), err, "")
	}
	target, err := s.withWholeDisk().target(id, size)
	switch {
	case err != nil:
		return s, err
	case target-s.length < mebibyte:
		return s, lags(nil) // another partition or a limit of NTFS is in the way
	case s.readOnly:
		return s, winerr.As(winerr.InUse, opResize, string(id), winerr.WriteProtect, "")
	}
	if err := h.checkStill(ctx, id, at); err != nil {
		return s, err
	}
	klog.FromContext(ctx).Info("The partition table does not follow its disk, trying MSFT_Partition", "volume", id, "disk", at.disk, "size", target)
	if err := h.refresh(ctx); err != nil {
		return s, winerr.Wrap(opResize, string(id), err)
	}
	if err := h.m.ResizePartition(ctx, at.disk, s.id, target); err != nil {
		if ctx.Err() != nil {
			return s, winerr.Wrap(opResize, string(id), err)
		}
		return s, lags(err)
	}
	done, err := h.poll(ctx, func() (done bool, err error) {
		s, err = h.measure(ctx, id, at, ntfs)
		return !s.tableLags(), err
	})
	if err == nil && !done {
		err = lags(nil)
	}
	return s, winerr.Wrap(opResize, string(id), err)
}

// measure reads the partition and its neighbours.
func (h host) measure(ctx context.Context, id win.VolumeID, at partitionLocation, ntfs win.NTFSVolumeData) (partitionSpace, error) {
	disk := win.PhysicalDrive(at.disk)
	geometry, err := h.m.DiskGeometry(ctx, disk)
	if err != nil {
		return partitionSpace{}, failed(opResize, id, err)
	}
	layout, err := h.m.DriveLayout(ctx, disk)
	if err != nil {
		return partitionSpace{}, failed(opResize, id, err)
	}
	s, err := newPartitionSpace(geometry, layout, at.partition)
	switch {
	case err == nil && s.offset != at.offset:
		return partitionSpace{}, winerr.New(winerr.Unavailable, opResize, string(id),
			"it begins at %d, but partition %d of disk %d at %d", at.offset, at.partition, at.disk, s.offset)
	case err != nil:
		return partitionSpace{}, winerr.As(winerr.Unsupported, opResize, string(id), err, "")
	}
	s.ntfsEnd = s.offset + clusterLimit(ntfs)*int64(ntfs.BytesPerCluster)
	return s, nil
}

// clusterLimit is how many clusters a file system has at most. ReFS has as many as fit into 35 PB.
// https://learn.microsoft.com/windows-server/storage/refs/refs-overview
func clusterLimit(of win.NTFSVolumeData) int64 {
	if of.ReFS {
		return 35e15 / int64(of.BytesPerCluster)
	}
	return maxClusters
}

// newPartitionSpace finds a partition in its disk's table. The error says why it cannot grow at all.
func newPartitionSpace(geometry win.DiskGeometry, layout win.DriveLayout, number uint32) (partitionSpace, error) {
	s := partitionSpace{diskSize: geometry.Size, sector: int64(geometry.BytesPerSector), mbr: layout.Style == win.StyleMBR}
	if s.sector <= 0 {
		return s, fmt.Errorf("the disk reports sectors of %d bytes", s.sector)
	}
	switch layout.Style {
	case win.StyleGPT:
		s.usableEnd = layout.UsableEnd()
	case win.StyleMBR:
		s.usableEnd = min(geometry.Size, maxMBRSectors*s.sector)
	default:
		return s, fmt.Errorf("the disk has no partition table (%v)", layout.Style)
	}
	found := false
	for _, p := range layout.Partitions {
		if p.Number == number && used(layout.Style, p) {
			s.offset, s.length, s.id, found = p.Offset, p.Length, p.ID, true
			s.readOnly = p.Attributes&win.ReadOnlyPartition != 0
			if p.Offset == 0 {
				return s, fmt.Errorf("the file system covers the whole disk, without a partition that could grow")
			}
			if p.Type == win.PartitionLDMData || p.Type == win.PartitionLDMMetadata {
				return s, fmt.Errorf("partition %d belongs to a dynamic disk", number)
			}
		}
	}
	if !found {
		return s, fmt.Errorf("partition %d is not in the disk's partition table", number)
	}
	s.end = s.usableEnd
	for _, p := range layout.Partitions {
		extended := p.MBRType == mbrExtended || p.MBRType == mbrExtendedLBA
		if extended && p.Offset < s.offset && s.offset < p.End() {
			return s, fmt.Errorf("partition %d is a logical drive of an extended partition", number)
		}
		if used(layout.Style, p) && p.Offset > s.offset {
			s.end = min(s.end, p.Offset)
		}
	}
	return s, nil
}

// used reports whether a slot of a partition table holds a partition.
func used(style win.PartitionStyle, p win.Partition) bool {
	if style == win.StyleMBR {
		return p.MBRType != 0
	}
	return p.Type != win.GUID{}
}

func (s partitionSpace) maxLength() int64 {
	return (min(s.end, s.ntfsEnd) - s.offset) / s.sector * s.sector
}

// tableLags reports whether the partition table does not use the end of the disk yet. The
// second copy of a GPT and alignment take less than a mebibyte.
func (s partitionSpace) tableLags() bool { return !s.mbr && s.diskSize-s.usableEnd > mebibyte }

// withWholeDisk is the space after the partition table was extended to the end of the disk.
func (s partitionSpace) withWholeDisk() partitionSpace {
	end := (s.diskSize - mebibyte) / mebibyte * mebibyte
	if s.end == s.usableEnd {
		s.end = end
	}
	s.usableEnd = end
	return s
}

// target is the length that the partition should have for a wanted size. 0 means all there
// is, up to a whole mebibyte like the partitions that we and Windows create.
func (s partitionSpace) target(id win.VolumeID, size int64) (int64, error) {
	most := s.maxLength()
	all := max(most/mebibyte*mebibyte, s.length)
	switch {
	case size == 0:
		return all, nil
	case size <= most:
		return (size + s.sector - 1) / s.sector * s.sector, nil
	case size <= s.diskSize && size-most <= overhead:
		// Drivers ask for the size of the disk, of which some goes to its tables.
		return all, nil
	}
	err := fmt.Errorf("it cannot have %d bytes, because there is room for %d on a disk of %d", size, most, s.diskSize)
	if most-s.length < mebibyte {
		// democratic-csi looks for these words and takes them for "as large as it gets".
		err = fmt.Errorf("%w: The size of the extent is less than the minimum of 1MB", err)
	}
	return 0, winerr.As(winerr.NoSpace, opResize, string(id), err, "if the disk has grown, call Rescan first")
}
