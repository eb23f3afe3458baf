package local

import (
	"context"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winapi"
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
	return handle, winapi.Error(err)
}

func (machine) FileInfo(ctx context.Context, path string) (win.FileInfo, error) {
	return within(ctx, reachFile, path, func() (win.FileInfo, error) { return fileInfo(path, openItself) })
}

func (machine) TargetInfo(ctx context.Context, path string) (win.FileInfo, error) {
	return within(ctx, reachFile, path, func() (win.FileInfo, error) {
		return fileInfo(path, windows.FILE_FLAG_BACKUP_SEMANTICS)
	})
}

func fileInfo(path string, flags uint32) (win.FileInfo, error) {
	handle, err := open(path, windows.FILE_READ_ATTRIBUTES, flags)
	if err != nil {
		return win.FileInfo{}, err
	}
	defer windows.CloseHandle(handle)
	// FILE_ATTRIBUTE_TAG_INFO
	// https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_attribute_tag_info
	var tagInfo struct{ attributes, tag uint32 }
	err = windows.GetFileInformationByHandleEx(handle, windows.FileAttributeTagInfo,
		(*byte)(unsafe.Pointer(&tagInfo)), uint32(unsafe.Sizeof(tagInfo)))
	if err != nil {
		return win.FileInfo{}, winapi.Error(err)
	}
	return winlayout.FileInfo(tagInfo.attributes, tagInfo.tag), nil
}

func (machine) ReparsePoint(ctx context.Context, path string) (win.ReparsePoint, error) {
	return within(ctx, reachFile, path, func() (win.ReparsePoint, error) { return reparsePoint(path) })
}

func reparsePoint(path string) (win.ReparsePoint, error) {
	handle, err := open(path, windows.FILE_READ_ATTRIBUTES, openItself)
	if err != nil {
		return win.ReparsePoint{}, err
	}
	defer windows.CloseHandle(handle)
	buffer := make([]byte, winlayout.MaxReparseData)
	var n uint32
	err = windows.DeviceIoControl(handle, windows.FSCTL_GET_REPARSE_POINT, nil, 0,
		&buffer[0], uint32(len(buffer)), &n, nil)
	if err != nil {
		return win.ReparsePoint{}, winapi.Error(err)
	}
	point, err := winlayout.DecodeReparsePoint(buffer[:n])
	if err != nil {
		return point, winerr.InvalidReparseData
	}
	return point, nil
}

func (machine) ListDirectory(ctx context.Context, path string, each func([]win.DirEntry) error) error {
	return stream(ctx, reachFile, path, func(yield func([]win.DirEntry) bool) error { return listDirectory(path, yield) }, each)
}

func listDirectory(path string, yield func([]win.DirEntry) bool) error {
	handle, err := open(path, windows.FILE_LIST_DIRECTORY, openItself)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle)
	// 64-bit words, because Windows wants the buffer aligned to eight bytes.
	words := make([]uint64, 64<<10/8)
	buffer := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
	for {
		err := windows.GetFileInformationByHandleEx(handle, windows.FileFullDirectoryInfo, &buffer[0], uint32(len(buffer)))
		switch winapi.Error(err) {
		case nil:
		case winerr.NoMoreFiles:
			return nil
		case winerr.InvalidParameter:
			return winerr.Directory // a file, or a link that was not followed
		default:
			return winapi.Error(err)
		}
		entries, err := winlayout.DecodeDirectory(buffer)
		if err != nil {
			return winerr.FileCorrupt
		}
		if !yield(entries) {
			return nil
		}
	}
}

func (machine) CreateDirectory(ctx context.Context, path string) error {
	name, err := windows.UTF16PtrFromString(winpath.Long(path))
	if err != nil {
		return winerr.InvalidName
	}
	return act(ctx, reachFile, path, func() error { return winapi.Error(windows.CreateDirectory(name, nil)) })
}

func (machine) CreateDirectoryLink(ctx context.Context, path, target string) error {
	name, err := windows.UTF16PtrFromString(winpath.Long(path))
	if err != nil {
		return winerr.InvalidName
	}
	leadsTo, err := windows.UTF16PtrFromString(target)
	if err != nil {
		return winerr.InvalidName
	}
	return act(ctx, reachFile, path, func() error {
		return winapi.Error(windows.CreateSymbolicLink(name, leadsTo, windows.SYMBOLIC_LINK_FLAG_DIRECTORY))
	})
}

// Remove marks the name for deletion on a handle that was opened without following
// links: https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_disposition_info
// POSIX semantics free the name at once even while others hold the file open; file
// systems without them get the plain disposition.
func (machine) Remove(ctx context.Context, path string) error {
	return act(ctx, reachFile, path, func() error { return remove(path) })
}

func remove(path string) error {
	handle, err := open(path, windows.DELETE|windows.FILE_WRITE_ATTRIBUTES, openItself)
	if winerr.CodeOf(err) == winerr.AccessDenied {
		handle, err = open(path, windows.DELETE, openItself)
	}
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle)
	flags := uint32(windows.FILE_DISPOSITION_DELETE |
		windows.FILE_DISPOSITION_POSIX_SEMANTICS |
		windows.FILE_DISPOSITION_IGNORE_READONLY_ATTRIBUTE)
	err = windows.SetFileInformationByHandle(handle, windows.FileDispositionInfoEx,
		(*byte)(unsafe.Pointer(&flags)), uint32(unsafe.Sizeof(flags)))
	switch winapi.Error(err) {
	case winerr.InvalidParameter, winerr.InvalidFunction, winerr.NotSupported:
		return removePlain(handle)
	default:
		return winapi.Error(err)
	}
}

// removePlain deletes on file systems that know only FILE_DISPOSITION_INFO, where a
// read-only attribute must be cleared first.
func removePlain(handle windows.Handle) error {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(handle, &info); err != nil {
		return winapi.Error(err)
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
			return winapi.Error(err)
		}
	}
	remove := byte(1)
	return winapi.Error(windows.SetFileInformationByHandle(handle, windows.FileDispositionInfo, &remove, 1))
}
