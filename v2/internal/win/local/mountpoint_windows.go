package local

import (
	"context"
	"strings"

	"golang.org/x/sys/windows"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// A mounted folder is an empty directory whose reparse point leads to the root of a volume.
// SetVolumeMountPointW writes it and notifies the mount manager, but takes a path, which may lead to
// another directory than the one that was checked.

// mounting opens a folder exclusively, because the file system silently replaces a mount point
// by another one (Wine's test_reparse_points on Windows, dlls/ntdll/tests/file.c). Access to attributes only would
// not take part in sharing.
var mounting = openOptions{
	access: look | windows.FILE_WRITE_ATTRIBUTES | windows.FILE_WRITE_DATA,
	share:  windows.FILE_SHARE_READ,
}

// SetMountPoint writes to the volume of the directory and asks the mount manager, and so
// does DeleteMountPoint.
func (d directory) SetMountPoint(ctx context.Context, name string, volume win.VolumeID) error {
	if err := volumeExists(volume); err != nil {
		return err
	}
	handle, err := d.at(name, mounting)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle)
	info, err := fileInfo(handle)
	switch {
	case err != nil:
		return err
	case info.Tag != 0:
		return winerr.DirNotEmpty // as SetVolumeMountPointW calls it
	case !info.Directory:
		return winerr.Directory
	}
	point, err := winlayout.EncodeReparsePoint(winlayout.MountedFolder(volume))
	if err != nil {
		return winerr.InvalidParameter
	}
	folder := folderOf(handle) // before it is a link: Wine has no path for those
	if err := control(handle, windows.FSCTL_SET_REPARSE_POINT, point); err != nil {
		return err
	}
	notifyMountManager(ctx, winapi.MountManagerMountPointCreated, folder, volume)
	return nil
}

func volumeExists(id win.VolumeID) error {
	device, err := winapi.Open(string(id.Device()), winapi.NoAccess)
	if err != nil {
		return err
	}
	device.Close()
	return nil
}

func (d directory) DeleteMountPoint(ctx context.Context, name string) error {
	handle, err := d.at(name, mounting)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle)
	point, err := reparsePoint(handle)
	if err != nil {
		return err
	}
	id, ok := point.MountedVolume()
	if !ok {
		return winerr.InvalidParameter // a link, but to something else
	}
	if err := control(handle, windows.FSCTL_DELETE_REPARSE_POINT, winlayout.EncodeReparseTag(point.Tag)); err != nil {
		return err
	}
	notifyMountManager(ctx, winapi.MountManagerMountPointDeleted, folderOf(handle), win.VolumeID(id))
	return nil
}

// mountFolder is the path of a folder, or why it is unknown.
type mountFolder struct {
	path string
	err  error
}

func folderOf(handle windows.Handle) mountFolder {
	path, err := winapi.FinalPath(handle)
	return mountFolder{path, err}
}

// notifyMountManager notifies the mount manager of a change to a mounted folder, as the Win32
// functions do, so that it can list the folders of a volume and keep them when a disk moves
// to another machine.
//
// A failure is logged, not returned. The folder itself shows the volume, and it is as the
// caller wants it; an error would make callers undo or repeat what was done. Without the
// message, mountvol does not list the folder, and neither does VolumePaths. Wine's mount
// manager does not know the message.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/mountmgr/ni-mountmgr-ioctl_mountmgr_volume_mount_point_created
// https://learn.microsoft.com/windows-hardware/drivers/ddi/mountmgr/ni-mountmgr-ioctl_mountmgr_volume_mount_point_deleted
func notifyMountManager(ctx context.Context, code winapi.ControlCode, folder mountFolder, volume win.VolumeID) {
	err := folder.err
	if err == nil {
		var change []byte
		if change, err = winlayout.EncodeVolumeMountPoint(kernelName(folder.path), kernelName(string(volume.Device()))); err == nil {
			err = tell(`\\.\MountPointManager`, winapi.ReadWrite, code, change)
		}
	}
	if err != nil {
		klog.FromContext(ctx).Info("The mount manager did not learn of a change to a mounted folder", "path", folder.path, "volume", volume, "error", err)
	}
}

// kernelName is the name in the kernel of what \\?\ stands before.
func kernelName(path string) string { return `\??\` + strings.TrimPrefix(path, `\\?\`) }
