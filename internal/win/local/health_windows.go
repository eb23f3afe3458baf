package local

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/cim"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// VolumeDirty needs a handle of the mounted file system, which a volume opened without access does not have. To read
// is the least that reaches it.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-fsctl_is_volume_dirty
func (machine) VolumeDirty(ctx context.Context, id win.VolumeID) (bool, error) {
	return within(ctx, reachVolume, string(id), func() (bool, error) {
		query := winapi.Query{Code: winapi.IsVolumeDirty, Size: winlayout.VolumeDirtySize}
		return ask(id.Device(), winapi.Read, query, winlayout.DecodeVolumeDirty)
	})
}

// VolumeHealth is https://learn.microsoft.com/windows-hardware/drivers/storage/msft-volume
func (machine) VolumeHealth(ctx context.Context, id win.VolumeID) (map[win.VolumeID]win.VolumeHealth, error) {
	const uniqueID, status = "UniqueId", "HealthStatus"
	volumes := cim.Object{Namespace: cim.Storage, Class: "MSFT_Volume"}
	if id != "" {
		volumes.Property, volumes.Value = uniqueID, string(id)
	}
	found, err := cim.Query(ctx, volumes, uniqueID, status)
	if err != nil {
		return nil, err
	}
	health := make(map[win.VolumeID]win.VolumeHealth, len(found))
	for _, instance := range found {
		name, _ := instance[uniqueID].(string)
		of, ok := win.ParseVolumeID(name)
		number, known := instance[status].(int64)
		switch {
		case !ok: // a volume of a cluster has another name
		case known:
			health[of] = win.VolumeHealth(number & math.MaxUint16)
		default:
			health[of] = win.HealthUnknown
		}
	}
	return health, nil
}

// RepairVolume is https://learn.microsoft.com/windows-hardware/drivers/storage/repair-msft-volume
func (machine) RepairVolume(ctx context.Context, id win.VolumeID, how win.Repair) error {
	parameter, known := map[win.Repair]string{
		win.RepairScan: "Scan", win.RepairSpotFix: "SpotFix", win.RepairOffline: "OfflineScanAndFix",
	}[how]
	if !known {
		return fmt.Errorf("%w: %q is no repair", errInvalidData, how)
	}
	volume := cim.Object{Namespace: cim.Storage, Class: "MSFT_Volume", Property: "UniqueId", Value: string(id)}
	return storageError(cim.Call(ctx, volume, "Repair", map[string]any{parameter: true}))
}

// DiskHealth is https://learn.microsoft.com/windows-hardware/drivers/storage/msft-physicaldisk
// Its DeviceId is the number of the disk. Disks in a storage pool have none, or the number that they had before.
func (machine) DiskHealth(ctx context.Context) (map[uint32]win.DiskHealth, error) {
	const deviceID, status, operational = "DeviceId", "HealthStatus", "OperationalStatus"
	found, err := cim.Query(ctx, cim.Object{Namespace: cim.Storage, Class: "MSFT_PhysicalDisk"}, deviceID, status, operational)
	if err != nil {
		return nil, err
	}
	health := make(map[uint32]win.DiskHealth, len(found))
	for _, instance := range found {
		text, _ := instance[deviceID].(string)
		disk, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			continue
		}
		is := win.DiskHealth{Status: win.DiskUnknown}
		if number, known := instance[status].(int64); known {
			is.Status = win.DiskStatus(number & math.MaxUint16)
		}
		reasons, _ := instance[operational].([]int64)
		for _, reason := range reasons {
			is.Operational = append(is.Operational, uint16(reason&math.MaxUint16))
		}
		health[uint32(disk)] = is
	}
	return health, nil
}
