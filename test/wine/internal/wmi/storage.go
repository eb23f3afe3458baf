package wmi

import (
	"context"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Storage returns the classes of a machine that have to do with storage, in their
// namespaces.
func Storage(machine win.Machine) Namespaces {
	return Namespaces{
		`root\Microsoft\Windows\Storage`: {
			"MSFT_Volume": {
				Instances: volumes(machine, "UniqueId"),
				Methods: map[string]Method{"Format": {
					In: []string{
						"FileSystem", "FileSystemLabel", "AllocationUnitSize", "Full", "Force", "Compress",
						"ShortFileNameSupport", "SetIntegrityStreams", "UseLargeFRS", "DisableHeatGathering",
					},
					Call: func(ctx context.Context, self, in Values) (Values, error) {
						if in["FileSystem"] != "NTFS" || in["Full"] != false || in["Force"] != true {
							return returnValue(winerr.StorageInvalidParameter)
						}
						return returnValue(machine.Format(ctx, win.VolumeID(self["UniqueId"].(string)), chosen(in["AllocationUnitSize"], in["FileSystemLabel"])))
					},
				}},
			},
			"MSFT_StorageSetting": {
				Methods: map[string]Method{"UpdateHostStorageCache": {
					Call: func(ctx context.Context, _, _ Values) (Values, error) {
						return returnValue(machine.RefreshStorageCache(ctx))
					},
				}},
			},
		},
		`root\cimv2`: {
			"Win32_Volume": {
				Instances: volumes(machine, "DeviceID"),
				Methods: map[string]Method{"Format": {
					In: []string{"FileSystem", "QuickFormat", "ClusterSize", "Label", "EnableCompression", "Version"},
					Call: func(ctx context.Context, self, in Values) (Values, error) {
						if in["FileSystem"] != "NTFS" || in["QuickFormat"] != true {
							return returnValue(winerr.LegacyFormatCode(1)) // unsupported file system
						}
						return returnValue(machine.FormatLegacy(ctx, win.VolumeID(self["DeviceID"].(string)), chosen(in["ClusterSize"], in["Label"])))
					},
				}},
			},
		},
	}
}

// chosen are the options of a format, which are missing if they were not set.
func chosen(clusterSize, label any) win.FormatOptions {
	size, _ := clusterSize.(int32)
	text, _ := label.(string)
	return win.FormatOptions{ClusterSize: uint32(size), Label: text}
}

// volumes lists the volumes of a machine by the property that has their id.
func volumes(machine win.Machine, property string) func(context.Context) ([]Values, error) {
	return func(ctx context.Context) ([]Values, error) {
		ids, err := machine.VolumeIDs(ctx)
		if err != nil {
			return nil, err
		}
		instances := make([]Values, len(ids))
		for i, id := range ids {
			instances[i] = Values{property: string(id)}
		}
		return instances, nil
	}
}

// returnValue is the result of a method that returns a number. A code that means something
// to its class alone is that number; others are failures of the call.
func returnValue(err error) (Values, error) {
	storage, legacy := winerr.StorageCode(0), winerr.LegacyFormatCode(0)
	switch {
	case err == nil:
		return Values{"ReturnValue": int32(0)}, nil
	case errors.As(err, &storage):
		return Values{"ReturnValue": int32(storage)}, nil
	case errors.As(err, &legacy):
		return Values{"ReturnValue": int32(legacy)}, nil
	default:
		return nil, err
	}
}
