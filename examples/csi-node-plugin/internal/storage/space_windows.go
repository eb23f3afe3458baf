package storage

import "golang.org/x/sys/windows"

func spaceAt(path string) (total, free int64, err error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, 0, err
	}
	var available, size, unused uint64
	// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getdiskfreespaceexw
	if err := windows.GetDiskFreeSpaceEx(name, &available, &size, &unused); err != nil {
		return 0, 0, err
	}
	return int64(size), int64(available), nil
}
