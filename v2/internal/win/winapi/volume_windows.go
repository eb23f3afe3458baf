package winapi

import (
	"slices"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// nameUnits has room for \\?\Volume{guid}\, which has 49 characters and a NUL, and for
// the name of any file system.
const nameUnits = 64

// VolumeNames lists the volumes that have a name, as \\?\Volume{guid}\, in no particular
// order. Wine's test_FindFirstVolume on Windows (dlls/kernel32/tests/volume.c) has the length and the last code.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-findfirstvolumew
func VolumeNames() ([]string, error) {
	var name [nameUnits]uint16
	search, err := windows.FindFirstVolume(&name[0], nameUnits)
	if err != nil {
		return nil, Error(err) // there is always one, that of Windows itself
	}
	defer func() { _ = windows.FindVolumeClose(search) }()
	var names []string
	for err == nil {
		names = append(names, windows.UTF16ToString(name[:]))
		err = Error(windows.FindNextVolume(search, &name[0], nameUnits))
	}
	if winerr.CodeOf(err) != winerr.NoMoreFiles {
		return nil, err
	}
	return names, nil
}

// FileSystem returns the name of a volume's file system, its label and its flags; root ends with a
// backslash.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getvolumeinformationw
func FileSystem(root string) (name, label string, flags uint32, err error) {
	p, err := utf16Ptr(root)
	if err != nil {
		return "", "", 0, err
	}
	var nameBuffer [nameUnits]uint16
	var labelBuffer [windows.MAX_PATH + 1]uint16 // as documented
	err = windows.GetVolumeInformation(p, &labelBuffer[0], uint32(len(labelBuffer)), nil, nil, &flags, &nameBuffer[0], nameUnits)
	if err != nil {
		return "", "", 0, Error(err)
	}
	return windows.UTF16ToString(nameBuffer[:]), windows.UTF16ToString(labelBuffer[:]), flags, nil
}

// SetVolumeLabel changes the label of a file system; root ends with a backslash.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-setvolumelabelw
func SetVolumeLabel(root, label string) error {
	p, err := utf16Ptr(root)
	if err != nil {
		return err
	}
	name, err := utf16Ptr(label)
	if err != nil {
		return err
	}
	return Error(windows.SetVolumeLabel(p, name))
}

// DiskSpace returns the size of the file system that a directory is on, and what is free of it for
// this process and in all, in bytes. The name of a share must end with a backslash.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getdiskfreespaceexw
func DiskSpace(directory string) (total, available, free uint64, err error) {
	p, err := utf16Ptr(directory)
	if err != nil {
		return 0, 0, 0, err
	}
	err = windows.GetDiskFreeSpaceEx(p, &available, &total, &free)
	return total, available, free, Error(err)
}

// VolumeAt returns the name of the volume whose root is shown at path, which is that of a
// drive or a directory. Unlike CreateFile the function wants it to end with a backslash: 123 without one (Wine's
// test_mounted_folder, dlls/kernel32/tests/volume.c).
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getvolumenameforvolumemountpointw
func VolumeAt(path string) (string, error) {
	p, err := utf16Ptr(strings.TrimSuffix(path, `\`) + `\`)
	if err != nil {
		return "", err
	}
	var name [nameUnits]uint16
	if err := windows.GetVolumeNameForVolumeMountPoint(p, &name[0], nameUnits); err != nil {
		return "", Error(err)
	}
	return windows.UTF16ToString(name[:]), nil
}

// VolumePaths lists the drives and folders at which a volume is known; root is \\?\Volume{guid}\. An unknown volume
// is 2 (Wine's test_GetVolumePathNamesForVolumeNameW, dlls/kernel32/tests/volume.c).
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getvolumepathnamesforvolumenamew
func VolumePaths(root string) ([]string, error) {
	p, err := utf16Ptr(root)
	if err != nil {
		return nil, err
	}
	for size := uint32(512); ; {
		names, needed := make([]uint16, size), uint32(0)
		err := Error(windows.GetVolumePathNamesForVolumeName(p, &names[0], size, &needed))
		switch {
		case err == nil:
			return splitMultiString(names), nil
		case winerr.CodeOf(err) != winerr.MoreData || size > 1<<22:
			return nil, err
		}
		size = max(needed, 2*size)
	}
}

// splitMultiString reads texts that end with NUL each, and with another one in the end.
func splitMultiString(units []uint16) (texts []string) {
	for len(units) > 0 && units[0] != 0 {
		end := slices.Index(units, 0)
		if end < 0 {
			end = len(units)
		}
		texts = append(texts, windows.UTF16ToString(units[:end]))
		units = units[min(end+1, len(units)):]
	}
	return texts
}

// FinalPath returns the path of an open file after following every link, from the volume
// on: \\?\Volume{guid}\dir. A file on another machine has none, ERROR_PATH_NOT_FOUND. Names are as on the disk (Wine's
// test_GetFinalPathNameByHandleW, dlls/kernel32/tests/file.c).
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getfinalpathnamebyhandlew
func FinalPath(file windows.Handle) (string, error) {
	const volumeNameGUID = 1 // VOLUME_NAME_GUID
	for size := uint32(512); ; {
		path := make([]uint16, size)
		n, err := windows.GetFinalPathNameByHandle(file, &path[0], size, volumeNameGUID)
		switch {
		case err != nil:
			return "", Error(err)
		case n < size:
			return windows.UTF16ToString(path[:n]), nil
		case size > 1<<16: // longer than any path
			return "", winerr.FilenameExcedRange
		}
		size = max(n, size) + 1
	}
}

// DeviceOf returns the device behind a name in the namespace of \\.\, for
// instance \Device\HarddiskVolume3 behind C: or Volume{guid}.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-querydosdevicew
func DeviceOf(name string) (string, error) {
	p, err := utf16Ptr(name)
	if err != nil {
		return "", err
	}
	var target [windows.MAX_PATH]uint16
	if _, err := windows.QueryDosDevice(p, &target[0], uint32(len(target))); err != nil {
		return "", Error(err)
	}
	return windows.UTF16ToString(target[:]), nil
}
