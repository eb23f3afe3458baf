package winapi

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

//sys	ntQueryVolumeInformationFile(file windows.Handle, status *windows.IO_STATUS_BLOCK, info *fileFSDeviceInformation, size uint32, class uint32) (ntstatus error) = ntdll.NtQueryVolumeInformationFile

// fileFSDeviceInformation is FILE_FS_DEVICE_INFORMATION.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/wdm/ns-wdm-_file_fs_device_information
type fileFSDeviceInformation struct{ deviceType, characteristics uint32 }

// IsMounted reports whether Windows has mounted the file system of a volume. It does not mount it: Windows does so when a
// volume is opened, but not for NoAccess.
func IsMounted(volume string) (bool, error) {
	const (
		class     = 4    // FileFsDeviceInformation
		isMounted = 0x20 // FILE_DEVICE_IS_MOUNTED
	)
	device, err := Open(volume, NoAccess)
	if err != nil {
		return false, err
	}
	defer device.Close()
	var status windows.IO_STATUS_BLOCK
	var info fileFSDeviceInformation
	err = ntQueryVolumeInformationFile(device.handle, &status, &info, uint32(unsafe.Sizeof(info)), class)
	return info.characteristics&isMounted != 0, Error(err)
}
