package utils

import (
	"errors"
	"fmt"
	"syscall"
)

const (
	// https://learn.microsoft.com/windows/win32/debug/system-error-codes--0-499-
	errInvalidName = syscall.Errno(123)
	// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-createsymboliclinkw
	symbolicLinkFlagDirectory = 1
	// https://learn.microsoft.com/openspecs/windows_protocols/ms-fscc/c8e77b37-3909-4fe6-a4ea-2b9d423b1ee4
	tagMountPoint = 0xa0000003
)

func isPathValid(path string) (bool, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return false, fmt.Errorf("look up %q: %w", path, err)
	}
	_, err = syscall.GetFileAttributes(name)
	for _, missing := range []error{syscall.ERROR_FILE_NOT_FOUND, syscall.ERROR_PATH_NOT_FOUND, errInvalidName} {
		if errors.Is(err, missing) {
			return false, nil
		}
	}
	if err != nil {
		return false, fmt.Errorf("look up %s: %w", path, err)
	}
	return true, nil
}

func isMountedFolder(path string) (bool, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return false, err
	}
	attributes, err := syscall.GetFileAttributes(name)
	if err != nil || attributes&syscall.FILE_ATTRIBUTE_REPARSE_POINT == 0 {
		return false, err
	}
	// The tag is in dwReserved0:
	// https://learn.microsoft.com/windows/win32/api/minwinbase/ns-minwinbase-win32_find_dataw
	var found syscall.Win32finddata
	handle, err := syscall.FindFirstFile(name, &found)
	if err != nil {
		return false, err
	}
	if err := syscall.FindClose(handle); err != nil {
		return false, err
	}
	return found.Reserved0 == tagMountPoint || found.Reserved0 == syscall.IO_REPARSE_TAG_SYMLINK, nil
}

func createSymlink(link, target string, isDir bool) error {
	from, err := syscall.UTF16PtrFromString(link)
	if err != nil {
		return err
	}
	to, err := syscall.UTF16PtrFromString(target)
	if err != nil {
		return err
	}
	var flags uint32
	if isDir {
		flags = symbolicLinkFlagDirectory
	}
	return syscall.CreateSymbolicLink(from, to, flags)
}
