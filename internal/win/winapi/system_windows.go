package winapi

import (
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
// instance \Device\HarddiskVolume1. Windows writes it down at each start.
func SystemPartition() (string, error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SYSTEM\Setup`, registry.QUERY_VALUE)
	if err != nil {
		return "", Error(err)
	}
	defer key.Close()
	device, _, err := key.GetStringValue("SystemPartition")
	return device, Error(err)
}

// SANPolicy is what Windows does with disks that are new to it, 1 to 4 in the order of
// SAN_POLICY. It is FileNotFound if nobody has set it.
// https://learn.microsoft.com/windows-hardware/customize/desktop/unattend/microsoft-windows-partitionmanager-sanpolicy
func SANPolicy() (uint32, error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SYSTEM\CurrentControlSet\Services\partmgr\Parameters`, registry.QUERY_VALUE)
	if err != nil {
		return 0, Error(err)
	}
	defer key.Close()
	policy, _, err := key.GetIntegerValue("SanPolicy")
	return uint32(policy), Error(err)
}

// SystemLibrariesOnly makes Windows load libraries from its own directory only, so that none
// that lies beside the program, in the current directory or on the path is taken for one.
// https://learn.microsoft.com/windows/win32/api/libloaderapi/nf-libloaderapi-setdefaultdlldirectories
func SystemLibrariesOnly() error {
	return Error(windows.SetDefaultDllDirectories(windows.LOAD_LIBRARY_SEARCH_SYSTEM32))
}
