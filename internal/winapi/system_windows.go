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
