package wmi

import (
	"context"
	"errors"
	"strconv"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Storage returns the classes of a machine that have to do with storage, in their
// namespaces.
func Storage(machine win.Machine) Namespaces {
	return Namespaces{
		`root\Microsoft\Windows\Storage`: {
			"MSFT_Volume": {
				Instances: healthOf(machine, volumes(machine, "UniqueId")),
				Methods: map[string]Method{"Format": {
					In: []string{
						"FileSystem", "FileSystemLabel", "AllocationUnitSize", "Full", "Force", "Compress",
						"ShortFileNameSupport", "SetIntegrityStreams", "UseLargeFRS", "DisableHeatGathering",
					},
					Call: func(ctx context.Context, self, in Values) (Values, error) {
						force, given := in["Force"].(bool)
						if in["Full"] != false || !given {
							return returnValue(winerr.StorageInvalidParameter)
						}
						options := chosen(in["FileSystem"], in["AllocationUnitSize"], in["FileSystemLabel"])
						options.Force = force
						return returnValue(machine.Format(ctx, win.VolumeID(self["UniqueId"].(string)), options))
					},
				}},
			},
			"MSFT_PhysicalDisk": {Instances: func(ctx context.Context) ([]Values, error) {
				disks, err := machine.DiskHealth(ctx)
				var instances []Values
				for number, health := range disks {
					instances = append(instances, Values{
						"DeviceId": strconv.Itoa(int(number)), "HealthStatus": int32(health.Status), "OperationalStatus": array(health.Operational),
					})
				}
				return instances, err
			}},
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
						if in["QuickFormat"] != true {
							return returnValue(winerr.LegacyFormatCode(1)) // unsupported file system
						}
						return returnValue(machine.FormatLegacy(ctx, win.VolumeID(self["DeviceID"].(string)), chosen(in["FileSystem"], in["ClusterSize"], in["Label"])))
					},
				}},
			},
		},
	}
}

// chosen are the options of a format, which are missing if they were not set.
func chosen(fileSystem, clusterSize, label any) win.FormatOptions {
	name, _ := fileSystem.(string)
	size, _ := clusterSize.(int32)
	text, _ := label.(string)
	return win.FormatOptions{FileSystem: name, ClusterSize: uint32(size), Label: text}
}

// healthOf adds what the storage service says of volumes.
func healthOf(machine win.Machine, list func(context.Context) ([]Values, error)) func(context.Context) ([]Values, error) {
	return func(ctx context.Context) ([]Values, error) {
		instances, err := list(ctx)
		if err != nil {
			return nil, err
		}
		health, err := machine.VolumeHealth(ctx, "")
		for _, instance := range instances {
			of := health[win.VolumeID(instance["UniqueId"].(string))]
			instance["HealthStatus"], instance["OperationalStatus"] = int32(of.Status), array(of.Operational)
		}
		return instances, err
	}
}

// array is a uint16 array as scripts get it.
func array(numbers []uint16) (elements []any) {
	for _, number := range numbers {
		elements = append(elements, int32(number))
	}
	return elements
}

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
