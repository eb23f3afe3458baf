package mounter

import (
	"math"

	"golang.org/x/sys/windows"
)

func spaceAt(path string) (total, available int64, err error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, 0, err
	}
	var free, size, unused uint64
	// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getdiskfreespaceexw
	if err := windows.GetDiskFreeSpaceEx(name, &free, &size, &unused); err != nil {
		return 0, 0, err
	}
	return int64(min(size, math.MaxInt64)), int64(min(free, math.MaxInt64)), nil
}
