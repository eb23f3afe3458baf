package local

import (
	"context"
	"errors"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
)

// directory is win.Tree on an open directory. Entries are opened relative to its
// handle, so no name but the entry's own is looked up, and that one not followed.
//
// Its calls are not left to a worker: one that was abandoned could go on to use the
// handle after it was closed, when the number already means something else.
type directory windows.Handle

// open opens an entry itself, never what it leads to. The caller closes the handle.
// https://learn.microsoft.com/windows/win32/api/winternl/nf-winternl-ntcreatefile
func (d directory) open(ctx context.Context, name string, access uint32) (windows.Handle, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	objectName, err := windows.NewNTUnicodeString(name)
	if err != nil {
		return 0, winerr.InvalidName
	}
	attributes := windows.OBJECT_ATTRIBUTES{RootDirectory: windows.Handle(d), ObjectName: objectName}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	var handle windows.Handle
	var status windows.IO_STATUS_BLOCK
	err = windows.NtCreateFile(&handle, access|windows.SYNCHRONIZE, &attributes, &status, nil, 0, shareAll,
		windows.FILE_OPEN, windows.FILE_OPEN_REPARSE_POINT|windows.FILE_OPEN_FOR_BACKUP_INTENT|windows.FILE_SYNCHRONOUS_IO_NONALERT, 0, 0)
	if failure := windows.NTStatus(0); errors.As(err, &failure) {
		return 0, winerr.Code(failure.Errno())
	}
	return handle, winapi.Error(err)
}

func (d directory) ReparsePoint(ctx context.Context, name string) (win.ReparsePoint, error) {
	handle, err := d.open(ctx, name, windows.FILE_READ_ATTRIBUTES)
	if err != nil {
		return win.ReparsePoint{}, err
	}
	defer windows.CloseHandle(handle)
	return reparsePoint(handle)
}

func (d directory) ListDirectory(ctx context.Context, name string, each func(win.Tree, []win.DirEntry) error) error {
	handle, err := d.open(ctx, name, listAccess)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle)
	var failure error
	err = list(handle, func(b batch) bool {
		if failure = each(b.dir, b.entries); failure == nil {
			failure = ctx.Err()
		}
		return failure == nil
	})
	if failure != nil {
		return failure
	}
	return err
}

func (d directory) Remove(ctx context.Context, name string) error {
	return openToRemove(func(access uint32) (windows.Handle, error) { return d.open(ctx, name, access) })
}

// DeleteMountPoint asks the open folder where it is now, because the function that
// tells the mount manager takes only paths.
func (d directory) DeleteMountPoint(ctx context.Context, name string) error {
	handle, err := d.open(ctx, name, windows.FILE_READ_ATTRIBUTES)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle)
	path := make([]uint16, 32768)
	n, err := windows.GetFinalPathNameByHandle(handle, &path[0], uint32(len(path)), 0)
	if err != nil {
		return winapi.Error(err)
	}
	if int(n) >= len(path)-1 {
		return winerr.FilenameExcedRange
	}
	path[n], path[n+1] = '\\', 0 // the functions for mount points want a trailing backslash
	return winapi.Error(windows.DeleteVolumeMountPoint(&path[0]))
}
