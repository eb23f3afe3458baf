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

// unmount takes a volume away from a folder and keeps the folder. It reads from the folder
// itself whether there is something to do and whether it was done: Windows does not document
// what DeleteVolumeMountPoint returns for a folder without a volume or with one that is gone.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-deletevolumemountpointw
func (h host) unmount(ctx context.Context, w work) error {
	entry, at, err := h.open(ctx, w, policy.Unmount)
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
	switch now, err := h.read(ctx, entry); {
	case err != nil:
		return winerr.Wrap(w.op, w.object(), err)
	case now != at:
		return nil
	case errors.Is(failure, winerr.Denied) || errors.Is(failure, winerr.Busy):
		return winerr.Wrap(w.op, w.object(), failure)
	}
	return h.removeMountPoint(ctx, w, entry)
}

// checkShown fails if the path does not show the volume.
func (h host) checkShown(ctx context.Context, w work, at pathState) error {
	if at.volume != "" {
		switch same, err := h.files().SameVolume(ctx, at.volume, w.volume); {
		case err != nil:
			return winerr.Wrap(w.op, w.object(), err)
		case same:
			return nil
		}
	}
	// democratic-csi looks for the second half.
	return winerr.New(winerr.InUse, w.op, w.object(), "the path is %s and is not changed: The access path is not valid", at.describe())
}

// flushToUnmount writes what is cached. It accepts that a volume is gone or cannot be
// written: a dead disk must not keep its folder.
func (h host) flushToUnmount(ctx context.Context, w work) error {
	err := h.flush(ctx, w.volume)
	if err == nil {
		return nil
	}
	switch code := winerr.CodeOf(err); {
	case code == winerr.NotReady, code == winerr.UnrecognizedVolume, code == winerr.FVELocked, errors.Is(err, winerr.NotFound):
		klog.FromContext(ctx).Info("The volume cannot be flushed and is unmounted anyway", "volume", w.volume, "path", w.path, "error", err)
		return nil
	default:
		return winerr.As(winerr.KindOf(err), w.op, w.object(), err, "its cache could not be written, so it stays mounted")
	}
}

// removeMountPoint works around the mount manager, which refuses volumes it no longer knows.
// Removing a mounted folder removes only the folder; the record that stays in the mount
// manager's database is harmless. Callers remove the folder next or use it again, so
// removeMountPoint replaces it with an empty one.
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
