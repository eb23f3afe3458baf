package api

import (
	"cmp"
	"context"
	"errors"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/lostvolume"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/queue"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

const opMount = "mount volume"

// atFolder does something to a volume at a folder when it is its turn.
func (h host) atFolder(ctx context.Context, op, volumeID, path string, access policy.Access, do func(context.Context, work) error) error {
	id, err := parseID(op, volumeID)
	if err != nil {
		return err
	}
	w := work{op: op, volume: id, path: path, limits: h.limits}
	if err := checkFolder(w, access); err != nil {
		return err
	}
	change := h.change // the removal of a mount needs no disk, and is never refused
	if access == policy.Mount {
		change = h.changeContent
	}
	return change(ctx, w, func(ctx context.Context) error {
		err := do(ctx, w)
		if err == nil && access == policy.Mount {
			h.unflushed.Delete(id) // what was lost before is no reason to lose more
		}
		return err
	})
}

// mount shows a volume at a folder, which it makes if the path does not exist. It replaces the mount of
// a volume that is gone, and never anything else.
// https://learn.microsoft.com/windows/win32/fileio/volume-mount-points
func (h host) mount(ctx context.Context, w work) error {
	entry, at, err := h.open(ctx, w, policy.Mount)
	if err != nil {
		return winerr.Wrap(w.op, w.object(), err)
	}
	defer func() { entry.Close() }() // makeFolder may replace entry
	var taken error
	if !at.missing && !at.ordinary() {
		if taken = h.checkMounted(ctx, w, at); taken == nil {
			_, err := h.m.DeviceNumber(ctx, w.volume.Device())
			if errors.Is(err, winerr.NotFound) {
				return failed(w.op, w.volume, err) // as for a folder where it is not mounted
			}
			if stuck, found := h.m.StuckChange(ctx, winpath.Fold(w.path)); found { // an unmount that is late
				return winerr.As(winerr.Unavailable, w.op, w.object(), stuck, "")
			}
			return nil
		} else if at.volume == "" || !errors.Is(taken, winerr.Exists) {
			return taken
		} else if gone, failure := h.lost.Volume(ctx, h.m, at.volume); !gone {
			return cmp.Or(winerr.Wrap(w.op, w.object(), failure), taken)
		}
	}
	// Windows would mount a volume without a file system, and every access to the folder
	// would fail. This is also how we learn that the volume exists.
	fileSystem, err := h.fileSystem(ctx, w.op, w.volume)
	switch {
	case err != nil:
		return err
	case fileSystem.Name == "":
		return failed(w.op, w.volume, winerr.UnrecognizedVolume)
	}
	switch unfinished, err := h.unfinished(ctx, w.op, w.volume, fileSystem); {
	case err != nil:
		return err
	case unfinished:
		return winerr.New(winerr.InUse, w.op, w.object(), "its format was interrupted before the access to its root was set; FormatVolume completes it")
	}
	if err := h.refuseSystemVolume(ctx, w); err != nil {
		return err
	}
	if at.volume != "" {
		if !lostvolume.Missing(ctx, h.m, at.volume) { // it has come back
			return cmp.Or(winerr.Wrap(w.op, w.object(), ctx.Err()), taken)
		}
		if err := h.removeFrom(ctx, w, entry, at); err != nil {
			return err
		}
	}
	if !queue.Awaited(ctx) { // a question above can take minutes, and the volume may have been unstaged since
		return winerr.New(winerr.Unavailable, w.op, w.object(), "its caller has left, so it is not mounted; call again")
	}
	made := false
	if at.missing {
		if made, err = h.makeFolder(ctx, w, &entry); err != nil {
			return err
		}
	}
	defer h.m.Announce(win.Mounting, winpath.Fold(w.path))() // the path of the call below is another one if a link is on the way
	if err := h.setMountPoint(ctx, w, entry); err != nil {
		return h.notMounted(ctx, w, entry, made, err)
	}
	if fileSystem.ReadOnly { // which may be intended; if not, the first write of a pod fails
		klog.FromContext(ctx).Info("The mounted volume is read-only; csi-proxyctl disk writable changes its disk", "volume", w.volume, "path", w.path)
	}
	return nil
}

// refuseSystemVolume does not mount the volumes that Windows needs: a pod that can write to
// such a folder controls the node.
func (h host) refuseSystemVolume(ctx context.Context, w work) error {
	system, err := h.m.SystemVolumes(ctx)
	if err != nil {
		return winerr.As(winerr.KindOf(err), w.op, w.object(), err, "so csi-proxy cannot tell the volumes of the system from others")
	}
	switch same, err := h.files().SameVolume(ctx, w.volume, system...); {
	case err != nil:
		return winerr.Wrap(w.op, w.object(), err)
	case same:
		return winerr.New(winerr.Denied, w.op, w.object(), "Windows runs from this volume")
	}
	return nil
}

// setMountPoint waits for other processes that have the folder open: virus scanners keep it
// open for some milliseconds.
func (h host) setMountPoint(ctx context.Context, w work, entry policy.Entry) error {
	var failure error
	_, err := h.poll(ctx, func() (done bool, err error) {
		failure = entry.Dir.SetMountPoint(ctx, entry.Name, w.volume)
		return winerr.CodeOf(failure) != winerr.SharingViolation, nil
	})
	if err != nil {
		return err
	}
	return failure
}

// checkMounted is the result of a mount at a mounted folder or link: success if it already
// shows the volume.
func (h host) checkMounted(ctx context.Context, w work, at pathState) error {
	// democratic-csi looks for the second half.
	return h.shows(ctx, w, at, winerr.New(winerr.Exists, w.op, w.object(), "the path is %s: The requested access path is already in use", at.describe()))
}

// shows returns otherwise if the path does not show the volume.
func (h host) shows(ctx context.Context, w work, at pathState, otherwise error) error {
	if at.volume == "" {
		return otherwise
	}
	same, err := h.files().SameVolume(ctx, at.volume, w.volume)
	if err == nil && !same {
		return otherwise
	}
	return winerr.Wrap(w.op, w.object(), err)
}

// makeFolder makes the folder to mount at, and its missing parents. It succeeds if another
// process makes the folder at the same time.
func (h host) makeFolder(ctx context.Context, w work, entry *policy.Entry) (made bool, err error) {
	if entry.Dir != nil {
		err = entry.Dir.CreateDirectory(ctx, entry.Name)
		made = err == nil
		if errors.Is(err, winerr.Exists) {
			err = nil
		}
		return made, winerr.Wrap(w.op, w.object(), err)
	}
	*entry, made, err = h.files().Make(ctx, w.op, w.path, policy.Mount)
	if winerr.CodeOf(err) == winerr.PathNotFound {
		return false, winerr.As(winerr.NotFound, w.op, w.object(), err, "this node has no such drive")
	}
	return made, winerr.Wrap(w.op, w.object(), err)
}

// notMounted finds out why the mount failed, and removes the folder if it was made for the
// mount.
func (h host) notMounted(ctx context.Context, w work, entry policy.Entry, made bool, failure error) error {
	at, err := h.read(ctx, entry)
	if err != nil {
		return winerr.Wrap(w.op, w.object(), failure)
	}
	if made && at.ordinary() {
		if err := entry.Dir.Remove(ctx, entry.Name); err != nil {
			klog.FromContext(ctx).Info("The folder made for a mount could not be removed", "path", w.path, "error", err)
		}
	}
	switch code := winerr.CodeOf(failure); {
	case code == winerr.DirNotEmpty && !at.missing && !at.ordinary():
		return h.checkMounted(ctx, w, at)
	case code == winerr.DirNotEmpty:
		return winerr.As(winerr.InUse, w.op, w.object(), failure, "a volume can be mounted only at an empty folder")
	case code == winerr.Directory:
		return winerr.As(winerr.Exists, w.op, w.object(), failure, "the path is a file")
	case code == winerr.InvalidFunction || code == winerr.NotSupported:
		return winerr.As(winerr.Unsupported, w.op, w.object(), failure, "a volume can be mounted only on NTFS")
	default:
		return winerr.Wrap(w.op, w.object(), failure)
	}
}
