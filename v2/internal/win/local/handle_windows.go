package local

import (
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// Calls on the handle of an open file or directory.

// fileInfo reads attributes and tag together, as Wine's test_reparse_points does on Windows
// (dlls/ntdll/tests/file.c).
func fileInfo(handle windows.Handle) (win.FileInfo, error) {
	// FILE_ATTRIBUTE_TAG_INFO
	// https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_attribute_tag_info
	var tagInfo struct{ attributes, tag uint32 }
	err := windows.GetFileInformationByHandleEx(handle, windows.FileAttributeTagInfo,
		(*byte)(unsafe.Pointer(&tagInfo)), uint32(unsafe.Sizeof(tagInfo)))
	switch winapi.Error(err) {
	case nil:
		return winlayout.FileInfo(tagInfo.attributes, tagInfo.tag), nil
	case winerr.InvalidParameter: // FAT has no tags, and does not know the question
		attributes, err := fileAttributes(handle)
		return winlayout.FileInfo(attributes, 0), err
	default:
		return win.FileInfo{}, winapi.Error(err)
	}
}

// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getfileinformationbyhandle
func fileAttributes(handle windows.Handle) (uint32, error) {
	var info windows.ByHandleFileInformation
	err := windows.GetFileInformationByHandle(handle, &info)
	return info.FileAttributes, winapi.Error(err)
}

// changedAt is the latest time of FILE_BASIC_INFO except that of the last access.
// https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_basic_info
func changedAt(handle windows.Handle) (time.Time, error) {
	var basic struct {
		created, accessed, written, changed windows.Filetime
		attributes, _                       uint32
	}
	err := windows.GetFileInformationByHandleEx(handle, windows.FileBasicInfo, (*byte)(unsafe.Pointer(&basic)), uint32(unsafe.Sizeof(basic)))
	if err != nil {
		return time.Time{}, winapi.Error(err)
	}
	latest := max(basic.created.Nanoseconds(), basic.written.Nanoseconds(), basic.changed.Nanoseconds())
	return time.Unix(0, latest), nil
}

// reparsePoint has room for the largest one: with less, Windows cuts it off and answers 122 below 28 bytes and
// 234 above (Wine's test_reparse_points, dlls/ntdll/tests/file.c).
func reparsePoint(handle windows.Handle) (win.ReparsePoint, error) {
	buffer := make([]byte, winlayout.MaxReparseData)
	var n uint32
	err := windows.DeviceIoControl(handle, windows.FSCTL_GET_REPARSE_POINT, nil, 0,
		&buffer[0], winapi.Length(buffer), &n, nil)
	if err != nil {
		return win.ReparsePoint{}, winapi.Error(err)
	}
	point, err := winlayout.DecodeReparsePoint(buffer[:n])
	if err != nil {
		return point, winerr.InvalidReparseData
	}
	return point, nil
}

// listBuffers has buffers for one call of readEntries each, because removing a tree lists many
// nested directories. 64-bit words, because the buffer must be aligned to eight bytes.
var listBuffers = sync.Pool{New: func() any { return new([64 << 10 / 8]uint64) }}

// readEntries ends with ERROR_NO_MORE_FILES (18). The handle of a junction would list . and .. only (Wine's
// test_reparse_points, dlls/ntdll/tests/file.c); isListable refuses it before.
func readEntries(handle windows.Handle) ([]win.DirEntry, error) {
	words := listBuffers.Get().(*[64 << 10 / 8]uint64)
	defer listBuffers.Put(words)
	buffer := unsafe.Slice((*byte)(unsafe.Pointer(words)), int(unsafe.Sizeof(*words)))
	err := windows.GetFileInformationByHandleEx(handle, windows.FileFullDirectoryInfo, &buffer[0], winapi.Length(buffer))
	switch winapi.Error(err) {
	case nil:
	case winerr.InvalidParameter:
		return nil, winerr.Directory // a file
	default:
		return nil, winapi.Error(err)
	}
	entries, err := winlayout.DecodeDirectory(buffer)
	if err != nil {
		return nil, winerr.FileCorrupt
	}
	return entries, nil
}

// remove marks the name for deletion on a handle that was opened without following
// links: https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_disposition_info
// With POSIX semantics the name is free as soon as this handle closes, even while others
// hold the file open; file systems without them answer 50 or 87 and get the plain disposition. Wine's
// test_file_disposition_information on Windows (dlls/ntdll/tests/file.c) has all of it.
func remove(handle windows.Handle) error {
	flags := uint32(windows.FILE_DISPOSITION_DELETE |
		windows.FILE_DISPOSITION_POSIX_SEMANTICS |
		windows.FILE_DISPOSITION_IGNORE_READONLY_ATTRIBUTE)
	err := windows.SetFileInformationByHandle(handle, windows.FileDispositionInfoEx,
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
	attributes, err := fileAttributes(handle)
	if err != nil {
		return err
	}
	if attributes&windows.FILE_ATTRIBUTE_READONLY != 0 {
		// FILE_BASIC_INFO; zero times mean "leave as they are".
		basic := struct {
			times      [4]int64
			attributes uint32
			_          uint32
		}{attributes: attributes &^ windows.FILE_ATTRIBUTE_READONLY}
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
