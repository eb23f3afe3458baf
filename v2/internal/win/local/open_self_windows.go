package local

import (
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// openSelf opens the directory once more, with other access: NtCreateFile takes an empty name for the directory
// itself. Only a caller that means it gets there; elsewhere an empty name is a mistake.
func (d directory) openSelf(access uint32) (windows.Handle, error) {
	name, err := windows.NewNTUnicodeString("")
	if err != nil {
		return 0, err
	}
	attributes := windows.OBJECT_ATTRIBUTES{ObjectName: name, Attributes: windows.OBJ_DONT_REPARSE | windows.OBJ_CASE_INSENSITIVE}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	attributes.RootDirectory = d.handle
	return reopen(func() (handle windows.Handle, err error) {
		var status windows.IO_STATUS_BLOCK
		err = windows.NtCreateFile(&handle, access|windows.SYNCHRONIZE, &attributes, &status, nil, windows.FILE_ATTRIBUTE_NORMAL, shareAll, windows.FILE_OPEN,
			windows.FILE_OPEN_REPARSE_POINT|windows.FILE_OPEN_FOR_BACKUP_INTENT|windows.FILE_SYNCHRONOUS_IO_NONALERT, 0, 0)
		return handle, winapi.Error(err)
	})
}
