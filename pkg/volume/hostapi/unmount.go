package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

const opUnmount = "unmount volume"

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
	loss, err := h.flushToUnmount(ctx, w)
	if err != nil {
		return err
	}
	if err := h.removeFrom(ctx, w, entry, at); err != nil {
		return err
	}
	if before, found := h.unflushed.LoadAndDelete(w.volume); found && loss == nil {
		loss = before.(lastFlush).loss
	}
	if loss != nil {
		h.report(ctx, w, loss)
	}
	return nil
}

// UnmountGone leaves alone what is not the mounted folder of a volume that is certainly gone.
func (b boundHost) UnmountGone(path string) error {
	ctx, h := b.ctx, b.host
	_, link, err := h.files().Link(ctx, opUnmount, path)
	if errors.Is(err, winerr.NotFound) {
		return nil
	}
	if err != nil {
		return winerr.Wrap(opUnmount, path, err)
	}
	text, _ := link.MountedVolume()
	id, ok := win.ParseVolumeID(text)
	if !ok {
		return nil
	}
	if gone, err := h.gone.Volume(ctx, h.m, id); !gone {
		return winerr.Wrap(opUnmount, path, err)
	}
	klog.FromContext(ctx).Info("Unmounting a volume that is gone: its last link was removed, and a driver asks what is mounted", "volume", id, "path", path)
	return h.atFolder(ctx, opUnmount, string(id), path, policy.Unmount, h.unmount)
}

// removeFrom takes a volume away from a folder that was as given a moment ago.
func (h host) removeFrom(ctx context.Context, w work, entry policy.Entry, at pathState) error {
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
	// democratic-csi looks for the second half.
	return h.shows(ctx, w, at, winerr.New(winerr.InUse, w.op, w.object(), "the path is %s and is not changed: The access path is not valid", at.describe()))
}

// flushRetry is how long after a failed flush the next one counts as its retry. Kubelet waits up to two minutes.
const flushRetry = 10 * time.Minute

// lastFlush is a flush for which UnmountVolume has left a volume mounted, or the one of flushMounted.
type lastFlush struct {
	path string
	at   time.Duration
	done bool  // by flushMounted
	loss error // that flushMounted has accepted
}

// flushToUnmount writes what is cached. It accepts that a volume is gone or cannot be
// written: a dead disk must not keep its folder.
//
// A disk that fails may recover, so the first failure keeps the volume mounted. The second one in a
// row, of the same folder within flushRetry, is the loss that it returns: a pod must not wait for ever for a
// dying disk.
func (h host) flushToUnmount(ctx context.Context, w work) (loss, err error) {
	err = h.flush(ctx, w.volume)
	if err == nil {
		return nil, nil
	}
	if isDeviceError(err) {
		now := lastFlush{path: winpath.Fold(w.path), at: h.m.Elapsed()}
		before, found := h.unflushed.Swap(w.volume, now)
		if first, _ := before.(lastFlush); found && !first.done && first.path == now.path && now.at-first.at <= flushRetry {
			return err, nil
		}
	}
	if before, found := h.unflushed.Load(w.volume); found && before.(lastFlush).done && errors.Is(err, winerr.NotFound) {
		return nil, nil // its disk went offline after that
	}
	switch code := winerr.CodeOf(err); {
	case code == winerr.NotReady, code == winerr.UnrecognizedVolume, code == winerr.FVELocked, errors.Is(err, winerr.NotFound):
		klog.FromContext(ctx).Info("The volume cannot be flushed and is unmounted anyway", "volume", w.volume, "path", w.path, "error", err)
		return nil, nil
	default:
		return nil, winerr.As(winerr.KindOf(err), w.op, w.object(), err, "its cache could not be written, so it stays mounted")
	}
}

// lossError is a loss, as the result of a change that callers share.
type lossError struct{ error }

// FlushToUnmount does the first half of unmount.
func (b boundHost) FlushToUnmount(volumeID, path string) (loss string, err error) {
	ctx, h := b.ctx, b.host
	err = h.atFolder(ctx, opFlush, volumeID, path, policy.Unmount, func(ctx context.Context, w work) error {
		entry, at, err := h.open(ctx, w, policy.Unmount)
		if err != nil {
			return winerr.Wrap(w.op, w.object(), err)
		}
		defer entry.Close()
		if at.missing || at.ordinary() {
			return nil
		}
		if err := h.checkShown(ctx, w, at); err != nil {
			return err
		}
		loss, err := h.flushToUnmount(ctx, w)
		if err == nil {
			h.unflushed.Store(w.volume, lastFlush{winpath.Fold(w.path), h.m.Elapsed(), loss == nil, loss})
		}
		if loss != nil {
			return lossError{loss}
		}
		return err
	})
	var lost lossError
	if errors.As(err, &lost) {
		return lost.Error(), nil
	}
	return "", err
}

// report says that what was written last may be lost. The response of UnmountVolume has no place for
// it, and an error would keep the pod.
func (h host) report(ctx context.Context, w work, loss error) {
	klog.FromContext(ctx).Error(loss, "A volume was unmounted although its disk failed twice to take what was cached. What was written last may be lost; check the disk",
		"volume", w.volume, "path", w.path)
	if h.onLoss != nil {
		h.onLoss(fmt.Sprintf("The volume %s was unmounted from %s although its disk failed twice to take what was cached. What was written last may be lost; check the disk. %v",
			w.volume, w.path, loss))
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
