package winapi

import (
	"errors"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// WindowsDirectory is where Windows is installed, usually C:\Windows.
// https://learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-getsystemwindowsdirectoryw
func WindowsDirectory() (string, error) {
	directory, err := windows.GetSystemWindowsDirectory()
	return directory, Error(err)
}

// SystemPartition is the device of the partition that the machine starts from, for
// instance \Device\HarddiskVolume1. Windows records it at each start.
func SystemPartition() (string, error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SYSTEM\Setup`, registry.QUERY_VALUE)
	if err != nil {
		return "", Error(err)
	}
	defer key.Close()
	device, _, err := key.GetStringValue("SystemPartition")
	return device, Error(err)
}

// SANPolicy returns what Windows does with disks that are new to it, DISK_SAN_POLICY, or 0 if
// no policy was ever set.
// https://learn.microsoft.com/windows-hardware/customize/desktop/unattend/microsoft-windows-partitionmanager-sanpolicy
func SANPolicy() (uint64, error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SYSTEM\CurrentControlSet\Services\partmgr\Parameters`, registry.QUERY_VALUE)
	if err != nil {
		return 0, ignoreNotSet(err)
	}
	defer key.Close()
	policy, _, err := key.GetIntegerValue("SanPolicy")
	return policy, ignoreNotSet(err)
}

func ignoreNotSet(err error) error {
	if errors.Is(err, registry.ErrNotExist) {
		return nil
	}
	return Error(err)
}

// SystemLibrariesOnly makes Windows load libraries from its own directory only, never from the
// program's directory, the current one or the path.
// https://learn.microsoft.com/windows/win32/api/libloaderapi/nf-libloaderapi-setdefaultdlldirectories
func SystemLibrariesOnly() error {
	return Error(windows.SetDefaultDllDirectories(windows.LOAD_LIBRARY_SEARCH_SYSTEM32))
}
