package local

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winlayout"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

const (
	shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	// Directories can only be opened with backup semantics; the second flag keeps
	// Windows from following a link in the last component.
	openItself = windows.FILE_FLAG_BACKUP_SEMANTICS | windows.FILE_FLAG_OPEN_REPARSE_POINT
)

// open opens a path as https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew
// describes, in its long form. The caller closes the handle.
func open(path string, access, flags uint32) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString(winpath.Long(path))
	if err != nil {
		return 0, winerr.InvalidName
	}
	handle, err := windows.CreateFile(name, access, shareAll, nil, windows.OPEN_EXISTING, flags, 0)
	return handle, code(err)
}

// code turns the error of a system call into the seam's.
func code(err error) error {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return winerr.Code(errno)
	}
	return err
}

func (machine) FileInfo(ctx context.Context, path string) (win.FileInfo, error) {
	return fileInfo(ctx, path, openItself)
}

func (machine) TargetInfo(ctx context.Context, path string) (win.FileInfo, error) {
	return fileInfo(ctx, path, windows.FILE_FLAG_BACKUP_SEMANTICS)
}

func fileInfo(ctx context.Context, path string, flags uint32) (win.FileInfo, error) {
	if err := ctx.Err(); err != nil {
		return win.FileInfo{}, err
	}
	handle, err := open(path, windows.FILE_READ_ATTRIBUTES, flags)
	if err != nil {
		return win.FileInfo{}, err
	}
	defer windows.CloseHandle(handle)
	return tagInfoOf(handle)
}

func tagInfoOf(handle windows.Handle) (win.FileInfo, error) {
	// FILE_ATTRIBUTE_TAG_INFO
	// https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_attribute_tag_info
	var tagInfo struct{ attributes, tag uint32 }
	err := windows.GetFileInformationByHandleEx(handle, windows.FileAttributeTagInfo,
		(*byte)(unsafe.Pointer(&tagInfo)), uint32(unsafe.Sizeof(tagInfo)))
	if err != nil {
		return win.FileInfo{}, code(err)
	}
	return winlayout.FileInfo(tagInfo.attributes, tagInfo.tag), nil
}

func (machine) ReparsePoint(ctx context.Context, path string) (win.ReparsePoint, error) {
	if err := ctx.Err(); err != nil {
		return win.ReparsePoint{}, err
	}
	handle, err := open(path, windows.FILE_READ_ATTRIBUTES, openItself)
	if err != nil {
		return win.ReparsePoint{}, err
	}
	defer windows.CloseHandle(handle)
	return reparsePoint(handle)
}

func reparsePoint(handle windows.Handle) (win.ReparsePoint, error) {
	buffer := make([]byte, winlayout.MaxReparseData)
	var n uint32
	err := windows.DeviceIoControl(handle, windows.FSCTL_GET_REPARSE_POINT, nil, 0,
		&buffer[0], uint32(len(buffer)), &n, nil)
	if err != nil {
		return win.ReparsePoint{}, code(err)
	}
	point, err := winlayout.DecodeReparsePoint(buffer[:n])
	if err != nil {
		return point, winerr.InvalidReparseData
	}
	return point, nil
}

func (machine) ListDirectory(ctx context.Context, path string, each func(win.Tree, []win.DirEntry) error) error {
	handle, err := open(path, listAccess, openItself)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle)
	return list(ctx, handle, each)
}

// listAccess is what listing a directory, and looking whether it is one, needs.
const listAccess = windows.FILE_LIST_DIRECTORY | windows.FILE_READ_ATTRIBUTES

func list(ctx context.Context, handle windows.Handle, each func(win.Tree, []win.DirEntry) error) error {
	info, err := tagInfoOf(handle)
	if err != nil {
		return err
	}
	if !info.Directory || info.Tag.NameSurrogate() {
		return winerr.Directory
	}
	// 64-bit words, because Windows wants the buffer aligned to eight bytes.
	words := make([]uint64, 64<<10/8)
	buffer := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := windows.GetFileInformationByHandleEx(handle, windows.FileFullDirectoryInfo, &buffer[0], uint32(len(buffer)))
		switch code(err) {
		case nil:
		case winerr.NoMoreFiles:
			return nil
		case winerr.InvalidParameter:
			return winerr.Directory // a file, or a link that was not followed
		default:
			return code(err)
		}
		entries, err := winlayout.DecodeDirectory(buffer)
		if err != nil {
			return winerr.FileCorrupt
		}
		if err := each(directory(handle), entries); err != nil {
			return err
		}
	}
}

func (machine) CreateDirectory(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(winpath.Long(path))
	if err != nil {
		return winerr.InvalidName
	}
	return code(windows.CreateDirectory(name, nil))
}

func (machine) CreateDirectoryLink(ctx context.Context, path, target string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(winpath.Long(path))
	if err != nil {
		return winerr.InvalidName
	}
	leadsTo, err := windows.UTF16PtrFromString(target)
	if err != nil {
		return winerr.InvalidName
	}
	return code(windows.CreateSymbolicLink(name, leadsTo, windows.SYMBOLIC_LINK_FLAG_DIRECTORY))
}

// Remove marks the name for deletion on a handle that was opened without following
// links: https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_disposition_info
// POSIX semantics free the name at once even while others hold the file open; file
// systems without them get the plain disposition.
func (machine) Remove(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	handle, err := open(path, windows.DELETE|windows.FILE_WRITE_ATTRIBUTES, openItself)
	if winerr.CodeOf(err) == winerr.AccessDenied {
		handle, err = open(path, windows.DELETE, openItself)
	}
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle)
	return remove(handle)
}

func remove(handle windows.Handle) error {
	flags := uint32(windows.FILE_DISPOSITION_DELETE |
		windows.FILE_DISPOSITION_POSIX_SEMANTICS |
		windows.FILE_DISPOSITION_IGNORE_READONLY_ATTRIBUTE)
	err := windows.SetFileInformationByHandle(handle, windows.FileDispositionInfoEx,
		(*byte)(unsafe.Pointer(&flags)), uint32(unsafe.Sizeof(flags)))
	switch code(err) {
	case winerr.InvalidParameter, winerr.InvalidFunction, winerr.NotSupported:
		return removePlain(handle)
	default:
		return code(err)
	}
}

// removePlain deletes on file systems that know only FILE_DISPOSITION_INFO, where a
// read-only attribute must be cleared first.
func removePlain(handle windows.Handle) error {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(handle, &info); err != nil {
		return code(err)
	}
	if info.FileAttributes&windows.FILE_ATTRIBUTE_READONLY != 0 {
		// FILE_BASIC_INFO; zero times mean "leave as they are".
		basic := struct {
			times      [4]int64
			attributes uint32
			_          uint32
		}{attributes: info.FileAttributes &^ windows.FILE_ATTRIBUTE_READONLY}
		if basic.attributes == 0 {
			basic.attributes = windows.FILE_ATTRIBUTE_NORMAL
		}
		err := windows.SetFileInformationByHandle(handle, windows.FileBasicInfo,
			(*byte)(unsafe.Pointer(&basic)), uint32(unsafe.Sizeof(basic)))
		if err != nil {
			return code(err)
		}
	}
	remove := byte(1)
	return code(windows.SetFileInformationByHandle(handle, windows.FileDispositionInfo, &remove, 1))
}

func (machine) DeleteMountPoint(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// The mount point functions, unlike CreateFile, want a trailing backslash.
	name, err := windows.UTF16PtrFromString(strings.TrimSuffix(winpath.Long(path), `\`) + `\`)
	if err != nil {
		return winerr.InvalidName
	}
	return code(windows.DeleteVolumeMountPoint(name))
}
