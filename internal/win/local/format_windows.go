package local

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/cim"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Windows documents no function to format a volume, so it needs WMI. Package cim deals with
// calls that hang: while an abandoned format of a volume is stuck, it refuses both ways to
// format that volume.

// Format is https://learn.microsoft.com/windows-hardware/drivers/storage/format-msft-volume
func (machine) Format(ctx context.Context, id win.VolumeID) error {
	volume := cim.Object{Namespace: cim.Storage, Class: "MSFT_Volume", Property: "UniqueId", Value: string(id)}
	result, err := cim.Call(ctx, volume, "Format", map[string]any{
		"FileSystem": "NTFS",
		"Full":       false,
		"Force":      true, // also where a file system is mounted
	})
	return storageError(result, err)
}

// FormatLegacy is https://learn.microsoft.com/previous-versions/windows/desktop/legacy/aa390432(v=vs.85)
func (machine) FormatLegacy(ctx context.Context, id win.VolumeID) error {
	volume := cim.Object{Namespace: cim.V2, Class: "Win32_Volume", Property: "DeviceID", Value: string(id)}
	result, err := cim.Call(ctx, volume, "Format", map[string]any{
		"FileSystem":  "NTFS",
		"QuickFormat": true, // the default is to write to every sector
	})
	if err == nil && result != 0 {
		return winerr.LegacyFormatCode(result)
	}
	return err
}

// RefreshStorageCache is a static method:
// https://learn.microsoft.com/windows-hardware/drivers/storage/updatehoststoragecache-msft-storagesetting
func (machine) RefreshStorageCache(ctx context.Context) error {
	setting := cim.Object{Namespace: cim.Storage, Class: "MSFT_StorageSetting"}
	return storageError(cim.Call(ctx, setting, "UpdateHostStorageCache", nil))
}

// storageError is the error of a method of a storage management class.
func storageError(result uint32, err error) error {
	if err == nil && result != 0 {
		return winerr.StorageCode(result)
	}
	return err
}
