package mounter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter/remote"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// UnstageRequest says what to unstage. Only Path is required.
type UnstageRequest struct {
	// Path is the staging path.
	Path string
	// Offline takes the disk offline, so that it can be detached without loss. The disk
	// stays online if its volume is mounted at another path. A read-only disk goes offline in any
	// case.
	Offline bool
	// Source is what was staged. It is not required where there are records, see docs/mounter.md. Without them, Unstage
	// needs it to undo a Stage that was interrupted before anything was at the path, if the driver was restarted since.
	Source Source
}

const opUnstage = "unstage volume at"

// Unstage undoes Stage: it writes what is cached, takes the disk offline if it should, takes the volume
// away from the path, and removes the path. A volume whose disk is gone is unmounted, too. A share is
// disconnected unless another link uses it. If nothing is there, Unstage succeeds. While a pod's link leads
// to the path, it fails with the code FailedPrecondition.
//
// The path goes last, so that a repetition completes an interrupted call with nothing but the path.
//
// A disk that is read-only goes offline, and becomes writable there: Windows keeps the flag for the
// place of a disk, and the next disk at that place would be read-only. This needs no memory of Stage,
// and so works after a restart of the driver. The flag does not say who set it: from Stage to Unstage
// it belongs to the Mounter, and what an operator or an earlier disk left there is cleared, too. A
// disk stays as it is if it is mounted at another folder, or if the platform protects it.
//
// If the disk fails to take what is cached, Unstage fails, and the volume stays at the path. A
// repetition that meets the same failure unmounts it, and logs what may be lost; with a daemon, the
// daemon's log has it. If the disk cannot go offline then, it stays as it is.
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
	if err := m.checkUnpublished(ctx, path); err != nil {
		return err
	}
	before, err := m.recall(ctx, path)
	if err != nil {
		return err
	}
	if before.source != nil {
		m.begun.Store(pathKey(path), before) // of an earlier process
	}
	if err := m.takeAway(ctx, path, request, before.source); err != nil {
		return err
	}
	return m.end(ctx, path, before)
}

// takeAway removes what is at a path. The path goes last: from it a repetition finds the disk or the share.
func (m *Mounter) takeAway(ctx context.Context, path string, request UnstageRequest, begun Source) error {
	at, err := m.emptyEntryAt(ctx, path)
	if err != nil {
		return err
	}
	// The original daemon disconnects a share also if others use it, so its driver has to ask for that.
	if _, share := begun.(SMB); request.Source == nil && !(share && at.unlisted) {
		request.Source = begun
	}
	switch {
	case at.kind == fsapi.MountEntry:
		return m.unstageVolume(ctx, path, at.target, request)
	case at.kind == fsapi.LinkEntry && isRemote(at.target):
		return m.unstageShare(ctx, path, at.target)
	case at.kind == fsapi.LinkEntry && !at.guessed:
		return newError(failure.InUse, "look at", path, "it is a link to %s, not a staged volume; a pod may use it", at.target)
	case at.kind == fsapi.FileEntry:
		return errForeign("look at", path, "it is not a folder", 0)
	}
	switch {
	case request.Source != nil:
		if err := request.Source.release(ctx, m, path, request); err != nil {
			return err
		}
	case at.kind == fsapi.LinkEntry:
		klog.FromContext(ctx).Info("Share stays connected, because the daemon does not report where the link leads", "path", path)
	}
	return m.remove(ctx, path)
}

// unstageVolume takes a volume from a path. Its disk, or only the volume while the disk is offline, may be gone.
func (m *Mounter) unstageVolume(ctx context.Context, path, id string, request UnstageRequest) error {
	number, found, err := m.diskBehind(ctx, id)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).V(4).Info("Unstaging volume", "path", path, "volume", id, "gone", !found)
	if found {
		unlock, err := m.locks.disk(ctx, number)
		if err != nil {
			return err
		}
		defer unlock()
		if err := m.takeDown(ctx, number, path, id, request.Offline); err != nil {
			return err
		}
		return m.remove(ctx, path)
	}
	switch s := request.Source.(type) {
	case ISCSI: // a target whose portals were away too long has a session, but no disks
		err = m.leave(ctx, s.Target, path, nil)
	case Disk: // a disk with an MBR, which is offline, names no volumes
		err = s.release(ctx, m, path, request)
	}
	if err != nil {
		return err
	}
	if err := m.node.unmount(ctx, id, path); err != nil {
		return err
	}
	return m.remove(ctx, path)
}

// diskBehind returns the disk of a volume, also if the disk is offline, as an interrupted call of Unstage leaves it.
// Windows then does not know the volume, but usually names volumes after their partitions.
func (m *Mounter) diskBehind(ctx context.Context, id string) (number uint32, found bool, err error) {
	number, err = m.node.diskOf(ctx, id)
	if !errors.Is(err, fs.ErrNotExist) {
		return number, err == nil, err
	}
	disk, err := m.node.findDisk(ctx, nodeapi.Query{Partition: strings.TrimSuffix(id[len(volumePrefix):], `}\`)})
	switch failure.ClassOf(err) {
	case failure.None:
		return disk.number, true, nil
	case failure.NotFound, failure.InUse: // it is gone, or copies cannot be distinguished
		return 0, false, nil
	case failure.Unavailable, failure.Unsupported:
		klog.FromContext(ctx).Info("A volume does not exist any more, and its disk cannot be found", "volume", id, "reason", err.Error())
		return 0, false, nil
	default:
		return 0, false, err
	}
}

// letGo takes a disk offline if it must be so or is read-only, and makes it writable. It leaves a disk
// alone that is mounted at another path: a pod may use it, and stays is true. A drive letter keeps only a writable disk
// online. The volume that must be on the disk, if there is one, is at the path, and is flushed before.
func (m *Mounter) letGo(ctx context.Context, disk foundDisk, path string, offline bool) (stays bool, err error) {
	number, id := disk.number, disk.mustBe.VolumeID
	disk.mustBe.Path = path
	readOnly, err := m.isReadOnly(ctx, foundDisk{number: number}) // the changes look which disk it is
	if err != nil {
		return false, m.unlessGone(ctx, number, err)
	}
	if !offline && !readOnly {
		return false, nil
	}
	paths, err := m.pathsOf(ctx, number)
	if err != nil {
		return false, m.unlessGone(ctx, number, err)
	}
	log := klog.FromContext(ctx)
	others := slices.DeleteFunc(paths, func(other string) bool {
		return pathKey(other) == pathKey(path) || readOnly && len(pathKey(other)) == len("c:")
	})
	if len(others) > 0 {
		log.Info("Disk stays online, because it is mounted at another path", "disk", number, "paths", others)
		return true, nil
	}
	same, loss := disk, ""
	if readOnly && id != "" { // of a disk that is offline, Windows knows only the volumes that a GPT names
		if known, err := m.node.findDisk(ctx, nodeapi.Query{Number: &number}); err == nil && known.mustBe != (diskapi.MustBe{}) {
			same = known
		}
	}
	if id != "" {
		if loss, err = m.flush(ctx, id, path); err != nil {
			return false, err
		}
	}
	err = m.node.setOnline(ctx, disk, false)
	if failure.ClassOf(err) == failure.InUse {
		log.Info("Disk stays online, because it is in use", "disk", number, "path", path, "reason", err.Error())
		return true, nil
	}
	if err == nil && readOnly {
		err = m.makeWritable(ctx, same)
	}
	switch late := m.isLate(path, err); {
	case err == nil || ctx.Err() != nil:
	case loss != "":
		log.Error(err, "Disk stays as it is, because it has failed; what was written last may be lost", "disk", number, "path", path, "flush", loss)
		return false, nil
	case late:
		log.Error(err, "Disk stays as it is, because Windows does not take it offline", "disk", number, "path", path)
		return false, nil
	}
	return false, m.unlessGone(ctx, number, err)
}

// offlineLimit is how long Windows gets to take a disk offline from which everything was flushed.
const offlineLimit = 6 * time.Minute

// isLate reports whether a disk could not go offline for offlineLimit, given the result of the last attempt.
func (m *Mounter) isLate(path string, err error) bool {
	if failure.ClassOf(err) != failure.Unavailable {
		m.late.Delete(pathKey(path))
		return false
	}
	since, _ := m.late.LoadOrStore(pathKey(path), time.Now())
	return time.Since(since.(time.Time)) >= offlineLimit //nolint:forcetypeassert // no other is stored
}

// flush writes what is cached for the volume at a path, unless the volume is gone.
func (m *Mounter) flush(ctx context.Context, id, path string) (loss string, err error) {
	loss, err = m.node.flush(ctx, id, path)
	if code, _ := failure.WindowsCode(err); code == errorDeviceNotConnected {
		return loss, err
	}
	return loss, ignoreMissing(err)
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

// unlessGone returns nil instead of an error if the disk is gone. One question that a disk does not answer does not
// prove that.
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
	return errors.Is(err, failure.Unsupported) || errors.Is(err, remote.ErrNoPipe)
}

// ignoreMissing returns nil if an object is gone.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func diskName(number uint32) string { return fmt.Sprintf("disk %d", number) }
