package local

import (
	"context"
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
	query := winapi.Query{Code: winapi.IsVolumeDirty, Size: winlayout.VolumeDirtySize}
	return ask(id.Device(), winapi.Read, query, winlayout.DecodeVolumeDirty)
}

// VolumeHealth is https://learn.microsoft.com/windows-hardware/drivers/storage/msft-volume
func (machine) VolumeHealth(ctx context.Context, id win.VolumeID) (map[win.VolumeID]win.VolumeHealth, error) {
	const uniqueID = "UniqueId"
	volumes := cim.Object{Namespace: cim.Storage, Class: "MSFT_Volume"}
	if id != "" {
		volumes.Property, volumes.Value = uniqueID, string(id)
	}
	found, err := cim.Query(ctx, volumes, uniqueID, healthStatus, operationalStatus)
	if err != nil {
		return nil, err
	}
	health := make(map[win.VolumeID]win.VolumeHealth, len(found))
	for _, instance := range found {
		name, _ := instance[uniqueID].(string)
		if of, ok := win.ParseVolumeID(name); ok { // a volume of a cluster has another name
			status, operational := statuses(instance)
			health[of] = win.VolumeHealth{Status: status, Operational: operational}
		}
	}
	return health, nil
}

const healthStatus, operationalStatus = "HealthStatus", "OperationalStatus"

// statuses returns both statuses of an object. It may lack them.
func statuses(instance map[string]any) (status win.DiskStatus, operational []uint16) {
	status = win.DiskUnknown
	if number, known := instance[healthStatus].(int64); known {
		status = win.DiskStatus(number & math.MaxUint16)
	}
	reasons, _ := instance[operationalStatus].([]int64)
	for _, reason := range reasons {
		operational = append(operational, uint16(reason&math.MaxUint16))
	}
	return status, operational
}

// DiskHealth is https://learn.microsoft.com/windows-hardware/drivers/storage/msft-physicaldisk
// Its DeviceId is the number of the disk. Disks in a storage pool have none, or the number that they had before.
func (machine) DiskHealth(ctx context.Context) (map[uint32]win.DiskHealth, error) {
	const deviceID = "DeviceId"
	found, err := cim.Query(ctx, cim.Object{Namespace: cim.Storage, Class: "MSFT_PhysicalDisk"}, deviceID, healthStatus, operationalStatus)
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
		status, operational := statuses(instance)
		health[uint32(disk)] = win.DiskHealth{Status: status, Operational: operational}
	}
	return health, nil
}
