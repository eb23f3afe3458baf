package mounter

import (
	"context"
	"errors"
	"io/fs"
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
	// FSType is the file system of a disk that has none: ntfs, which is also the default, or refs, in any case. Editions
	// of Windows that cannot make ReFS refuse it. A file system that is there is kept.
	FSType string
	// Check is what to do about a volume that is dirty or damaged.
	Check Check
	// Format is what a new file system is like. It has no effect on a disk that has one.
	Format FormatOptions
	// ReadOnly makes the disk read-only while it is staged: Windows does not write to it, not even
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
	if err := request.check(); err != nil {
		return Staged{}, during(opStage, path, err)
	}
	unlock, err := m.locks.paths(ctx, path)
	if err != nil {
		return Staged{}, during(opStage, path, err)
	}
	defer unlock()
	staged, err := request.Source.stage(ctx, m, path, request)
	return staged, during(opStage, path, err)
}

func (r StageRequest) check() error {
	if r.Source == nil {
		return newError(failure.Invalid, opCheck, "", "it has no source; set Source to a Disk, SMB or ISCSI")
	}
	if err := r.Check.check(); err != nil {
		return err
	}
	return r.Source.check(r)
}

// stageDisk mounts the volume of a disk at a path, where there is the volume that checkFree has returned.
func (m *Mounter) stageDisk(ctx context.Context, number uint32, path, there string, request StageRequest) (Staged, error) {
	unlock, err := m.locks.disk(ctx, number)
	if err != nil {
		return Staged{}, err
	}
	defer unlock()
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
	m.begin(path, request.Source)
	id, err := m.prepare(ctx, number, path, there, request)
	if err != nil {
		if failure.ClassOf(err) == failure.InUse { // the disk is not ours
			m.end(path)
		}
		return Staged{}, err
	}
	if err := m.clearPath(ctx, path, id); err != nil {
		return Staged{}, err
	}
	if err := m.node.mount(ctx, id, path); err != nil {
		return Staged{}, err
	}
	if !request.ReadOnly {
		m.writable.Store(strings.ToLower(id), true)
	}
	return Staged{DiskNumber: number, VolumeID: id}, nil
}

// begin remembers the source of a volume, until end.
func (m *Mounter) begin(path string, source Source) { m.begun.Store(pathKey(path), source.keys()) }

func (m *Mounter) end(path string) { m.begun.Delete(pathKey(path)) }

// find returns the number of a disk. One that was just attached may need a rescan to be seen.
func (m *Mounter) find(ctx context.Context, disk Disk) (uint32, error) {
	query := nodeapi.Query(disk)
	number, err := m.node.findDisk(ctx, query)
	if !errors.Is(err, fs.ErrNotExist) {
		return number, err
	}
	if err := m.node.rescan(ctx); err != nil {
		return 0, err
	}
	return m.node.findDisk(ctx, query)
}

// prepare brings a disk into the state in which its volume can be mounted, and returns the volume.
func (m *Mounter) prepare(ctx context.Context, number uint32, path, there string, request StageRequest) (string, error) {
	if request.ReadOnly {
		id, err := m.prepareReadOnly(ctx, number, path, there)
		if err != nil || there != "" {
			return id, err
		}
		return id, m.checkHealth(ctx, id, request)
	}
	// It leaves a disk alone that has partitions. One that is blank but read-only can be written to
	// only when it is writable; PartitionDisk sees to that.
	if err := m.node.partition(ctx, number); err != nil {
		return "", err
	}
	// A disk that was offline becomes writable, too.
	if err := m.node.setOnline(ctx, number, true); err != nil {
		return "", err
	}
	if err := m.makeWritable(ctx, number); err != nil {
		return "", err
	}
	id, err := m.onlyVolume(ctx, number)
	if err != nil {
		return "", err
	}
	// The original's FormatVolume erases a volume that is formatted.
	switch formatted, err := m.node.isFormatted(ctx, id); {
	case err != nil:
		return "", err
	case formatted && there != "": // pods may use it
		return id, nil
	case formatted:
		return id, m.checkHealth(ctx, id, request)
	}
	return id, m.node.format(ctx, id, request.FSType, request.Format)
}

// prepareReadOnly writes nothing to the disk, and gives Windows no moment to do so. A disk that is not
// fit for it is released, because nothing will be unstaged.
func (m *Mounter) prepareReadOnly(ctx context.Context, number uint32, path, there string) (string, error) {
	if err := m.unmountWritable(ctx, number, path, there); err != nil {
		return "", err
	}
	if err := m.node.onlineReadOnly(ctx, number); err != nil {
		return "", err
	}
	id, err := m.onlyVolume(ctx, number)
	if err == nil {
		var formatted bool
		if formatted, err = m.node.isFormatted(ctx, id); err == nil && !formatted {
			err = errBlank(number)
		}
	}
	if failure.ClassOf(err) == failure.InUse {
		if releaseErr := m.letGo(ctx, number, path, "", false); releaseErr != nil {
			klog.FromContext(ctx).Info("Disk stays read-only", "disk", number, "reason", releaseErr.Error())
		}
	}
	return id, err
}

// unmountWritable takes a writable disk away from the staging path, where an earlier life may have left
// it: to become read-only it goes offline, which is refused for a disk that is mounted. A pod that uses it keeps it.
func (m *Mounter) unmountWritable(ctx context.Context, number uint32, path, there string) error {
	if there == "" {
		return nil
	}
	readOnly, err := m.isReadOnly(ctx, number)
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

// makeWritable undoes an earlier staging with ReadOnly. A disk that the platform protects stays
// read-only, and can be read.
func (m *Mounter) makeWritable(ctx context.Context, number uint32) error {
	readOnly, err := m.isReadOnly(ctx, number)
	if err != nil || !readOnly {
		return err
	}
	err = m.node.setReadOnly(ctx, number, false)
	if failure.ClassOf(err) == failure.InUse {
		klog.FromContext(ctx).Info("Disk stays read-only", "disk", number, "reason", err.Error())
		return nil
	}
	return err
}

// isReadOnly is false for a daemon that cannot tell: it cannot make a disk read-only either.
func (m *Mounter) isReadOnly(ctx context.Context, number uint32) (bool, error) {
	readOnly, err := m.node.isReadOnly(ctx, number)
	if errors.Is(err, errors.ErrUnsupported) {
		return false, nil
	}
	return readOnly, err
}

// onlyVolume returns the volume of a disk. A disk with several was not made for a driver, and the
// first of them may be a boot partition.
func (m *Mounter) onlyVolume(ctx context.Context, number uint32) (string, error) {
	volumes, err := m.node.volumes(ctx, number)
	switch {
	case err != nil:
		return "", err
	case len(volumes) == 0:
		return "", errBlank(number)
	case len(volumes) > 1:
		return "", newError(failure.InUse, "look at", diskName(number), "it has %d volumes instead of one; use a disk that a driver has formatted", len(volumes))
	}
	return volumes[0], nil
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
	if leads, err := m.node.leads(ctx, path); err != nil || leads {
		return err
	}
	klog.FromContext(ctx).Info("Removing the mount of a volume that is gone", "path", path, "volume", there)
	return m.remove(ctx, path)
}
