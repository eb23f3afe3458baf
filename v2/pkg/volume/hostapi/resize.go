package api

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	opResize = "resize volume"

	mebibyte = 1 << 20
)

func (b boundHost) ResizeVolume(volumeID string, sizeBytes int64) error {
	ctx, h := b.ctx, b.host
	id, err := parseID(opResize, volumeID)
	if err != nil {
		return err
	}
	if sizeBytes < 0 {
		return winerr.New(winerr.Invalid, opResize, string(id), "the size of %d bytes is negative; use 0 for all available space", sizeBytes)
	}
	return h.changeContent(ctx, work{op: opResize, volume: id, size: sizeBytes, fresh: true}, func(ctx context.Context) error {
		return h.resize(ctx, id, sizeBytes)
	})
}

// resize grows the partition of a volume, and then the file system to fill it. It takes the
// second step even if the partition is large enough: an earlier attempt may have ended
// between the two.
func (h host) resize(ctx context.Context, id win.VolumeID, size int64) error {
	at, err := h.partitionOf(ctx, id)
	if err != nil {
		return err
	}
	if err := h.refuseSystemDisk(ctx, opResize, id); err != nil {
		return err
	}
	ntfs, err := h.ntfs(ctx, id)
	if err != nil {
		return err
	}
	length, err := h.growPartition(ctx, id, at, size, ntfs)
	if err != nil {
		return err
	}
	return h.growFileSystem(ctx, id, length, ntfs)
}

// partitionLocation is the partition that a volume is. Windows reuses numbers when disks
// come and go; with the offset they identify a partition.
type partitionLocation struct {
	disk, partition uint32
	offset          int64
}

func (h host) partitionOf(ctx context.Context, id win.VolumeID) (partitionLocation, error) {
	number, err := h.m.DeviceNumber(ctx, id.Device())
	if err != nil && !unknown(err) {
		return partitionLocation{}, failed(opResize, id, err)
	}
	if err != nil || number.Type != win.DeviceTypeDisk {
		disks, err := h.disksOf(ctx, opResize, id)
		if err != nil {
			return partitionLocation{}, err
		}
		return partitionLocation{}, winerr.New(winerr.Unsupported, opResize, string(id),
			"only a volume that is one partition of one disk can grow; this one is dynamic or spans disks (%d)", disks)
	}
	extents, err := h.m.VolumeExtents(ctx, id)
	switch {
	case err != nil:
		return partitionLocation{}, failed(opResize, id, err)
	case len(extents) != 1 || extents[0].Disk != number.Number:
		return partitionLocation{}, winerr.New(winerr.Unavailable, opResize, string(id),
			"it is partition %d of disk %d, but its extents are %+v", number.Partition, number.Number, extents)
	}
	return partitionLocation{number.Number, number.Partition, extents[0].Offset}, nil
}

// checkStill fails if a volume is no longer where it was. Its disk may have been detached,
// and another disk may have its number.
func (h host) checkStill(ctx context.Context, id win.VolumeID, at partitionLocation) error {
	now, err := h.partitionOf(ctx, id)
	if err == nil && now != at {
		err = winerr.New(winerr.Unavailable, opResize, string(id),
			"it was partition %d of disk %d and is partition %d of disk %d now", at.partition, at.disk, now.partition, now.disk)
	}
	return err
}

// ntfs returns the measures of a volume's file system, which must be NTFS or ReFS.
func (h host) ntfs(ctx context.Context, id win.VolumeID) (win.NTFSVolumeData, error) {
	data, err := h.m.NTFSVolumeData(ctx, id)
	if unknown(err) {
		if refs, refsErr := h.m.ReFSVolumeData(ctx, id); !unknown(refsErr) {
			data, err = refs, refsErr
		}
	}
	switch {
	case unknown(err):
		info, infoErr := h.m.FileSystem(ctx, id)
		if infoErr != nil {
			return data, failed(opResize, id, infoErr)
		}
		return data, winerr.As(winerr.Unsupported, opResize, string(id), err, fmt.Sprintf("its file system is %s, and only NTFS and ReFS can grow", info.Name))
	case err != nil:
		return data, failed(opResize, id, err)
	case data.BytesPerSector == 0 || data.BytesPerCluster < data.BytesPerSector || data.BytesPerCluster%data.BytesPerSector != 0:
		return data, winerr.New(winerr.Internal, opResize, string(id), "Windows reports clusters of %d bytes and sectors of %d", data.BytesPerCluster, data.BytesPerSector)
	}
	return data, nil
}

// growPartition grows the partition to the wanted size, unless it is large enough, and
// returns its length. Windows refuses with ERROR_INVALID_PARAMETER (87) what does not fit
// the current table, so the first refusal is followed by a second measurement.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_disk_grow_partition
func (h host) growPartition(ctx context.Context, id win.VolumeID, at partitionLocation, size int64, ntfs win.NTFSVolumeData) (int64, error) {
	disk := win.PhysicalDrive(at.disk)
	for refused := false; ; refused = true {
		space, err := h.awaitSpace(ctx, id, at, size, ntfs)
		if err != nil {
			return 0, err
		}
		target, err := space.target(id, size)
		if err != nil {
			return 0, err
		}
		grow := target - space.length
		if grow < mebibyte {
			klog.FromContext(ctx).V(2).Info("The partition is large enough", "volume", id, "size", space.length, "wanted", size)
			return space.length, nil
		}
		if space.readOnly {
			return 0, winerr.As(winerr.InUse, opResize, string(id), winerr.WriteProtect, "")
		}
		if err := h.refuseReadOnly(ctx, id, disk); err != nil {
			return 0, err
		}
		if err := h.checkStill(ctx, id, at); err != nil {
			return 0, err
		}
		err = h.m.GrowPartition(ctx, disk, at.partition, grow)
		switch {
		case err == nil:
			return h.awaitLength(ctx, id, at, target, ntfs)
		case winerr.CodeOf(err) != winerr.InvalidParameter:
			return 0, failed(opResize, id, err)
		case refused:
			return 0, winerr.As(winerr.InUse, opResize, string(id), err,
				fmt.Sprintf("Windows does not let partition %d of disk %d grow by %d bytes", at.partition, at.disk, grow))
		}
	}
}

// refuseReadOnly fails if a disk is read-only, before anything is changed.
func (h host) refuseReadOnly(ctx context.Context, id win.VolumeID, disk win.Device) error {
	attributes, err := h.m.DiskAttributes(ctx, disk)
	if err != nil {
		return failed(opResize, id, err)
	}
	if attributes.ReadOnly {
		return winerr.As(winerr.InUse, opResize, string(id), winerr.WriteProtect, "")
	}
	return nil
}

// awaitLength waits until the partition table shows that a partition has grown.
func (h host) awaitLength(ctx context.Context, id win.VolumeID, at partitionLocation, target int64, ntfs win.NTFSVolumeData) (int64, error) {
	var length int64
	done, err := h.poll(ctx, func() (bool, error) {
		space, err := h.measure(ctx, id, at, ntfs)
		length = space.length
		return length >= target, err
	})
	if err == nil && !done {
		err = winerr.New(winerr.Unavailable, opResize, string(id), "its partition should have grown to %d bytes, but still has %d", target, length)
	}
	return length, winerr.Wrap(opResize, string(id), err)
}

// growFileSystem makes the file system fill the partition. The volume stays in use.
//
// The request takes the total number of sectors. Windows refuses it with
// ERROR_INVALID_PARAMETER (87) until the volume manager has noticed that the partition has
// grown, and may extend by a sector less than requested, so a result of up to one cluster
// less is accepted.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-fsctl_extend_volume
func (h host) growFileSystem(ctx context.Context, id win.VolumeID, length int64, ntfs win.NTFSVolumeData) error {
	perCluster := int64(ntfs.BytesPerCluster / ntfs.BytesPerSector)
	sectors := min(length/int64(ntfs.BytesPerCluster), clusterLimit(ntfs)) * perCluster
	var failure error
	done, err := h.poll(ctx, func() (done bool, err error) {
		if ntfs.Sectors+1 >= sectors-perCluster {
			return true, nil
		}
		failure = h.m.ExtendVolume(ctx, id, sectors)
		if failure != nil && winerr.CodeOf(failure) != winerr.InvalidParameter {
			return false, failed(opResize, id, failure)
		}
		ntfs, err = h.ntfs(ctx, id)
		return ntfs.Sectors+1 >= sectors-perCluster, err
	})
	switch {
	case err != nil:
		return winerr.Wrap(opResize, string(id), err)
	case done:
		return nil
	}
	lag := fmt.Sprintf("its file system has %d sectors and should have %d", ntfs.Sectors+1, sectors)
	if failure != nil {
		return winerr.As(winerr.Unavailable, opResize, string(id), failure, lag)
	}
	return winerr.New(winerr.Unavailable, opResize, string(id), "%s", lag)
}
