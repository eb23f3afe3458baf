package local

import (
	"context"
	"strconv"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// DiskDevices does not access the disks: Windows keeps the list. But reading it waits while
// devices come and go.
func (machine) DiskDevices(_ context.Context) ([]win.Device, error) {
	return devicesOf(winapi.DiskClass)
}

// HiddenDiskDevices is like DiskDevices.
func (machine) HiddenDiskDevices(_ context.Context) ([]win.Device, error) {
	return devicesOf(winapi.HiddenDiskClass)
}

func devicesOf(class winapi.DeviceClass) ([]win.Device, error) {
	interfaces, err := winapi.DeviceInterfaces(class)
	if err != nil {
		return nil, err
	}
	devices := make([]win.Device, len(interfaces))
	for i, device := range interfaces {
		devices[i] = win.Device(device.Path)
	}
	return devices, nil
}

// DeviceNumber and most of the methods after it ask for what a driver knows since the disk
// arrived, so a dead disk should not block them. But opening a device waits while Windows adds
// or removes it, and no documentation says what a driver keeps. They have a kind of their own,
// so that calls that wait for data of a disk do not block them.
func (machine) DeviceNumber(_ context.Context, d win.Device) (win.DeviceNumber, error) {
	query := winapi.Query{Code: winapi.StorageGetDeviceNumber, Size: winlayout.DeviceNumberSize}
	return ask(d, winapi.NoAccess, query, winlayout.DecodeDeviceNumber)
}

func (machine) DeviceDescriptor(_ context.Context, d win.Device) (win.DeviceDescriptor, error) {
	return ask(d, winapi.NoAccess, property(winlayout.DeviceProperty, 1024), winlayout.DecodeDeviceDescriptor)
}

// DeviceIdentifiers may make the driver ask the disk for its page 83.
func (machine) DeviceIdentifiers(_ context.Context, d win.Device) ([]win.DeviceIdentifier, error) {
	return ask(d, winapi.NoAccess, property(winlayout.DeviceIDProperty, 4096), winlayout.DecodeDeviceIdentifiers)
}

func (machine) DeviceLocation(_ context.Context, d win.Device) (string, error) {
	return ask(d, winapi.NoAccess, property(winlayout.DeviceLocationProperty, 1024), winlayout.DecodeDeviceLocation)
}

// property asks for a property whose description has about so many bytes.
func property(id winlayout.PropertyID, size int) winapi.Query {
	return winapi.Query{
		Code: winapi.StorageQueryProperty,
		In:   winlayout.EncodePropertyQuery(id),
		Size: size,
		Need: winlayout.DescriptorSize,
	}
}

func (machine) SCSIAddress(_ context.Context, d win.Device) (win.SCSIAddress, error) {
	query := winapi.Query{Code: winapi.SCSIGetAddress, Size: winlayout.SCSIAddressSize}
	address, err := ask(d, winapi.NoAccess, query, winlayout.DecodeSCSIAddress)
	if err == nil {
		address.BusNumber = busNumber(d)
	}
	return address, err
}

// busNumber returns the number of the bus on which the controller of a disk sits. It is
// known for interface paths; \\.\PhysicalDrive3 is not in the device tree.
func busNumber(d win.Device) string {
	if !strings.Contains(string(d), "#") {
		return ""
	}
	disk, err := winapi.InterfaceNode(string(d))
	if err != nil {
		return ""
	}
	controller, err := disk.Parent()
	if err != nil {
		return ""
	}
	number, err := controller.BusNumber()
	if err != nil {
		return ""
	}
	return strconv.FormatUint(uint64(number), 10)
}

// DiskGeometry may make the driver ask the disk for its capacity.
func (machine) DiskGeometry(_ context.Context, d win.Device) (win.DiskGeometry, error) {
	query := winapi.Query{Code: winapi.DiskGetDriveGeometryEx, Size: winlayout.DiskGeometrySize}
	return ask(d, winapi.NoAccess, query, winlayout.DecodeDiskGeometry)
}

// DiskAttributes is answered by the partition manager.
func (machine) DiskAttributes(_ context.Context, d win.Device) (win.DiskAttributes, error) {
	query := winapi.Query{Code: winapi.DiskGetDiskAttributes, Size: winlayout.DiskAttributesSize}
	return ask(d, winapi.NoAccess, query, winlayout.DecodeDiskAttributes)
}

// SANPolicy reads the registry.
func (machine) SANPolicy(_ context.Context) (win.SANPolicy, error) {
	return SANPolicy()
}

// SetDiskAttributes waits for the volumes of a disk that goes offline.
func (machine) SetDiskAttributes(_ context.Context, d win.Device, attributes, mask win.DiskAttributes) error {
	return tell(d, winapi.ReadWrite, winapi.DiskSetDiskAttributes, winlayout.EncodeDiskAttributes(attributes, mask))
}

// TakeUnusedOffline does what WSL does to the disks that it takes: without a lock Windows takes one offline that is in use.
// https://github.com/microsoft/WSL/blob/master/src/windows/common/disk.cpp
func (m machine) TakeUnusedOffline(ctx context.Context, d win.Device, volumes []win.VolumeID) error {
	for _, id := range volumes {
		if mounted, err := winapi.IsMounted(string(id.Device())); err == nil && !mounted {
			continue
		}
		volume, err := winapi.Open(string(id.Device()), winapi.ReadWrite)
		if err != nil {
			return err
		}
		defer volume.Close() // which unlocks it
		if err := volume.Control(winapi.LockVolume, nil); err != nil {
			return err
		}
		if err := volume.Control(winapi.DismountVolume, nil); err != nil {
			return err
		}
	}
	offline := win.DiskAttributes{Offline: true}
	return m.SetDiskAttributes(ctx, d, offline, offline)
}

// DriveLayout is answered from the table that the partition manager keeps, but may read it from the disk. Its control
// code needs no access, its documentation says that it needs access for reading. An open for reading makes file
// systems look at the disk, so it comes second.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_disk_get_drive_layout_ex
func (machine) DriveLayout(_ context.Context, d win.Device) (win.DriveLayout, error) {
	query := winapi.Query{Code: winapi.DiskGetDriveLayoutEx, Size: winlayout.DriveLayoutSize}
	layout, err := ask(d, winapi.NoAccess, query, winlayout.DecodeDriveLayout)
	if winerr.CodeOf(err) == winerr.AccessDenied {
		return ask(d, winapi.Read, query, winlayout.DecodeDriveLayout)
	}
	return layout, err
}

// SetDriveLayout writes the table to the disk. It refuses all but GPT tables: the
// seam does not carry all of an MBR table, so it could not be written back unchanged.
func (machine) SetDriveLayout(_ context.Context, d win.Device, layout win.DriveLayout) error {
	if layout.Style != win.StyleGPT {
		return winerr.NotSupported
	}
	table, err := winlayout.EncodeDriveLayout(layout)
	if err != nil {
		return winerr.InvalidParameter
	}
	return tell(d, winapi.ReadWrite, winapi.DiskSetDriveLayoutEx, table)
}

// CreateDisk writes to the disk, and so do the following methods, or they read from it.
func (machine) CreateDisk(_ context.Context, d win.Device, diskID win.GUID) error {
	return tell(d, winapi.ReadWrite, winapi.DiskCreateDisk, winlayout.EncodeCreateDisk(diskID))
}

func (machine) GrowPartition(_ context.Context, d win.Device, partition uint32, bytes int64) error {
	return tell(d, winapi.ReadWrite, winapi.DiskGrowPartition, winlayout.EncodeGrowPartition(partition, bytes))
}

func (machine) UpdateDisk(_ context.Context, d win.Device) error {
	return tell(d, winapi.NoAccess, winapi.DiskUpdateProperties, nil)
}

// UpdateDriveSize is answered with a DISK_GEOMETRY, which says less than DiskGeometry.
func (machine) UpdateDriveSize(_ context.Context, d win.Device) error {
	query := winapi.Query{Code: winapi.DiskUpdateDriveSize, Size: winlayout.DiskGeometrySize}
	_, err := ask(d, winapi.ReadWrite, query, func([]byte) (struct{}, error) { return struct{}{}, nil })
	return err
}

func (machine) ReadDevice(_ context.Context, d win.Device, offset int64, length int) ([]byte, error) {
	device, err := winapi.Open(string(d), winapi.Read)
	if err != nil {
		return nil, err
	}
	defer device.Close()
	return device.Read(offset, length)
}
