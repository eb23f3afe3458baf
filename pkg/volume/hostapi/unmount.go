package api

import (
	"context"
	"errors"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const opUnmount = "unmount volume"

func (h host) unmountVolume(ctx context.Context, volumeID, targetPath string) error {
	id, err := parseID(opUnmount, volumeID)
	if err != nil {
		return err
	}
	w := work{op: opUnmount, volume: id, path: targetPath, limits: h.limits}
	if err := checkFolder(w, policy.Unmount); err != nil {
		return err
	}
	return h.change(ctx, w, func(ctx context.Context) error { return h.unmount(ctx, w) })
}

// unmount takes a volume away from a folder and keeps the folder. Whether anything has to
// be done, and whether it was done, is read from the folder itself: what the function of
// Windows says about folders without a volume, and with one that is gone, is not clear.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-deletevolumemountpointw
func (h host) unmount(ctx context.Context, w work) error {
	entry, at, err := h.find(ctx, w, policy.Unmount)
	if err != nil {
		return winerr.Wrap(w.op, w.object(), err)
	}
	defer entry.Close()
	if at.missing || at.ordinary() {
		klog.FromContext(ctx).V(2).Info("No volume is mounted there", "volume", w.volume, "path", w.path)
		return nil
	}
	if err := h.checkShown(ctx, w, at); err != nil {
		return err
	}
	if err := h.flushToUnmount(ctx, w); err != nil {
		return err
	}
	failure := entry.Dir.DeleteMountPoint(ctx, entry.Name)
	if failure != nil && !answered(failure) {
		return winerr.Wrap(w.op, w.object(), failure)
	}
	switch now, err := h.look(ctx, entry); {
	case err != nil:
		return winerr.Wrap(w.op, w.object(), err)
	case now != at:
		return nil
	case errors.Is(failure, winerr.Denied) || errors.Is(failure, winerr.Busy):
		return winerr.Wrap(w.op, w.object(), failure)
	}
	return h.removeMountPoint(ctx, w, entry)
}

// checkShown fails if it is not the volume that the path shows.
func (h host) checkShown(ctx context.Context, w work, at standing) error {
	if at.volume != "" {
		switch same, err := h.files().SameVolume(ctx, at.volume, w.volume); {
		case err != nil:
			return winerr.Wrap(w.op, w.object(), err)
		case same:
			return nil
		}
	}
	// The second half is what democratic-csi looks for.
	return winerr.New(winerr.InUse, w.op, w.object(), "%s stands there and stays: The access path is not valid", at.describe())
}

// flushToUnmount writes what is cached. A volume that is gone, or whose content cannot be
// reached, has nothing left to write to: a dead disk must not keep its folder.
func (h host) flushToUnmount(ctx context.Context, w work) error {
	err := h.flush(ctx, w.volume)
	if err == nil {
		return nil
	}
	switch code := winerr.CodeOf(err); {
	case code == winerr.NotReady, code == winerr.UnrecognizedVolume, code == winerr.FVELocked, errors.Is(err, winerr.NotFound):
		klog.FromContext(ctx).Info("The volume cannot be flushed and is unmounted without", "volume", w.volume, "path", w.path, "error", err)
		return nil
	default:
		return winerr.As(winerr.KindOf(err), w.op, w.object(), err, "its cache could not be written, so it stays mounted")
	}
}

// removeMountPoint does without the mount manager, which refuses volumes it no longer
// knows: removing the mounted folder removes only the folder. The record that stays in the
// mount manager's database does no harm. Callers remove the folder next, or use it again,
// so an empty one takes its place.
func (h host) removeMountPoint(ctx context.Context, w work, entry policy.Entry) error {
	if err := entry.Dir.Remove(ctx, entry.Name); err != nil {
		return winerr.Wrap(w.op, w.object(), err)
	}
	err := entry.Dir.CreateDirectory(ctx, entry.Name)
	if errors.Is(err, winerr.Exists) {
		return nil
	}
	return winerr.Wrap(w.op, w.object(), err)
}
