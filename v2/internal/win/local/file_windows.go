package local

import (
	"context"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

func (d directory) ReadFile(_ context.Context, name string) (string, error) {
	handle, err := d.at(name, openOptions{access: look | windows.FILE_READ_DATA, options: windows.FILE_NON_DIRECTORY_FILE})
	if err != nil {
		return "", err
	}
	defer windows.CloseHandle(handle)
	content := make([]byte, win.MaxFile)
	var n uint32
	err = windows.ReadFile(handle, content, &n, nil)
	return string(content[:n]), winapi.Error(err)
}

// ReplaceFile has the other file alone: a second call fails with ERROR_SHARING_VIOLATION (32).
func (d directory) ReplaceFile(_ context.Context, name, content string) error {
	handle, err := d.at(name+".new", openOptions{
		access:      look | windows.FILE_WRITE_DATA | windows.DELETE,
		share:       windows.FILE_SHARE_READ,
		disposition: windows.FILE_OVERWRITE_IF,
		options:     windows.FILE_NON_DIRECTORY_FILE,
	})
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle)
	var n uint32
	if err := windows.WriteFile(handle, []byte(content), &n, nil); err != nil {
		return winapi.Error(err)
	}
	if err := windows.FlushFileBuffers(handle); err != nil {
		return winapi.Error(err)
	}
	return d.rename(handle, name)
}

// rename gives a file another name in this directory, and replaces what has it.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/ns-ntifs-_file_rename_information
func (d directory) rename(handle windows.Handle, name string) error {
	units, err := unicodeString(name)
	if err != nil {
		return err
	}
	var info struct {
		replace uint32
		root    windows.Handle
		length  uint32
		name    [winpath.MaxComponent]uint16
	}
	info.replace, info.root, info.length = 1, d.handle, uint32(units.Length)
	if copy(info.name[:], units.Slice()) < int(units.Length)/2 {
		return winerr.FilenameExcedRange
	}
	var status windows.IO_STATUS_BLOCK
	return winapi.Error(windows.NtSetInformationFile(handle, &status, (*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), windows.FileRenameInformation))
}
