package mounter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// UnstageRequest says what to unstage. Only Path is required.
type UnstageRequest struct {
	// Path is the staging path.
	Path string
	// Offline takes the disk offline afterwards, so that it can be detached without loss. The disk
	// stays online if its volume is mounted at another path.
	Offline bool
	// Disk are the keys of the disk. With them, a repetition takes the disk offline even if an
	// earlier call was interrupted after it had unmounted the volume.
	Disk nodeapi.Query
	// Remote is the share that was staged. With it, a repetition disconnects the share even if an
	// earlier call was interrupted after it had removed the link.
	Remote string
}

const opUnstage = "unstage volume at"

// Unstage undoes Stage: it writes what is cached, takes the volume away from the path, and removes
// the path. A volume whose disk is gone is unmounted, too. A share is disconnected unless another
// link uses it. If nothing is there, Unstage succeeds.
//
// Unstage removes no data: it fails if the path is a folder with content.
func (m *Mounter) Unstage(ctx context.Context, request UnstageRequest) error {
	path, err := Path(request.Path)
	if err != nil {
		return during(opUnstage, request.Path, err)
	}
	unlock, err := m.locks.paths(ctx, path)
	if err != nil {
		return during(opUnstage, path, err)
	}
	defer unlock()
	return during(opUnstage, path, m.unstage(ctx, path, request))
}

func (m *Mounter) unstage(ctx context.Context, path string, request UnstageRequest) error {
	id, err := m.node.mountedAt(ctx, path)
	switch {
	case err == nil:
		return m.unstageVolume(ctx, path, id, request)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := m.unstageShare(ctx, path, request.Remote); err != nil {
		return err
	}
	if !request.Offline || request.Disk == (nodeapi.Query{}) {
		return nil
	}
	number, err := m.node.findDisk(ctx, request.Disk)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it is detached already
		return nil
	case failure.ClassOf(err) == failure.InUse:
		// A copy has the same keys. Nothing is mounted at the path, so the pod can end.
		klog.FromContext(ctx).Info("Disk stays in its state, because it cannot be distinguished from others", "path", path, "reason", err.Error())
		return nil
	case err != nil:
		return err
	}
	return m.release(ctx, number)
}

// unstageVolume unmounts a volume, which may be gone.
func (m *Mounter) unstageVolume(ctx context.Context, path, id string, request UnstageRequest) error {
	number, err := m.node.diskOf(ctx, id)
	gone := errors.Is(err, fs.ErrNotExist)
	if err != nil && !gone {
		return err
	}
	klog.FromContext(ctx).V(4).Info("Unstaging volume", "path", path, "volume", id, "gone", gone)
	if !gone {
		unlock, err := m.locks.disk(ctx, number)
		if err != nil {
			return err
		}
		defer unlock()
		if err := m.node.flush(ctx, id); ignoreMissing(err) != nil {
			return err
		}
	}
	if err := m.node.unmount(ctx, id, path); err != nil {
		return err
	}
	if err := m.remove(ctx, path); err != nil {
		return err
	}
	if gone || !request.Offline {
		return nil
	}
	return m.takeOffline(ctx, number)
}

// release takes a disk offline.
func (m *Mounter) release(ctx context.Context, number uint32) error {
	unlock, err := m.locks.disk(ctx, number)
	if err != nil {
		return err
	}
	defer unlock()
	return m.takeOffline(ctx, number)
}

// takeOffline takes a disk offline unless a volume on it is mounted somewhere: a pod may use it.
func (m *Mounter) takeOffline(ctx context.Context, number uint32) error {
	volumes, err := m.node.volumes(ctx, number)
	if err != nil {
		return m.unlessGone(ctx, number, err)
	}
	if len(volumes) > 0 { // it is online
		paths, err := m.mountPaths(ctx, volumes)
		switch {
		case cannotTell(err): // drivers that cannot ask take it offline, too
		case err != nil:
			return err
		case len(paths) > 0:
			klog.FromContext(ctx).Info("Disk stays online, because it is mounted at another path", "disk", number, "paths", paths)
			return nil
		}
	}
	return m.unlessGone(ctx, number, m.node.setOnline(ctx, number, false))
}

// unlessGone forgives an error if the disk is gone. One question that a disk does not answer is no
// proof of that.
func (m *Mounter) unlessGone(ctx context.Context, number uint32, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, sizeErr := m.node.diskSize(ctx, number); sizeErr != nil {
		return ignoreMissing(sizeErr)
	}
	return err
}

// cannotTell reports whether the daemon has no inspector, or the container does not have its pipe. An
// inspector that does not answer now may tell later.
func cannotTell(err error) bool {
	return errors.Is(err, failure.Unsupported) || errors.Is(err, errNoPipe)
}

// ignoreMissing forgives that an object is gone.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// diskName is the name of a disk in errors.
func diskName(number uint32) string { return fmt.Sprintf("disk %d", number) }
