package local

import (
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

const shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE

// look is the access for asking a file about itself. It never conflicts with what others
// have opened the file for, as Wine's test_file_sharing on Windows shows (dlls/kernel32/tests/file.c).
const look = windows.FILE_READ_ATTRIBUTES | windows.SYNCHRONIZE

// openPath opens what a path names. The caller closes the handle.
func openPath(path win.Path, access uint32) (windows.Handle, error) {
	if path.Rest == "" {
		return follow(path.Base, access)
	}
	return openBelow(path, openOptions{access: access})
}

// openBelow opens or makes a file below the base of a path. The caller closes the handle.
func openBelow(path win.Path, how openOptions) (windows.Handle, error) {
	base, err := follow(path.Base, look)
	if err != nil {
		return 0, err
	}
	defer windows.CloseHandle(base)
	return openAt(base, path.Rest, how)
}

// follow opens what a path leads to after every link. Directories can only be opened with
// backup semantics. A server of a named pipe at the end of a link must not impersonate us.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew
func follow(path string, access uint32) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString(winpath.Long(path))
	if err != nil {
		return 0, winerr.InvalidName
	}
	handle, err := windows.CreateFile(name, access, shareAll, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_BACKUP_SEMANTICS|windows.SECURITY_SQOS_PRESENT|windows.SECURITY_IDENTIFICATION, 0)
	if err != nil {
		return 0, winapi.Error(err)
	}
	return handle, nil
}

// openOptions say how NtCreateFile opens or makes a file. The zero value opens an existing file and
// shares it fully.
type openOptions struct {
	access      uint32 // requests to a file system, and listing, take SYNCHRONIZE
	share       uint32
	disposition uint32
	options     uint32
}

// openAt opens a file by names below an open directory. No link is followed: one before the last
// name makes it fail with ERROR_REPARSE_POINT_ENCOUNTERED (4395), and a link with the last name is
// opened itself. The caller closes the handle.
// https://learn.microsoft.com/windows/win32/api/winternl/nf-winternl-ntcreatefile
func openAt(dir windows.Handle, names string, how openOptions) (windows.Handle, error) {
	name, err := objectName(dir, names)
	if err != nil {
		return 0, err
	}
	if how.share == 0 {
		how.share = shareAll
	}
	if how.disposition == 0 {
		how.disposition = windows.FILE_OPEN
	}
	how.options |= windows.FILE_OPEN_REPARSE_POINT | windows.FILE_OPEN_FOR_BACKUP_INTENT
	if how.access&windows.SYNCHRONIZE != 0 {
		how.options |= windows.FILE_SYNCHRONOUS_IO_NONALERT
	}
	return reopen(func() (handle windows.Handle, err error) {
		var status windows.IO_STATUS_BLOCK
		err = windows.NtCreateFile(&handle, how.access, name, &status, nil, windows.FILE_ATTRIBUTE_NORMAL,
			how.share, how.disposition, how.options, 0, 0)
		return handle, winapi.Error(err)
	})
}

// objectName names a file by names below an open directory. No link is followed.
//
// NTFS compares names case-sensitively unless the call says otherwise. Most machines say so for
// all calls, by the registry's obcaseinsensitive, but we do not rely on it. Wine's open_file_test on
// Windows (dlls/ntdll/tests/file.c) finds names in another case without it.
// https://learn.microsoft.com/windows/win32/api/ntdef/ns-ntdef-_object_attributes
func objectName(dir windows.Handle, names string) (*windows.OBJECT_ATTRIBUTES, error) {
	name, err := unicodeString(names)
	if err != nil {
		return nil, err
	}
	attributes := &windows.OBJECT_ATTRIBUTES{
		RootDirectory: dir,
		ObjectName:    name,
		Attributes:    windows.OBJ_DONT_REPARSE | windows.OBJ_CASE_INSENSITIVE,
	}
	attributes.Length = uint32(unsafe.Sizeof(*attributes))
	return attributes, nil
}

// unicodeString converts names for objectName. They need no NUL at their end, so that
// unlike with windows.NewNTUnicodeString the longest fit.
// https://learn.microsoft.com/windows/win32/api/ntdef/ns-ntdef-_unicode_string
func unicodeString(names string) (*windows.NTUnicodeString, error) {
	units, err := windows.UTF16FromString(names)
	if err != nil || len(units) == 1 {
		return nil, winerr.InvalidName // no name at all would be the directory itself
	}
	n := len(units) - 1
	if n > winpath.MaxName {
		return nil, winerr.FilenameExcedRange
	}
	return &windows.NTUnicodeString{Length: uint16(2 * n), MaximumLength: uint16(2 * n), Buffer: &units[0]}, nil
}
