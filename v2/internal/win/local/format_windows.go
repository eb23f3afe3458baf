package local

import (
	"cmp"
	"context"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/cim"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Windows documents no function to format a volume, so it needs WMI.

func (machine) LockFormat(ctx context.Context, id win.VolumeID) (lock win.FormatLock, err error) {
	lock.Abandoned, lock.Release, err = winapi.TryMutex("csi-proxy-format-" + strings.Trim(string(id), `\?`)) // Volume{guid}
	return lock, err
}

// Format is https://learn.microsoft.com/windows-hardware/drivers/storage/format-msft-volume
func (machine) Format(ctx context.Context, id win.VolumeID, options win.FormatOptions) error {
	volume := cim.Object{Namespace: cim.Storage, Class: "MSFT_Volume", Property: "UniqueId", Value: string(id)}
	parameters := map[string]any{
		"FileSystem": cmp.Or(options.FileSystem, "NTFS"),
		"Full":       false,
		"Force":      options.Force,
	}
	addChosen(parameters, options, "AllocationUnitSize", "FileSystemLabel")
	result, err := cim.Call(ctx, volume, "Format", parameters)
	return storageError(result, err)
}

// FormatLegacy is https://learn.microsoft.com/previous-versions/windows/desktop/legacy/aa390432(v=vs.85)
func (machine) FormatLegacy(ctx context.Context, id win.VolumeID, options win.FormatOptions) error {
	volume := cim.Object{Namespace: cim.V2, Class: "Win32_Volume", Property: "DeviceID", Value: string(id)}
	parameters := map[string]any{
		"FileSystem":  cmp.Or(options.FileSystem, "NTFS"),
		"QuickFormat": true, // the default is to write to every sector
	}
	addChosen(parameters, options, "ClusterSize", "Label")
	result, err := cim.Call(ctx, volume, "Format", parameters)
	if err == nil && result != 0 {
		return winerr.LegacyFormatCode(result)
	}
	return err
}

// addChosen adds the options that are set, by the names of the method's parameters.
func addChosen(parameters map[string]any, options win.FormatOptions, clusterSize, label string) {
	if options.ClusterSize != 0 {
		parameters[clusterSize] = options.ClusterSize
	}
	if options.Label != "" {
		parameters[label] = options.Label
	}
}

func (machine) SetVolumeLabel(ctx context.Context, id win.VolumeID, label string) error {
	return winapi.SetVolumeLabel(string(id), label)
}

func (machine) RootEntries(ctx context.Context, id win.VolumeID) ([]win.DirEntry, error) {
	root, err := openPath(win.Following(string(id)), look|windows.FILE_LIST_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(root)
	entries, err := readEntries(root)
	if code := winerr.CodeOf(err); code == winerr.NoMoreFiles || code == winerr.FileNotFound {
		return nil, nil // a root has no "." and "..", so that an empty one lists nothing
	}
	return entries, err
}

// RootSecurity needs no right to read files.
// https://learn.microsoft.com/windows/win32/api/aclapi/nf-aclapi-getsecurityinfo
func (machine) RootSecurity(ctx context.Context, id win.VolumeID) (string, error) {
	root, err := openPath(win.Following(string(id)), look|windows.READ_CONTROL)
	if err != nil {
		return "", err
	}
	defer windows.CloseHandle(root)
	descriptor, err := windows.GetSecurityInfo(root, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return "", winapi.Error(err)
	}
	return descriptor.String(), nil
}

// SetRootSecurity does not use SetSecurityInfo, which would also change what is below the root.
// https://learn.microsoft.com/windows/win32/api/securitybaseapi/nf-securitybaseapi-setkernelobjectsecurity
func (machine) SetRootSecurity(ctx context.Context, id win.VolumeID, accessList string) error {
	descriptor, err := windows.SecurityDescriptorFromString(accessList)
	if err != nil {
		return winapi.Error(err)
	}
	root, err := openPath(win.Following(string(id)), look|windows.WRITE_DAC)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(root)
	return winapi.Error(windows.SetKernelObjectSecurity(root,
		windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, descriptor))
}

// RefreshStorageCache is a static method:
// https://learn.microsoft.com/windows-hardware/drivers/storage/updatehoststoragecache-msft-storagesetting
func (machine) RefreshStorageCache(ctx context.Context) error {
	setting := cim.Object{Namespace: cim.Storage, Class: "MSFT_StorageSetting"}
	return storageError(cim.Call(ctx, setting, "UpdateHostStorageCache", nil))
}

func storageError(result uint32, err error) error {
	if err == nil && result != 0 {
		return winerr.StorageCode(result)
	}
	return err
}
