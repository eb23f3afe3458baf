package mounter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// UnstageRequest says what to unstage. Only Path is required.
type UnstageRequest struct {
	// Path is the staging path.
	Path string
	// Offline takes the disk offline afterwards, so that it can be detached without loss. The disk
	// stays online if its volume is mounted at another path. A read-only disk goes offline in any
	// case.
	Offline bool
	// Source is what was staged. It is not required. With it, a repetition also completes a call that
	// was interrupted when nothing was left at the path.
	Source Source
}

const opUnstage = "unstage volume at"

// Unstage undoes Stage: it writes what is cached, takes the volume away from the path, and removes
// the path. A volume whose disk is gone is unmounted, too. A share is disconnected unless another
// link uses it. If nothing is there, Unstage succeeds.
//
// A disk that is read-only goes offline, and becomes writable there: Windows keeps the flag for the
// place of a disk, and the next disk at that place would be read-only. This needs no memory of Stage,
// and so works after a restart of the driver. The flag does not say who set it: from Stage to Unstage
// it belongs to the Mounter, and what an operator or an earlier disk left there is cleared, too. A
// disk stays as it is if it is mounted at another folder, or if the platform protects it.
//
// If the disk fails to take what is cached, Unstage fails, and the volume stays at the path. A
// repetition that meets the same failure unmounts it, and logs what may be lost; with a daemon, the
// daemon's log has it.
//
// Unstage removes no data: it fails if the path is a folder with content.
func (m *Mounter) Unstage(ctx context.Context, request UnstageRequest) error {
	path, err := m.path(request.Path)
	if err != nil {
		return during(opUnstage, request.Path, err)
	}
	if request.Source = sourceOf(request.Source); request.Source != nil {
		if err := request.Source.check(StageRequest{}); err != nil {
			return during(opUnstage, path, err)
		}
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
	share, _ := request.Source.(SMB)
	if err := m.unstageShare(ctx, path, share.Remote); err != nil || request.Source == nil {
		return err
	}
	return request.Source.release(ctx, m, request)
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
	}
	if err := m.node.unmount(ctx, id, path); err != nil {
		return err
	}
	if err := m.remove(ctx, path); err != nil {
		return err
	}
	if gone {
		return nil
	}
	return m.letGo(ctx, number, request.Offline)
}

// letGo takes a disk offline if it must be so or is read-only, and makes it writable. It leaves a disk
// alone that is mounted somewhere: a pod may use it. A drive letter keeps only a writable disk online.
func (m *Mounter) letGo(ctx context.Context, number uint32, offline bool) error {
	readOnly, err := m.isReadOnly(ctx, number)
	if err != nil {
		return m.unlessGone(ctx, number, err)
	}
	if !offline && !readOnly {
		return nil
	}
	pathsOf := m.pathsOf
	if readOnly {
		pathsOf = m.foldersOf
	}
	paths, err := pathsOf(ctx, number)
	if err != nil {
		return m.unlessGone(ctx, number, err)
	}
	if len(paths) > 0 {
		klog.FromContext(ctx).Info("Disk stays online, because it is mounted at another path", "disk", number, "paths", paths)
		return nil
	}
	if err := m.node.setOnline(ctx, number, false); err != nil {
		return m.unlessGone(ctx, number, err)
	}
	if !readOnly {
		return nil
	}
	return m.unlessGone(ctx, number, m.makeWritable(ctx, number))
}

// pathsOf returns where the volumes of a disk are mounted. An offline disk has none.
func (m *Mounter) pathsOf(ctx context.Context, number uint32) ([]string, error) {
	volumes, err := m.node.volumes(ctx, number)
	if err != nil || len(volumes) == 0 {
		return nil, err
	}
	paths, err := m.mountPaths(ctx, volumes)
	if cannotTell(err) { // drivers that cannot ask take it offline, too
		return nil, nil
	}
	return paths, err
}

// foldersOf is pathsOf without drive letters.
func (m *Mounter) foldersOf(ctx context.Context, number uint32) ([]string, error) {
	paths, err := m.pathsOf(ctx, number)
	return slices.DeleteFunc(paths, func(path string) bool { return len(pathKey(path)) == len("c:") }), err
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
