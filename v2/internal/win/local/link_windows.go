package local

import (
	"context"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// CreateDirectoryLink makes a directory and turns it into a link, as CreateSymbolicLinkW
// does, which takes only paths. Until it is a link, others can create files in it, whatever
// the share mode (Wine's test_file_disposition_information on Windows, dlls/ntdll/tests/file.c): then it stays an
// ordinary directory.
//
// The privilege has to be there when the directory is opened: the file system remembers it
// with the handle. Where it is not held, a machine in developer mode makes links anyway.
// https://learn.microsoft.com/openspecs/windows_protocols/ms-fsa/4aeefef8-92c3-4abc-af7a-a610caf8a165
func (d directory) CreateDirectoryLink(ctx context.Context, name, target string) error {
	if strings.Contains(target, "\x00") {
		return winerr.InvalidName
	}
	link, err := winlayout.EncodeReparsePoint(winlayout.SymlinkTo(target))
	if err != nil {
		return winerr.FilenameExcedRange // both names together are too long
	}
	privilege := winapi.CreateSymbolicLinkPrivilege.Enable()
	handle, err := d.at(name, openOptions{
		access:      look | windows.FILE_WRITE_ATTRIBUTES | windows.DELETE,
		share:       windows.FILE_SHARE_READ,
		disposition: windows.FILE_CREATE,
		options:     windows.FILE_DIRECTORY_FILE,
	})
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle)
	err = control(handle, windows.FSCTL_SET_REPARSE_POINT, link)
	if err == nil {
		return nil
	}
	if remove(handle) != nil { // it is not empty any more
		return fmt.Errorf("directory %s stays, because it could not become a link: %w", name, err)
	}
	if privilege != nil && winerr.CodeOf(err) == winerr.AccessDenied {
		return privilege
	}
	return err
}

// control sends a request without an answer to the file system of an open file.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-fsctl_set_reparse_point
func control(handle windows.Handle, code uint32, in []byte) error {
	var n uint32 // must be given, although nothing is returned
	return winapi.Error(windows.DeviceIoControl(handle, code, unsafe.SliceData(in), winapi.Length(in), nil, 0, &n, nil))
}
