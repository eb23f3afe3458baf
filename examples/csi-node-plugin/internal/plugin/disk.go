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
	claim  claim
}

func (d *disk) accepts(capability *csi.VolumeCapability) error {
	if fsType := capability.GetMount().GetFsType(); fsType != "" && !strings.EqualFold(fsType, "ntfs") {
		return status.Errorf(codes.InvalidArgument, "disks are formatted with ntfs, not with %s", fsType)
	}
	// Two nodes at once would destroy NTFS, and Windows cannot mount the disk read-only here.
	if mode := capability.GetAccessMode().GetMode(); mode != csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER {
		return status.Errorf(codes.InvalidArgument, "access mode %v is not supported for disks; use ReadWriteOnce", mode)
	}
	return nil
}

func (d *disk) stage(ctx context.Context, path string, _ map[string]string) error {
	number, err := d.find(ctx)
	if err != nil {
		return err
	}
	if err := d.node.Partition(ctx, number); err != nil {
		return answer("partition the disk", err)
	}
	if err := d.node.SetOnline(ctx, number, true); err != nil { // an earlier unstage may have taken it offline
		return answer("bring the disk online", err)
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
	if err := d.claimPath(ctx, path); err != nil {
		return err
	}
	return answer("mount the disk", d.node.Mount(ctx, id, path))
}

// claimPath notes the path at which the disk will be staged. There is only one at a time, because
// unstaging takes the disk offline for every user.
func (d *disk) claimPath(ctx context.Context, path string) error {
	const doing = "note where the disk is staged"
	err := d.claim.take(ctx, path)
	if codeOf(err) != codes.AlreadyExists {
		return answer(doing, err)
	}
	switch _, err := d.at(ctx, d.claim.link); codeOf(err) {
	case codes.OK:
		return status.Errorf(codes.FailedPrecondition, "disk %s is staged at a path other than %s; unstage it there first", d.serial, path)
	case codes.NotFound: // lost without an unstage: the node was reset, or the disk was pulled
	default:
		return err
	}
	if err := d.claim.drop(ctx); err != nil {
		return answer(doing, err)
	}
	return answer(doing, d.claim.take(ctx, path))
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
		err = status.Errorf(codes.NotFound, "this node has no disk with serial number %s; attach it first", d.serial)
	}
	return number, err
}

func (d *disk) lookUp(ctx context.Context) (number uint32, found bool, err error) {
	disks, err := d.node.Disks(ctx)
	if err != nil {
		return 0, false, answer("list the disks", err)
	}
	for candidate, serial := range disks {
		switch {
		case serial != d.serial:
		case found: // a copy of a disk can have its serial number, and one of them may be a pod's
			return 0, false, status.Errorf(codes.FailedPrecondition,
				"disks %d and %d both have the serial number %s; detach one of them", min(number, candidate), max(number, candidate), d.serial)
		default:
			number, found = candidate, true
		}
	}
	return number, found, nil
}

func (d *disk) onlyVolume(ctx context.Context, number uint32) (string, error) {
	volumes, err := d.node.Volumes(ctx, number)
	if err != nil {
		return "", answer("list the volumes of the disk", err)
	}
	if len(volumes) != 1 {
		return "", status.Errorf(codes.FailedPrecondition, "disk %s has %d volumes instead of one; this driver did not create them", d.serial, len(volumes))
	}
	return volumes[0], nil
}

// unstage leaves the disk offline, so that it can be detached without loss, but only if this is
// the path at which it was staged: at another path a pod may use it.
func (d *disk) unstage(ctx context.Context, path string) error {
	number, found, err := d.unmount(ctx, path)
	if err != nil {
		return err
	}
	where, err := d.claim.compare(ctx, path)
	switch {
	case err != nil:
		return answer("see where the disk is staged", err)
	case where == otherPath || where == noPath && !found:
		return nil
	case !found: // an earlier call was interrupted, or the disk is detached already
		if number, found, err = d.lookUp(ctx); err != nil {
			return err
		}
	}
	if found {
		if err := d.node.SetOnline(ctx, number, false); err != nil {
			return answer("take the disk offline", err)
		}
	}
	return answer("forget where the disk was staged", d.claim.drop(ctx))
}

// unmount unmounts the disk from a path, and returns its number if it was there. It also unmounts
// the volume of a lost disk, or its pod would be stuck.
func (d *disk) unmount(ctx context.Context, path string) (number uint32, found bool, err error) {
	id, err := d.node.MountedAt(ctx, path)
	switch {
	case codeOf(err) == codes.NotFound:
		return 0, false, nil
	case err != nil:
		return 0, false, answer("see what is mounted", err)
	}
	number, found, err = d.holds(ctx, id)
	switch {
	case err != nil && codeOf(err) != codes.NotFound:
		return 0, false, err
	case err == nil && !found:
		return 0, false, errOther(path)
	}
	return number, found, answer("unmount the disk", d.node.Unmount(ctx, id, path))
}

// holds tells whether a volume is on this disk, and the number of the disk that it is on.
func (d *disk) holds(ctx context.Context, id string) (number uint32, own bool, err error) {
	number, err = d.node.DiskOf(ctx, id)
	if err != nil {
		return 0, false, answer("find the disk of the volume", err)
	}
	disks, err := d.node.Disks(ctx)
	if err != nil {
		return 0, false, answer("list the disks", err)
	}
	return number, disks[number] == d.serial, nil
}

func (d *disk) checkTarget(ctx context.Context, path string) error {
	if id, err := d.node.MountedAt(ctx, path); err == nil {
		if _, own, err := d.holds(ctx, id); err == nil && !own {
			return errOther(path)
		}
	}
	if where, err := d.claim.compare(ctx, path); err == nil && where == thisPath {
		return status.Errorf(codes.FailedPrecondition, "%s is the staging path of the volume, not a pod's folder; unstage the volume instead", path)
	}
	return nil
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
	_, own, err := d.holds(ctx, id)
	if err == nil && !own {
		err = status.Errorf(codes.NotFound, "disk %s is not mounted at %s; another volume is", d.serial, path)
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
		return 0, status.Errorf(codes.OutOfRange, "disk %s has %d bytes, but %d are required; grow the disk first", d.serial, size, wanted.GetRequiredBytes())
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
