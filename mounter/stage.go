package mounter

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// StageRequest says what to stage, and where. Path and Source are required.
type StageRequest struct {
	// Path is the staging path.
	Path string
	// Source is what the volume is on. A disk must have one volume, or be blank.
	Source Source
	// FSType is the file system of a disk that has none: ntfs or refs, in any case. Editions of Windows that cannot make ReFS
	// refuse it. Empty, or one of Linux such as ext4, is the node's default, NTFS unless the daemon has another. A file system
	// that is there is kept. For a share it means nothing.
	FSType string
	// MountFlags are the mount options of CSI. Windows has none, so those of Linux are ignored, but ro is ReadOnly.
	MountFlags []string
	// Format is what a new file system is like. It has no effect on a disk that has one.
	Format FormatOptions
	// ReadOnly says that reading suffices, and makes the disk read-only while it is staged: Windows does not write to it, not even
	// to mount its file system. The disk must have a file system, and must not be mounted for
	// writing at another path. A share cannot be read-only here: its server says who can write.
	ReadOnly bool
}

// FormatOptions are what a new file system is like. Zero values leave the choice to the daemon's
// flags and to Windows.
type FormatOptions struct {
	// AllocationUnitSize is the cluster size in bytes, a power of two from 512 to 2 MiB.
	AllocationUnitSize uint32
	// Label is the name of the file system, at most 32 characters.
	Label string
	// RootAccess says who has access to the root directory: "users-modify", or an access list in
	// SDDL.
	RootAccess string
}

// Staged is a staged volume.
type Staged struct {
	// DiskNumber is the number that Windows gave the disk, and VolumeID its volume. Both are empty
	// for a share.
	DiskNumber uint32
	VolumeID   string
	// Paths is how many paths lead to the disk of an iSCSI target: with MPIO, one for each portal that answers.
	Paths int
}

const opStage = "stage volume at"

// Stage makes a volume appear at the staging path. It looks at the path first: if another volume is there, or
// files, it fails and changes nothing.
//
// A disk is found by its keys; if Windows has not seen it yet, Stage makes Windows look for it. It
// comes online and writable. A blank disk gets a partition and a file system; one with data keeps
// it, and one with data that Windows does not recognise is refused, as is the disk of Windows. The
// volume is mounted at the path.
//
// A share is connected, and the path becomes a link to it. An empty folder at the path is replaced.
func (m *Mounter) Stage(ctx context.Context, request StageRequest) (Staged, error) {
	path, err := m.path(request.Path)
	if err != nil {
		return Staged{}, during(opStage, request.Path, err)
	}
	request.Source = sourceOf(request.Source)
	request.ReadOnly = request.ReadOnly || slices.Contains(optionsOf(request.MountFlags), "ro")
	if err := request.check(); err != nil {
		return Staged{}, during(opStage, path, err)
	}
	unlock, err := m.locks.paths(ctx, path)
	if err != nil {
		return Staged{}, during(opStage, path, err)
	}
	defer unlock()
	request = m.ignoreLinux(ctx, request)
	staged, err := request.Source.stage(ctx, m, path, request)
	return staged, during(opStage, path, err)
}

func (r StageRequest) check() error {
	if r.Source == nil {
		return newError(failure.Invalid, opCheck, "", "it has no source; set Source to a Disk, SMB or ISCSI")
	}
	return r.Source.check(r)
}

// stageDisk mounts the volume of a disk at a path, where there is the volume that checkFree has returned. The disk may have
// left since it was found, so that another one has its number: then stageDisk begins again with the one that has the keys.
func (m *Mounter) stageDisk(ctx context.Context, disk foundDisk, keys Disk, path, there string, request StageRequest) (Staged, error) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		staged, err := m.stageFound(ctx, disk, path, there, request)
		if err == nil || !isAnother(err) || attempt == attempts {
			return staged, err
		}
		again, findErr := m.node.findDisk(ctx, nodeapi.Query(keys))
		if findErr != nil || again == disk {
			return staged, err
		}
		klog.FromContext(ctx).Info("Staging again, because the disk has another number now", "was", disk.number, "is", again.number, "path", path, "reason", err.Error())
		disk = again
	}
}

func (m *Mounter) stageFound(ctx context.Context, disk foundDisk, path, there string, request StageRequest) (Staged, error) {
	number := disk.number
	unlock, err := m.locks.disk(ctx, number)
	if err != nil {
		return Staged{}, err
	}
	defer unlock()
	m.staging.Store(number, path)
	defer m.staging.Delete(number)
	if there != "" {
		switch on, err := m.node.diskOf(ctx, there); {
		case errors.Is(err, fs.ErrNotExist): // it is replaced
			there = ""
		case err != nil:
			return Staged{}, err
		case on != number:
			return Staged{}, newError(failure.Exists, "look at", path, "a volume of disk %d is mounted there; unstage that volume first", on)
		}
	}
	klog.FromContext(ctx).V(4).Info("Staging disk", "disk", number, "path", path, "readOnly", request.ReadOnly)
	source := request.Source
	if _, ok := source.(Disk); ok {
		source = disk.source(source)
	}
	readOnly, err := m.isReadOnlyYet(ctx, path, there, request)
	if err != nil {
		return Staged{}, err
	}
	if err := m.begin(ctx, path, source, readOnly); err != nil {
		return Staged{}, err
	}
	id, err := m.prepare(ctx, disk, path, there, request)
	if err != nil {
		if failure.ClassOf(err) == failure.InUse && there == "" { // the disk is not ours
			m.drop(ctx, path)
		}
		return Staged{}, err
	}
	if err := m.begin(ctx, path, source, request.ReadOnly); err != nil {
		return Staged{}, err
	}
	if err := m.clearPath(ctx, path, id); err != nil {
		return Staged{}, err
	}
	if err := m.node.mount(ctx, id, path); err != nil {
		return Staged{}, err
	}
	return Staged{DiskNumber: number, VolumeID: id}, nil
}

// find returns a disk. One that was just attached may need a rescan to be seen.
func (m *Mounter) find(ctx context.Context, disk Disk) (foundDisk, error) {
	query := nodeapi.Query(disk)
	found, err := m.node.findDisk(ctx, query)
	if !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	if err := m.node.rescan(ctx); err != nil {
		return foundDisk{}, err
	}
	return m.node.findDisk(ctx, query)
}

// prepare brings a disk into the state in which its volume can be mounted, and returns the volume.
func (m *Mounter) prepare(ctx context.Context, disk foundDisk, path, there string, request StageRequest) (string, error) {
	if request.ReadOnly {
		id, err := m.prepareReadOnly(ctx, disk, path, there)
		if err != nil || there != "" {
			return id, err
		}
		return id, m.reportHealth(ctx, id)
	}
	// It leaves a disk alone that has partitions. One that is blank but read-only can be written to
	// only when it is writable; PartitionDisk sees to that.
	if err := m.node.partition(ctx, disk); err != nil {
		return "", err
	}
	// A disk that was offline becomes writable, too.
	if err := m.node.setOnline(ctx, disk, true); err != nil {
		return "", err
	}
	id, readOnly, err := m.onlyVolume(ctx, disk)
	if err != nil {
		return "", err
	}
	if readOnly { // because of an earlier staging with ReadOnly
		if err := m.checkReadOnlyElsewhere(ctx, disk, path); err != nil {
			return "", err
		}
		if err := m.makeWritable(ctx, disk); err != nil {
			return "", err
		}
		if err := m.checkWritable(ctx, disk, path, there); err != nil {
			return "", err
		}
	}
	// The original's FormatVolume erases a volume that is formatted.
	switch formatted, err := m.node.isFormatted(ctx, id); {
	case err != nil:
		return "", err
	case formatted && there != "": // pods may use it
		return id, nil
	case formatted:
		return id, m.reportHealth(ctx, id)
	}
	return id, m.node.format(ctx, id, request.FSType, request.Format)
}

// prepareReadOnly writes nothing to the disk, and gives Windows no moment to do so. A disk that is not
// fit for it is released, because nothing will be unstaged.
func (m *Mounter) prepareReadOnly(ctx context.Context, disk foundDisk, path, there string) (string, error) {
	if err := m.unmountWritable(ctx, disk, path, there); err != nil {
		return "", err
	}
	if err := m.node.onlineReadOnly(ctx, disk); err != nil {
		return "", err
	}
	id, _, err := m.onlyVolume(ctx, disk)
	if err == nil {
		var formatted bool
		if formatted, err = m.node.isFormatted(ctx, id); err == nil && !formatted {
			err = errBlank(disk.number)
		}
	}
	if failure.ClassOf(err) == failure.InUse && there == "" {
		if _, releaseErr := m.letGo(ctx, disk, path, false); releaseErr != nil {
			klog.FromContext(ctx).Info("Disk stays read-only", "disk", disk.number, "reason", releaseErr.Error())
		}
	}
	return id, err
}

// unmountWritable takes a writable disk away from the staging path, where an earlier life may have left
// it: to become read-only it goes offline, which is refused for a disk that is mounted. A pod that uses it keeps it.
func (m *Mounter) unmountWritable(ctx context.Context, disk foundDisk, path, there string) error {
	if there == "" {
		return nil
	}
	readOnly, err := m.isReadOnly(ctx, disk)
	if err != nil || readOnly {
		return err
	}
	if err := m.checkUnpublished(ctx, path); err != nil {
		return err
	}
	return m.node.unmount(ctx, there, path)
}

func errBlank(number uint32) error {
	return newError(failure.InUse, "look at", diskName(number), "it has no file system, and cannot get one read-only; stage it once with ReadOnly false")
}

// checkReadOnlyElsewhere refuses a disk that is staged read-only at another path: other nodes may read it, too.
func (m *Mounter) checkReadOnlyElsewhere(ctx context.Context, disk foundDisk, path string) error {
	paths, err := m.pathsOf(ctx, disk.number)
	at := slices.IndexFunc(paths, func(at string) bool { return pathKey(at) != pathKey(path) })
	if err != nil || at < 0 {
		return err
	}
	return newError(failure.InUse, "look at", diskName(disk.number), "it is read-only and mounted at %s; unstage that volume first, or set ReadOnly", paths[at])
}

// makeWritable clears the attribute. A disk that the platform protects stays read-only, and can be read.
func (m *Mounter) makeWritable(ctx context.Context, disk foundDisk) error {
	err := m.node.setReadOnly(ctx, disk, false)
	if failure.ClassOf(err) == failure.InUse {
		klog.FromContext(ctx).Info("Disk stays read-only", "disk", disk.number, "reason", err.Error())
		return nil
	}
	return err
}

// checkWritable refuses a disk that the platform protects. One that pods use has become so, which Condition says.
func (m *Mounter) checkWritable(ctx context.Context, disk foundDisk, path, there string) error {
	if there != "" {
		return nil
	}
	readOnly, err := m.isReadOnly(ctx, disk)
	if err != nil || !readOnly {
		return err
	}
	if _, err := m.letGo(ctx, disk, path, false); err != nil {
		return err
	}
	return newError(failure.InUse, "look at", diskName(disk.number), "the platform protects it from writing; set ReadOnly if reading suffices")
}

// isReadOnly is false for a daemon that cannot tell: it cannot make a disk read-only either.
func (m *Mounter) isReadOnly(ctx context.Context, disk foundDisk) (bool, error) {
	readOnly, err := m.node.isReadOnly(ctx, disk)
	if errors.Is(err, errors.ErrUnsupported) {
		return false, nil
	}
	return readOnly, err
}

// onlyVolume returns the volume of a disk, and whether the disk is read-only. A disk with several was not made for a
// driver, and the first of them may be a boot partition.
//
// A volume is listed by the number of its disk. The question whether the disk is read-only, after that, shows that it still
// has the number. From there on the volume is known by its own name, which leaves with its disk.
func (m *Mounter) onlyVolume(ctx context.Context, disk foundDisk) (id string, readOnly bool, err error) {
	volumes, err := m.node.volumes(ctx, disk.number)
	switch {
	case err != nil:
		return "", false, err
	case len(volumes) == 0:
		return "", false, errBlank(disk.number)
	case len(volumes) > 1:
		return "", false, newError(failure.InUse, "look at", diskName(disk.number), "it has %d volumes instead of one; use a disk that a driver has formatted", len(volumes))
	}
	readOnly, err = m.isReadOnly(ctx, disk)
	return volumes[0], readOnly, err
}

// clearPath removes a mount that a lost disk left at the path. Whatever else is there, other than
// the volume itself, makes the mount fail.
func (m *Mounter) clearPath(ctx context.Context, path, id string) error {
	there, err := m.node.mountedAt(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case strings.EqualFold(there, id):
		return nil
	}
	if live, err := m.node.isLiveLink(ctx, path); err != nil || live {
		return err
	}
	klog.FromContext(ctx).Info("Removing the mount of a volume that is gone", "path", path, "volume", there)
	return m.remove(ctx, path)
}
