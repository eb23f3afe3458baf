package api

import (
	"context"
	"errors"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

const opMount = "mount volume"

func (h host) MountVolume(volumeID, targetPath string) error {
	id, err := parseID(opMount, volumeID)
	if err != nil {
		return err
	}
	w := work{op: opMount, volume: id, path: targetPath}
	if err := refuseRoot(w); err != nil {
		return err
	}
	return h.change(w, func(ctx context.Context) error { return h.mount(ctx, w) })
}

// mount shows a volume at a folder, which it makes if there is none. Whatever else stands
// there is never replaced.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-setvolumemountpointw
func (h host) mount(ctx context.Context, w work) error {
	at, err := h.look(ctx, w.path)
	if err != nil {
		return winerr.Wrap(w.op, w.object(), err)
	}
	if !at.missing && !at.ordinary() {
		return h.checkMounted(ctx, w, at)
	}
	// Windows would mount a volume without a file system all the same, and every access
	// to the folder would fail. It is also how we learn that the volume exists.
	switch name, err := h.fileSystem(ctx, w.op, w.volume); {
	case err != nil:
		return err
	case name == "":
		return failed(w.op, w.volume, winerr.UnrecognizedVolume)
	}
	made := false
	if at.missing {
		if made, err = h.makeFolder(ctx, w); err != nil {
			return err
		}
	}
	if err := h.m.SetMountPoint(ctx, w.path, w.volume); err != nil {
		return h.notMounted(ctx, w, made, err)
	}
	return h.verifyMount(ctx, w)
}

// checkMounted decides what a mounted folder or link at the path means: success if it
// already shows the volume.
func (h host) checkMounted(ctx context.Context, w work, at standing) error {
	if at.volume != "" {
		switch same, err := h.sameVolume(ctx, at.volume, w.volume); {
		case err != nil:
			return winerr.Wrap(w.op, w.object(), err)
		case same:
			return nil
		}
	}
	// The second half is what democratic-csi looks for.
	return winerr.New(winerr.Exists, w.op, w.object(), "%s stands there: The requested access path is already in use", at.describe())
}

// makeFolder makes the folder to mount at, and its missing parents.
func (h host) makeFolder(ctx context.Context, w work) (made bool, err error) {
	made, err = h.makeDirectory(ctx, w.path)
	if winerr.CodeOf(err) == winerr.PathNotFound {
		return false, winerr.As(winerr.NotFound, w.op, w.object(), err, "this node has no such drive")
	}
	return made, winerr.Wrap(w.op, w.object(), err)
}

// makeDirectory makes a directory with its parents. That somebody was faster is fine: it
// is the directory that counts.
func (h host) makeDirectory(ctx context.Context, path string) (made bool, err error) {
	err = h.m.CreateDirectory(ctx, path)
	if winerr.CodeOf(err) == winerr.PathNotFound {
		parent, ok := winpath.Parent(path)
		if !ok {
			return false, err
		}
		if _, err := h.makeDirectory(ctx, parent); err != nil {
			return false, err
		}
		err = h.m.CreateDirectory(ctx, path)
	}
	if errors.Is(err, winerr.Exists) {
		return false, nil
	}
	return err == nil, err
}

// notMounted finds out why the mount failed, and takes back the folder if it was made for
// the mount.
func (h host) notMounted(ctx context.Context, w work, made bool, failure error) error {
	at, err := h.look(ctx, w.path)
	if err != nil {
		return winerr.Wrap(w.op, w.object(), failure)
	}
	if made && at.ordinary() {
		if err := h.m.Remove(ctx, w.path); err != nil {
			klog.FromContext(ctx).Info("The folder made for a mount stays behind", "path", w.path, "error", err)
		}
	}
	switch code := winerr.CodeOf(failure); {
	case code == winerr.DirNotEmpty && !at.missing && !at.ordinary():
		return h.checkMounted(ctx, w, at)
	case code == winerr.DirNotEmpty:
		return winerr.As(winerr.InUse, w.op, w.object(), failure, "only an empty folder can show a volume")
	case code == winerr.Directory:
		return winerr.As(winerr.Exists, w.op, w.object(), failure, "a file stands there")
	case code == winerr.InvalidFunction || code == winerr.NotSupported:
		return winerr.As(winerr.Unsupported, w.op, w.object(), failure, "only folders on NTFS can show a volume")
	default:
		return winerr.Wrap(w.op, w.object(), failure)
	}
}

// verifyMount asks the mount manager for what the folder shows now.
func (h host) verifyMount(ctx context.Context, w work) error {
	shown, err := h.m.VolumeAtRoot(ctx, w.path)
	if err != nil && !answered(err) {
		return winerr.Wrap(w.op, w.object(), err)
	}
	if err != nil {
		return winerr.As(winerr.Unavailable, w.op, w.object(), err, "the mount succeeded, but cannot be seen")
	}
	switch same, err := h.sameVolume(ctx, shown, w.volume); {
	case err != nil:
		return winerr.Wrap(w.op, w.object(), err)
	case !same:
		return winerr.New(winerr.Internal, w.op, w.object(), "the mount succeeded, but the folder shows volume %s", shown)
	}
	return nil
}
