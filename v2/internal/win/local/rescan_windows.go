package local

import (
	"context"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// StorageAdapters reads a list that Windows keeps, as DiskDevices does.
func (machine) StorageAdapters(_ context.Context) ([]string, error) {
	interfaces, err := winapi.DeviceInterfaces(winapi.StoragePortClass)
	if err != nil {
		return nil, err
	}
	var adapters []string
	for _, adapter := range interfaces {
		if !slices.Contains(adapters, adapter.InstanceID) {
			adapters = append(adapters, adapter.InstanceID)
		}
	}
	return adapters, nil
}

// RescanAdapter waits for every target of the adapter. One that does not answer takes
// until the driver gives up, often a minute.
func (machine) RescanAdapter(_ context.Context, adapter string) error {
	// Without the privilege the scan itself fails, which says enough.
	_ = winapi.LoadDriverPrivilege.Enable()
	node, err := winapi.LocateDeviceNode(adapter)
	if err != nil {
		return err
	}
	return node.Reenumerate()
}
