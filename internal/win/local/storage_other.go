//go:build !windows

package local

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

func (machine) DiskDevices(context.Context) ([]win.Device, error) { return nil, ErrNotWindows }

func (machine) DeviceNumber(context.Context, win.Device) (win.DeviceNumber, error) {
	return win.DeviceNumber{}, ErrNotWindows
}

func (machine) DeviceDescriptor(context.Context, win.Device) (win.DeviceDescriptor, error) {
	return win.DeviceDescriptor{}, ErrNotWindows
}

func (machine) DeviceIdentifiers(context.Context, win.Device) ([]win.DeviceIdentifier, error) {
	return nil, ErrNotWindows
}

func (machine) DeviceLocation(context.Context, win.Device) (string, error) { return "", ErrNotWindows }

func (machine) SCSIAddress(context.Context, win.Device) (win.SCSIAddress, error) {
	return win.SCSIAddress{}, ErrNotWindows
}

func (machine) DiskGeometry(context.Context, win.Device) (win.DiskGeometry, error) {
	return win.DiskGeometry{}, ErrNotWindows
}

func (machine) DiskAttributes(context.Context, win.Device) (win.DiskAttributes, error) {
	return win.DiskAttributes{}, ErrNotWindows
}

func (machine) SetDiskAttributes(context.Context, win.Device, win.DiskAttributes, win.DiskAttributes) error {
	return ErrNotWindows
}

func (machine) SANPolicy(context.Context) (win.SANPolicy, error) { return 0, ErrNotWindows }

func (machine) DriveLayout(context.Context, win.Device) (win.DriveLayout, error) {
	return win.DriveLayout{}, ErrNotWindows
}

func (machine) SetDriveLayout(context.Context, win.Device, win.DriveLayout) error {
	return ErrNotWindows
}

func (machine) CreateDisk(context.Context, win.Device, win.GUID) error { return ErrNotWindows }

func (machine) GrowPartition(context.Context, win.Device, uint32, int64) error { return ErrNotWindows }

func (machine) UpdateDisk(context.Context, win.Device) error { return ErrNotWindows }

func (machine) UpdateDriveSize(context.Context, win.Device) error { return ErrNotWindows }

func (machine) ReadDevice(context.Context, win.Device, int64, []byte) error { return ErrNotWindows }

func (machine) ResizePartition(context.Context, uint32, win.GUID, int64) error { return ErrNotWindows }

func (machine) StorageAdapters(context.Context) ([]string, error) { return nil, ErrNotWindows }

func (machine) RescanAdapter(context.Context, string) error { return ErrNotWindows }

func (machine) VolumeIDs(context.Context) ([]win.VolumeID, error) { return nil, ErrNotWindows }

func (machine) VolumeExtents(context.Context, win.VolumeID) ([]win.Extent, error) {
	return nil, ErrNotWindows
}

func (machine) FileSystem(context.Context, win.VolumeID) (win.FileSystemInfo, error) {
	return win.FileSystemInfo{}, ErrNotWindows
}

func (machine) VolumeSpace(context.Context, win.VolumeID) (win.Space, error) {
	return win.Space{}, ErrNotWindows
}

func (machine) NTFSVolumeData(context.Context, win.VolumeID) (win.NTFSVolumeData, error) {
	return win.NTFSVolumeData{}, ErrNotWindows
}

func (machine) ReFSVolumeData(context.Context, win.VolumeID) (win.NTFSVolumeData, error) {
	return win.NTFSVolumeData{}, ErrNotWindows
}

func (machine) ExtendVolume(context.Context, win.VolumeID, int64) error { return ErrNotWindows }

func (machine) OnlineVolume(context.Context, win.VolumeID) error { return ErrNotWindows }

func (machine) FlushVolume(context.Context, win.VolumeID) error { return ErrNotWindows }

func (machine) VolumeOfDrive(context.Context, string) (win.VolumeID, error) { return "", ErrNotWindows }

func (machine) VolumePaths(context.Context, win.VolumeID) ([]string, error) {
	return nil, ErrNotWindows
}

func (machine) SystemVolumes(context.Context) ([]win.VolumeID, error) { return nil, ErrNotWindows }

func (machine) VolumeDirty(context.Context, win.VolumeID) (bool, error) { return false, ErrNotWindows }

func (machine) VolumeHealth(context.Context, win.VolumeID) (map[win.VolumeID]win.VolumeHealth, error) {
	return nil, ErrNotWindows
}

func (machine) RepairVolume(context.Context, win.VolumeID, win.Repair) error { return ErrNotWindows }

func (machine) DiskHealth(context.Context) (map[uint32]win.DiskHealth, error) {
	return nil, ErrNotWindows
}

func (machine) Format(context.Context, win.VolumeID, win.FormatOptions) error { return ErrNotWindows }

func (machine) FormatLegacy(context.Context, win.VolumeID, win.FormatOptions) error {
	return ErrNotWindows
}

func (machine) SetVolumeLabel(context.Context, win.VolumeID, string) error { return ErrNotWindows }

func (machine) RootEntries(context.Context, win.VolumeID) ([]win.DirEntry, error) {
	return nil, ErrNotWindows
}

func (machine) RootSecurity(context.Context, win.VolumeID) (string, error) { return "", ErrNotWindows }

func (machine) SetRootSecurity(context.Context, win.VolumeID, string) error { return ErrNotWindows }

func (machine) RefreshStorageCache(context.Context) error { return ErrNotWindows }

func (machine) SMBMapping(context.Context, string) (win.SMBMapping, error) {
	return win.SMBMapping{}, ErrNotWindows
}

func (machine) SMBMappings(context.Context) ([]win.SMBMapping, error) { return nil, ErrNotWindows }

func (machine) CreateSMBMapping(context.Context, win.SMBMappingRequest) error { return ErrNotWindows }

func (machine) RemoveSMBMapping(context.Context, string, bool) error { return ErrNotWindows }
