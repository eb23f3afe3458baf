package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"

	"golang.org/x/sys/windows"
)

// private lets only the system and administrators in. What is in a folder with it inherits it. Below C:\ all
// authenticated users would otherwise be allowed to make and change files.
const private = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"

func privateAttributes() (*windows.SecurityAttributes, error) {
	descriptor, err := windows.SecurityDescriptorFromString(private)
	if err != nil {
		return nil, err
	}
	return &windows.SecurityAttributes{
		Length: uint32(reflect.TypeFor[windows.SecurityAttributes]().Size()), SecurityDescriptor: descriptor,
	}, nil
}

// Mkdir makes a folder that only administrators can change.
func Mkdir(dir string) error {
	name, err := windows.UTF16PtrFromString(dir)
	if err == nil {
		var attributes *windows.SecurityAttributes
		if attributes, err = privateAttributes(); err == nil {
			err = windows.CreateDirectory(name, attributes)
		}
	}
	if err != nil {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: err}
	}
	return nil
}

// openAlone opens a file that others may only read, and none but administrators if it makes it. Windows closes it
// when the process ends.
func openAlone(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	attributes, err := privateAttributes()
	if err != nil {
		return nil, err
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, windows.FILE_SHARE_READ|windows.FILE_SHARE_DELETE,
		attributes, windows.OPEN_ALWAYS, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
		return nil, fmt.Errorf("%w; is another csi-proxy-verify at work in this folder?", err)
	}
	if err != nil {
		return nil, err
	}
	if err := checkOwner(handle); err != nil {
		windows.CloseHandle(handle)
		return nil, err
	}
	return os.NewFile(uintptr(handle), path), nil
}

// checkOwner fails if a file belongs to someone who could not have run csi-proxy-verify.
func checkOwner(file windows.Handle) error {
	descriptor, err := windows.GetSecurityInfo(file, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("find its owner: %w", err)
	}
	owner, _, err := descriptor.Owner()
	if err != nil {
		return fmt.Errorf("find its owner: %w", err)
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("find the present user: %w", err)
	}
	if !trusted(owner, user.User.Sid) {
		return fmt.Errorf("it belongs to %s, who is neither an administrator nor the present user; look who wrote it, then delete it", owner)
	}
	return nil
}

func trusted(owner, user *windows.SID) bool {
	return owner != nil && (owner.Equals(user) || owner.IsWellKnown(windows.WinBuiltinAdministratorsSid) || owner.IsWellKnown(windows.WinLocalSystemSid))
}
