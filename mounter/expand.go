package mounter

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

const (
	opExpand = "expand volume at"
	opResize = "compare sizes of volume at"
)

// Expanded are the sizes after Expand, in bytes. Both are 0 for a share.
type Expanded struct {
	DiskBytes   int64 // the size of the disk
	VolumeBytes int64 // the size of the file system
}

// Expand makes the file system of a volume as large as its disk. The path is where the volume is
// staged or published. Expand fails with the code Unavailable if the disk has fewer than requiredBytes,
// and returns how many it has: Windows may see the new size later, and after FailedPrecondition the
// kubelet does not ask again. 0 means no requirement. A share has the size that its server gives it.
//
// Pass requiredBytes if you know it: without it, Expand makes Windows look at all disks, because only
// that shows every new size.
func (m *Mounter) Expand(ctx context.Context, volumePath string, requiredBytes int64) (Expanded, error) {
	path, err := m.path(volumePath)
	if err != nil {
		return Expanded{}, duringAt(opExpand, volumePath, err)
	}
	sizes, err := m.expand(ctx, path, requiredBytes)
	return sizes, duringAt(opExpand, path, err)
}

func (m *Mounter) expand(ctx context.Context, path string, required int64) (Expanded, error) {
	id, err := m.volumeAt(ctx, path)
	if err != nil || id == "" {
		return Expanded{}, err
	}
	number, err := m.node.diskOf(ctx, id)
	if err != nil {
		return Expanded{}, err
	}
	unlock, err := m.locks.disk(ctx, number)
	if err != nil {
		return Expanded{}, err
	}
	defer unlock()
	klog.FromContext(ctx).V(4).Info("Expanding volume", "path", path, "volume", id)
	size, err := m.growOn(ctx, id, number, required)
	if err != nil {
		return Expanded{DiskBytes: size}, err
	}
	usage, err := m.node.volumeSpace(ctx, id)
	return Expanded{DiskBytes: size, VolumeBytes: usage.TotalBytes}, err
}

// growOn makes a volume as large as its disk, and returns the size of the disk.
func (m *Mounter) growOn(ctx context.Context, id string, number uint32, required int64) (int64, error) {
	if required > 0 {
		// To grow, Windows looks for a new size of this disk. That is nearly always enough, and does not wait for
		// the other disks. If it fails, the look at all disks may help.
		if err := m.node.grow(ctx, id); err == nil {
			if size, err := m.node.diskSize(ctx, number); err != nil || size >= required {
				return size, err
			}
		}
	}
	size, err := m.newDiskSize(ctx, number)
	switch {
	case err != nil:
		return 0, err
	case size < required:
		return size, newError(failure.Unavailable, "look at", diskName(number), "it has %d bytes, but %d are required; grow the disk first", size, required)
	}
	return size, m.node.grow(ctx, id)
}

// newDiskSize returns the size of a disk after Windows has looked for a new one.
func (m *Mounter) newDiskSize(ctx context.Context, number uint32) (int64, error) {
	if err := m.node.rescan(ctx); err != nil {
		return 0, err
	}
	return m.node.diskSize(ctx, number)
}

// volumeAt returns the volume at a path. It is empty if a share is there. Nothing there is an error
// that matches fs.ErrNotExist.
func (m *Mounter) volumeAt(ctx context.Context, path string) (string, error) {
	id, err := m.node.mountedAt(ctx, path)
	if !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	switch live, linkErr := m.node.isLiveLink(ctx, path); {
	case linkErr == nil && live:
		return "", nil
	case linkErr != nil && !errors.Is(linkErr, fs.ErrNotExist):
		return "", linkErr
	}
	return "", cmp.Or(m.whyDead(ctx, path), err)
}

// whyDead returns why a path leads nowhere that may be a link to a share: its server may not answer.
func (m *Mounter) whyDead(ctx context.Context, path string) error {
	_, err := m.node.pathSpace(ctx, path)
	if errors.Is(err, fs.ErrNotExist) || cannotTell(err) {
		return nil
	}
	return err
}

// resizeSlack is how much of a disk can be left of a volume that fills it: the partition table at
// both ends, the reserved partition (128 MiB at most), and what is too little to grow by.
const resizeSlack = 130 << 20

// NeedsResize reports whether the disk of a volume has room for it to grow, as after a clone was made
// larger than its source. The path is where the volume is staged or published. It is false for a
// share.
func (m *Mounter) NeedsResize(ctx context.Context, volumePath string) (bool, error) {
	path, err := m.path(volumePath)
	if err != nil {
		return false, duringAt(opResize, volumePath, err)
	}
	needs, err := m.needsResize(ctx, path)
	return needs, duringAt(opResize, path, err)
}

func (m *Mounter) needsResize(ctx context.Context, path string) (bool, error) {
	id, err := m.volumeAt(ctx, path)
	if err != nil || id == "" {
		return false, err
	}
	number, err := m.node.diskOf(ctx, id)
	if err != nil {
		return false, err
	}
	size, err := m.newDiskSize(ctx, number)
	if err != nil {
		return false, err
	}
	usage, err := m.node.volumeSpace(ctx, id)
	if err != nil {
		return false, err
	}
	return size-usage.TotalBytes > resizeSlack, nil
}
