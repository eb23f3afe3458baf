package mounter

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"k8s.io/mount-utils"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
)

// Mount implements mount.Interface. The source says what is mounted:
//   - a number is a disk, as SafeFormatAndMount has it: it is staged at the target;
//   - \\server\share is a share: its user name and password are the first two options, as
//     mount-utils has it for cifs;
//   - \\?\Volume{GUID}\ is a volume: it is mounted at the target;
//   - any other path is linked from the target, as a bind mount.
//
// The option ro makes a disk read-only. Other options have no meaning on Windows and are ignored, as are file systems of Linux.
func (m *Mounter) Mount(source, target, fstype string, options []string) error {
	return m.MountSensitive(source, target, fstype, options, nil)
}

// MountSensitive implements mount.Interface, see Mount.
func (m *Mounter) MountSensitive(source, target, fstype string, options, sensitiveOptions []string) error {
	ctx := m.ctx
	if number, err := strconv.ParseUint(source, 10, 32); err == nil {
		_, err := m.Stage(ctx, StageRequest{
			Path: target, Source: DiskNumber(uint32(number)), FSType: fstype, MountFlags: options,
		})
		return err
	}
	if isRemote(source) {
		share := SMB{Remote: source}
		if all := slices.Concat(options, sensitiveOptions); len(all) >= 2 {
			share.Username, share.Password = all[0], all[1]
		}
		_, err := m.Stage(ctx, StageRequest{Path: target, Source: share})
		return err
	}
	return m.mountLocal(ctx, source, target)
}

func (m *Mounter) mountLocal(ctx context.Context, source, target string) error {
	const op = "mount volume at"
	path, err := m.path(target)
	if err != nil {
		return during(op, target, err)
	}
	if isVolume(source) {
		unlock, err := m.locks.paths(ctx, path)
		if err != nil {
			return during(op, path, err)
		}
		defer unlock()
		return during(op, path, m.node.mount(ctx, source, path))
	}
	from, err := m.path(source)
	if err != nil {
		return during(op, path, err)
	}
	unlock, err := m.locks.paths(ctx, from, path)
	if err != nil {
		return during(op, path, err)
	}
	defer unlock()
	switch exists, err := m.node.exists(ctx, from); {
	case err != nil:
		return during(op, path, err)
	case !exists:
		return during(op, path, newError(failure.NotFound, "look for", from, "it does not exist"))
	}
	return during(op, path, m.bind(ctx, from, path))
}

// volumePrefix is how the id of a volume begins.
const volumePrefix = `\\?\Volume{`

// isVolume reports whether a source has the form of a volume's id.
func isVolume(source string) bool {
	return len(source) > len(volumePrefix) && strings.EqualFold(source[:len(volumePrefix)], volumePrefix)
}

// MountSensitiveWithoutSystemd implements mount.Interface, see Mount.
func (m *Mounter) MountSensitiveWithoutSystemd(source, target, fstype string, options, sensitiveOptions []string) error {
	return m.MountSensitive(source, target, fstype, options, sensitiveOptions)
}

// MountSensitiveWithoutSystemdWithMountFlags implements mount.Interface, see Mount. Flags have no
// meaning on Windows.
func (m *Mounter) MountSensitiveWithoutSystemdWithMountFlags(source, target, fstype string, options, sensitiveOptions, _ []string) error {
	return m.MountSensitive(source, target, fstype, options, sensitiveOptions)
}

// Unmount implements mount.Interface: it removes a link or, after it has written what is cached, a mounted folder. A share
// is disconnected unless another link uses it. The disk stays online. Unmount fails while a pod's link leads to the path.
func (m *Mounter) Unmount(target string) error {
	const op = "unmount volume at"
	ctx := m.ctx
	path, err := m.path(target)
	if err != nil {
		return during(op, target, err)
	}
	unlock, err := m.locks.paths(ctx, path)
	if err != nil {
		return during(op, path, err)
	}
	defer unlock()
	return during(op, path, m.unmount(ctx, path))
}

// unmount removes what is at a path, which can be a mounted folder, a pod's link to one, or a link to
// a share.
func (m *Mounter) unmount(ctx context.Context, path string) error {
	if err := m.checkUnpublished(ctx, path); err != nil {
		return err
	}
	at, err := m.entryAt(ctx, path)
	if err != nil {
		return err
	}
	switch {
	case at.kind == fsapi.LinkEntry && isRemote(at.target):
		err = m.node.unmapShare(ctx, at.target, path)
	case at.kind == fsapi.MountEntry && at.guessed:
		_, err = m.node.flush(ctx, at.target, "")
		err = ignoreMissing(err)
	case at.kind == fsapi.MountEntry:
		err = m.node.unmount(ctx, at.target, path)
	}
	if err != nil {
		return err
	}
	if err := m.remove(ctx, path); err != nil {
		return err
	}
	m.links.forget(path)
	before, err := m.recall(ctx, path)
	if err != nil {
		return err
	}
	return m.end(ctx, path, before)
}

// List implements mount.Interface. The Device of a mount is the id of its volume, or the share; pods'
// links to it have the same. Opts has ro or rw, or neither if the disk does not report. In the mode
// Daemon the list comes from the inspector, on the pipe of the group system.
//
// If Windows does not report all mounts, List fails with the class Unavailable.
func (m *Mounter) List() ([]mount.MountPoint, error) {
	const op = "list mounts"
	if err := m.open(); err != nil {
		return nil, during(op, "", err)
	}
	points, err := m.list(m.ctx)
	return points, during(op, "", err)
}

// GetMountRefs implements mount.Interface: it returns the other paths of the volume or share at a
// path. The list is empty if nothing is mounted there.
func (m *Mounter) GetMountRefs(pathname string) ([]string, error) {
	const op = "list mounts of the volume at"
	path, err := m.path(pathname)
	if err != nil {
		return nil, during(op, pathname, err)
	}
	refs, err := m.refs(m.ctx, path)
	return refs, during(op, path, err)
}

// IsLikelyNotMountPoint implements mount.Interface. It is false for a mounted folder and for a link
// whose target exists. A mount or link that leads nowhere is not a mount point: Stage and Publish
// replace it.
func (m *Mounter) IsLikelyNotMountPoint(file string) (bool, error) {
	const op = "look at"
	path, err := m.path(file)
	if err != nil {
		return true, during(op, file, err)
	}
	live, err := m.node.isLiveLink(m.ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		// Drivers compare with os.IsNotExist, which does not look into wrapped errors.
		return true, &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
	}
	return !live, during(op, path, err)
}

// IsMountPoint implements mount.Interface.
func (m *Mounter) IsMountPoint(file string) (bool, error) {
	not, err := m.IsLikelyNotMountPoint(file)
	return !not && err == nil, err
}

// CanSafelySkipMountPointCheck implements mount.Interface: Unmount succeeds where nothing is mounted.
func (m *Mounter) CanSafelySkipMountPointCheck() bool { return true }
