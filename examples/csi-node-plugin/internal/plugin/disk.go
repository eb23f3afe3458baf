package plugin

import (
	"context"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/examples/csi-node-plugin/internal/storage"
)

// disk is a volume that has a disk for itself.
type disk struct {
	node   storage.Node
	serial string
}

func (d *disk) accepts(capability *csi.VolumeCapability) error {
	if fsType := capability.GetMount().GetFsType(); fsType != "" && !strings.EqualFold(fsType, "ntfs") {
		return status.Errorf(codes.InvalidArgument, "disks are formatted with ntfs, not with %s", fsType)
	}
	switch mode := capability.GetAccessMode().GetMode(); mode {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
		return nil
	default: // NTFS on two nodes at once is lost, and a disk cannot be mounted read-only here
		return status.Errorf(codes.InvalidArgument, "a disk is for one node that writes; the access mode is %v", mode)
	}
}

func (d *disk) stage(ctx context.Context, path string, _ map[string]string) error {
	number, err := d.find(ctx)
	if err != nil {
		return err
	}
	if err := d.node.Partition(ctx, number); err != nil {
		return answer("partition the disk", err)
	}
	if err := d.node.SetOnline(ctx, number, true); err != nil { // it may have been staged, and unstaged, before
		return answer("take the disk online", err)
	}
	id, err := d.onlyVolume(ctx, number)
	if err != nil {
		return err
	}
	// Ours leaves a formatted volume alone; the original's FormatVolume erases it.
	switch formatted, err := d.node.IsFormatted(ctx, id); {
	case err != nil:
		return answer("see whether the disk is formatted", err)
	case !formatted:
		if err := d.node.Format(ctx, id); err != nil {
			return answer("format the disk", err)
		}
	}
	return answer("mount the disk", d.node.Mount(ctx, id, path))
}

// find returns the number that the disk has now. A disk that has just been attached may need
// a rescan to be seen.
func (d *disk) find(ctx context.Context) (uint32, error) {
	number, found, err := d.lookUp(ctx)
	if err != nil || found {
		return number, err
	}
	if err := d.node.Rescan(ctx); err != nil {
		return 0, answer("rescan the disks", err)
	}
	number, found, err = d.lookUp(ctx)
	if err == nil && !found {
		err = status.Errorf(codes.NotFound, "this node has no disk with serial number %s; it must be attached first", d.serial)
	}
	return number, err
}

func (d *disk) lookUp(ctx context.Context) (number uint32, found bool, err error) {
	disks, err := d.node.Disks(ctx)
	if err != nil {
		return 0, false, answer("list the disks", err)
	}
	for number, serial := range disks {
		if serial == d.serial {
			return number, true, nil
		}
	}
	return 0, false, nil
}

func (d *disk) onlyVolume(ctx context.Context, number uint32) (string, error) {
	volumes, err := d.node.Volumes(ctx, number)
	if err != nil {
		return "", answer("list the volumes of the disk", err)
	}
	if len(volumes) != 1 {
		return "", status.Errorf(codes.FailedPrecondition, "disk %s has %d volumes instead of one; it was not made by this driver", d.serial, len(volumes))
	}
	return volumes[0], nil
}

func (d *disk) unstage(ctx context.Context, path string) error {
	switch id, err := d.node.MountedAt(ctx, path); {
	case err == nil:
		// What is on another disk is none of ours. A volume that does not exist any more has
		// lost its disk, and its mount must go, too, or the pod would be stuck.
		switch own, err := d.holds(ctx, id); {
		case err != nil && codeOf(err) != codes.NotFound:
			return err
		case err == nil && !own:
			return status.Errorf(codes.FailedPrecondition, "another volume is mounted at %s", path)
		}
		if err := d.node.Unmount(ctx, id, path); err != nil {
			return answer("unmount the disk", err)
		}
	case codeOf(err) != codes.NotFound:
		return answer("see what is mounted", err)
	}
	// A disk that is offline can be detached without loss. It may be detached already.
	number, found, err := d.lookUp(ctx)
	if err != nil || !found {
		return err
	}
	return answer("take the disk offline", d.node.SetOnline(ctx, number, false))
}

// holds tells whether a volume is on this disk.
func (d *disk) holds(ctx context.Context, id string) (bool, error) {
	number, err := d.node.DiskOf(ctx, id)
	if err != nil {
		return false, answer("find the disk of the volume", err)
	}
	disks, err := d.node.Disks(ctx)
	if err != nil {
		return false, answer("list the disks", err)
	}
	return disks[number] == d.serial, nil
}

func (d *disk) check(ctx context.Context, path string) error {
	_, err := d.at(ctx, path)
	return err
}

// at returns the volume at a path, if it is on this disk.
func (d *disk) at(ctx context.Context, path string) (id string, err error) {
	id, err = d.node.MountedAt(ctx, path)
	if err != nil {
		return "", answer("see what is mounted", err)
	}
	own, err := d.holds(ctx, id)
	if err == nil && !own {
		err = status.Errorf(codes.NotFound, "disk %s is not mounted at %s, another volume is", d.serial, path)
	}
	return id, err
}

func (d *disk) grow(ctx context.Context, path string, wanted *csi.CapacityRange) (int64, error) {
	id, err := d.at(ctx, path)
	if err != nil {
		return 0, err
	}
	number, err := d.node.DiskOf(ctx, id)
	if err != nil {
		return 0, answer("find the disk of the volume", err)
	}
	if err := d.node.Rescan(ctx); err != nil { // Windows may not have noticed the new size
		return 0, answer("rescan the disks", err)
	}
	size, err := d.node.DiskSize(ctx, number)
	switch {
	case err != nil:
		return 0, answer("ask for the size of the disk", err)
	case size < wanted.GetRequiredBytes():
		return 0, status.Errorf(codes.OutOfRange, "disk %s has %d bytes, %d are wanted; grow the disk first", d.serial, size, wanted.GetRequiredBytes())
	case wanted.GetLimitBytes() > 0 && size > wanted.GetLimitBytes():
		return 0, status.Errorf(codes.OutOfRange, "disk %s has %d bytes, more than the limit of %d", d.serial, size, wanted.GetLimitBytes())
	}
	return size, answer("grow the volume", d.node.Grow(ctx, id))
}

func (d *disk) usage(ctx context.Context, path string) (*csi.VolumeUsage, error) {
	id, err := d.at(ctx, path)
	if err != nil {
		return nil, err
	}
	total, used, err := d.node.VolumeSpace(ctx, id)
	if err != nil {
		return nil, answer("measure the volume", err)
	}
	return &csi.VolumeUsage{Unit: csi.VolumeUsage_BYTES, Total: total, Used: used, Available: total - used}, nil
}
