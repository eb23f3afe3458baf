package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskprobe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/lostvolume"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/queue"
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
	end := lostvolume.Unmounting(h.m, w.path)
	defer end()
	if !queue.Awaited(ctx) { // a flush can take minutes, and the next pod may have the answer meanwhile that the volume is mounted
		return winerr.New(winerr.Unavailable, w.op, w.object(), "its caller has left, so it stays mounted; call again")
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
	row  time.Duration // when the failures in a row began of which it is the last
	done bool          // by flushMounted
	loss error         // that flushMounted has accepted
}

// flushToUnmount writes what is cached. It accepts that a volume is gone or cannot be
// written: a dead disk must not keep its folder.
//
// A disk that fails may recover, so the first failure keeps the volume mounted. The second one in a
// row, of the same folder within flushRetry, is the loss that it returns: a pod must not wait for ever for a
// dying disk. One that does not answer may only be slow, see lostInSilence, and other failures may pass: they count when
// they have lasted for silenceLimit. ERROR_ACCESS_DENIED (5) does not: a repair has the volume then.
func (h host) flushToUnmount(ctx context.Context, w work) (loss, err error) {
	err = h.flush(ctx, w.volume)
	code := winerr.CodeOf(err)
	// The disk of a volume that Windows still has may come back.
	gone := code == winerr.FileNotFound || code == winerr.PathNotFound || errors.Is(err, winerr.NotFound) && lostvolume.Missing(ctx, h.m, w.volume)
	switch {
	case err == nil:
		return nil, nil
	case isSilence(err):
		return h.lostInSilence(ctx, w, err)
	case gone, code == winerr.UnrecognizedVolume, code == winerr.FVELocked, code == winerr.AccessDenied, !answered(err):
	default:
		lasting := silenceLimit
		if isDeviceError(err) || errors.Is(err, winerr.NotFound) {
			lasting = 0
		}
		if h.failsAgain(w, lasting) {
			return err, nil
		}
	}
	if before, found := h.unflushed.Load(w.volume); found && before.(lastFlush).done && gone {
		return nil, nil // its disk went offline after that
	}
	switch {
	case code == winerr.UnrecognizedVolume, code == winerr.FVELocked, gone:
		klog.FromContext(ctx).Info("The volume cannot be flushed and is unmounted anyway", "volume", w.volume, "path", w.path, "error", err)
		return nil, nil
	default:
		return nil, winerr.As(winerr.KindOf(err), w.op, w.object(), err, "its cache could not be written, so it stays mounted")
	}
}

// failsAgain notes a failed flush, and reports whether it repeats one, over the given time or after an accepted loss. The
// failures of other folders wait: if they counted as the last ones, a volume with two folders would keep both for ever.
func (h host) failsAgain(w work, lasting time.Duration) bool {
	now := lastFlush{path: winpath.Fold(w.path), at: h.m.Elapsed(), row: h.m.Elapsed()}
	value, _ := h.unflushed.Load(w.volume)
	before, found := value.(lastFlush)
	again := found && !before.done && now.at-before.at <= flushRetry
	if again && before.path != now.path {
		return false
	}
	if again {
		now.row, now.loss = before.row, before.loss
	}
	h.unflushed.Store(w.volume, now)
	return again && (now.at-now.row >= lasting || now.loss != nil)
}

// silenceLimit is how long a disk may be silent before what it has not written counts as lost. Failovers of arrays take
// two minutes; after six, Kubernetes detaches the disks of a node that does not answer.
const silenceLimit = 6 * time.Minute

// lostInSilence accepts the loss if a flush is stuck, and the disk has answered nothing for silenceLimit since. Any answer
// begins that time again, so it asks the disk.
func (h host) lostInSilence(ctx context.Context, w work, silence error) (loss, err error) {
	if disks, err := h.disksOf(ctx, w.op, w.volume); err == nil {
		for _, number := range disks {
			_ = diskprobe.Answers(ctx, h.m, win.PhysicalDrive(number))
		}
	}
	if lostvolume.Missing(ctx, h.m, w.volume) { // its disk was torn off meanwhile
		klog.FromContext(ctx).Info("The volume is gone and is unmounted", "volume", w.volume, "path", w.path)
		return nil, nil
	}
	before, _ := h.unflushed.Load(w.volume)
	accepted, _ := before.(lastFlush)
	again := accepted.loss != nil && accepted.path == winpath.Fold(w.path) && h.m.Elapsed()-accepted.at <= flushRetry
	if stuck, found := h.m.StuckChange(ctx, string(w.volume.Device())); found && (stuck.Silent >= silenceLimit || again) {
		return stuck, nil
	}
	return nil, winerr.As(winerr.Unavailable, w.op, w.object(), silence,
		fmt.Sprintf("its cache could not be written, so it stays mounted; when its disk has not answered for %.0f minutes, it is unmounted, and what is cached is lost", silenceLimit.Minutes()))
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
			h.unflushed.Store(w.volume, lastFlush{path: winpath.Fold(w.path), at: h.m.Elapsed(), done: loss == nil, loss: loss})
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
	klog.FromContext(ctx).Error(loss, "A volume was unmounted although its disk did not take what was cached. What was written last may be lost; check the disk",
		"volume", w.volume, "path", w.path)
	if h.onLoss != nil {
		h.onLoss(fmt.Sprintf("The volume %s was unmounted from %s although its disk did not take what was cached. What was written last may be lost; check the disk. %v",
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
