package api

import (
	"context"
	"fmt"

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

// room is how far a partition can grow. All are bytes, offsets on the disk but for length.
type room struct {
	offset, length int64
	end            int64 // where the next partition or the usable part of the disk ends
	usableEnd      int64 // where the usable part of the disk ends
	diskSize       int64
	sector         int64
	mbr            bool
	readOnly       bool // the volume, whatever the disk is
}

// awaitRoom measures until there is room for size, or all of the disk can be used.
//
// A disk that was enlarged behind Windows' back shows it only when asked to look, and its
// partition table follows only when it is read again; then Windows moves the second table
// to the new end, which takes a while. Where Windows refuses to look, what it shows may be
// old, and is no reason to say that there is nothing to grow into.
func (h host) awaitRoom(ctx context.Context, id win.VolumeID, at location, size int64, ntfs win.NTFSVolumeData) (room, error) {
	disk := win.PhysicalDrive(at.disk)
	var r room
	done, err := h.poll(ctx, func() (bool, error) {
		looked, refusal := false, error(nil)
		for _, update := range []func(context.Context, win.Device) error{h.m.UpdateDriveSize, h.m.UpdateDisk} {
			// What one of them does not do the other does, and what is not known there
			// happens by itself.
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
		if r, err = h.measure(ctx, id, at); err != nil {
			return false, err
		}
		r.end = min(r.end, r.offset+maxClusters*int64(ntfs.BytesPerCluster))
		enough := size > 0 && size <= r.most()
		if !looked && !enough {
			return false, failed(opResize, id, refusal)
		}
		return !r.lags() || enough, nil
	})
	if err != nil || done {
		return r, winerr.Wrap(opResize, string(id), err)
	}
	if err := h.refuseReadOnly(ctx, id, disk); err != nil {
		return r, err // the second table cannot be moved
	}
	return r, winerr.New(winerr.Unavailable, opResize, string(id),
		"disk %d has %d bytes, but its partition table still ends at %d", at.disk, r.diskSize, r.usableEnd)
}

// measure looks at the partition and what surrounds it.
func (h host) measure(ctx context.Context, id win.VolumeID, at location) (room, error) {
	disk := win.PhysicalDrive(at.disk)
	geometry, err := h.m.DiskGeometry(ctx, disk)
	if err != nil {
		return room{}, failed(opResize, id, err)
	}
	layout, err := h.m.DriveLayout(ctx, disk)
	if err != nil {
		return room{}, failed(opResize, id, err)
	}
	r, err := newRoom(geometry, layout, at.partition)
	switch {
	case err == nil && r.offset != at.offset:
		return room{}, winerr.New(winerr.Unavailable, opResize, string(id),
			"it begins at %d, but partition %d of disk %d at %d", at.offset, at.partition, at.disk, r.offset)
	case err != nil:
		return room{}, winerr.As(winerr.Unsupported, opResize, string(id), err, "")
	}
	return r, nil
}

// newRoom finds a partition in its disk's table. The error says why it cannot grow at all.
func newRoom(geometry win.DiskGeometry, layout win.DriveLayout, number uint32) (room, error) {
	r := room{diskSize: geometry.Size, sector: int64(geometry.BytesPerSector), mbr: layout.Style == win.StyleMBR}
	if r.sector <= 0 {
		return r, fmt.Errorf("the disk reports sectors of %d bytes", r.sector)
	}
	switch layout.Style {
	case win.StyleGPT:
		r.usableEnd = layout.UsableEnd()
	case win.StyleMBR:
		r.usableEnd = min(geometry.Size, maxMBRSectors*r.sector)
	default:
		return r, fmt.Errorf("the disk has no partition table (%v)", layout.Style)
	}
	found := false
	for _, p := range layout.Partitions {
		if p.Number == number && used(layout.Style, p) {
			r.offset, r.length, found = p.Offset, p.Length, true
			r.readOnly = p.Attributes&win.ReadOnlyPartition != 0
			if p.Offset == 0 {
				return r, fmt.Errorf("the file system covers the whole disk, without a partition that could grow")
			}
			if p.Type == win.PartitionLDMData || p.Type == win.PartitionLDMMetadata {
				return r, fmt.Errorf("partition %d belongs to a dynamic disk", number)
			}
		}
	}
	if !found {
		return r, fmt.Errorf("partition %d is not in the disk's partition table", number)
	}
	r.end = r.usableEnd
	for _, p := range layout.Partitions {
		extended := p.MBRType == mbrExtended || p.MBRType == mbrExtendedLBA
		if extended && p.Offset < r.offset && r.offset < p.End() {
			return r, fmt.Errorf("partition %d is a logical drive of an extended partition", number)
		}
		if used(layout.Style, p) && p.Offset > r.offset {
			r.end = min(r.end, p.Offset)
		}
	}
	return r, nil
}

// used tells entries of a partition table from empty slots.
func used(style win.PartitionStyle, p win.Partition) bool {
	if style == win.StyleMBR {
		return p.MBRType != 0
	}
	return p.Type != win.GUID{}
}

// most is the greatest length the partition can have.
func (r room) most() int64 { return (r.end - r.offset) / r.sector * r.sector }

// lags reports whether the partition table does not use the end of the disk yet. The
// second copy of a GPT and alignment take less than a mebibyte.
func (r room) lags() bool { return !r.mbr && r.diskSize-r.usableEnd > mebibyte }

// target is the length the partition should have for a wanted size, 0 meaning all there
// is, which ends at a mebibyte like the partitions that we and Windows create.
func (r room) target(id win.VolumeID, size int64) (int64, error) {
	most := r.most()
	all := max(most/mebibyte*mebibyte, r.length)
	switch {
	case size == 0:
		return all, nil
	case size <= most:
		return (size + r.sector - 1) / r.sector * r.sector, nil
	case size <= r.diskSize && size-most <= overhead:
		// Drivers ask for the size of the disk, of which some goes to its tables.
		return all, nil
	}
	err := fmt.Errorf("it cannot have %d bytes, because there is room for %d on a disk of %d", size, most, r.diskSize)
	if most-r.length < mebibyte {
		// democratic-csi looks for these words and takes them for "as large as it gets".
		err = fmt.Errorf("%w: The size of the extent is less than the minimum of 1MB", err)
	}
	return 0, winerr.As(winerr.NoSpace, opResize, string(id), err, "Rescan notices a disk that has grown")
}
