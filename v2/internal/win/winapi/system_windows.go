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

// The standard streams of a process, for SetStandardHandle.
const (
	StandardInput  = windows.STD_INPUT_HANDLE
	StandardOutput = windows.STD_OUTPUT_HANDLE
	StandardError  = windows.STD_ERROR_HANDLE
)

// SetStandardHandle makes an open file a standard stream of the process, for libraries and for Go's runtime, which
// asks Windows for its standard error when it crashes. It returns the handle that was there, for the next call.
// https://learn.microsoft.com/windows/console/setstdhandle
func SetStandardHandle(stream uint32, handle uintptr) (before uintptr, err error) {
	old, err := windows.GetStdHandle(stream)
	if err != nil {
		return 0, Error(err)
	}
	return uintptr(old), Error(windows.SetStdHandle(stream, windows.Handle(handle)))
}

// SystemLibrariesOnly makes Windows load libraries from its own directory only, never from the
// program's directory, the current one or the path.
// https://learn.microsoft.com/windows/win32/api/libloaderapi/nf-libloaderapi-setdefaultdlldirectories
func SystemLibrariesOnly() error {
	return Error(windows.SetDefaultDllDirectories(windows.LOAD_LIBRARY_SEARCH_SYSTEM32))
}
