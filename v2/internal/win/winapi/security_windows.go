package winapi

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
)

// FileSecurity returns the owner of a file or directory, and the entries of its access list that allow something. It
// follows links.
// https://learn.microsoft.com/windows/win32/api/aclapi/nf-aclapi-getnamedsecurityinfow
func FileSecurity(path string) (owner string, allowed sddl.List, err error) {
	descriptor, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return "", nil, Error(err)
	}
	sid, _, err := descriptor.Owner()
	if err != nil {
		return "", nil, Error(err)
	}
	list, _, err := descriptor.DACL()
	if err != nil && err != windows.ERROR_OBJECT_NOT_FOUND { //nolint:errorlint // a bare code
		return "", nil, Error(err)
	}
	allowed, err = Allowed(list)
	return sid.String(), allowed, err
}

// Allowed returns the entries of an access list that allow something. No list allows everyone everything.
// https://learn.microsoft.com/windows/win32/secauthz/null-dacls-and-empty-dacls
func Allowed(list *windows.ACL) (sddl.List, error) {
	if list == nil {
		return sddl.List{{Mask: sddl.FullAccess, SID: sddl.Everyone}}, nil
	}
	const callback = 9 // ACCESS_ALLOWED_CALLBACK_ACE_TYPE, which begins like a plain one
	var allowed sddl.List
	for i := range uint32(list.AceCount) {
		var entry *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(list, i, &entry); err != nil {
			return nil, Error(err)
		}
		if kind := entry.Header.AceType; kind != windows.ACCESS_ALLOWED_ACE_TYPE && kind != callback {
			continue
		}
		const inheritance = windows.OBJECT_INHERIT_ACE | windows.CONTAINER_INHERIT_ACE | windows.NO_PROPAGATE_INHERIT_ACE | windows.INHERIT_ONLY_ACE
		allowed = append(allowed, sddl.Entry{
			Flags: sddl.Flags(entry.Header.AceFlags & inheritance), Mask: uint32(entry.Mask),
			SID: (*windows.SID)(unsafe.Pointer(&entry.SidStart)).String(),
		})
	}
	return allowed, nil
}

func attributes(accessList string) (*windows.SecurityAttributes, error) {
	descriptor, err := windows.SecurityDescriptorFromString(accessList)
	if err != nil {
		return nil, err
	}
	return &windows.SecurityAttributes{Length: uint32(unsafe.Sizeof(windows.SecurityAttributes{})), SecurityDescriptor: descriptor}, nil
}

// CreateDirectory makes a directory with an access list. One that exists stays as it is.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createdirectoryw
func CreateDirectory(dir, accessList string) error {
	access, err := attributes(accessList)
	if err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return err
	}
	if err := windows.CreateDirectory(name, access); err != nil && !errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		return &os.PathError{Op: "mkdir", Path: dir, Err: err}
	}
	return nil
}
