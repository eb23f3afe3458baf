package win

import (
	"context"
	"fmt"
)

// Device is what CreateFile opens to reach a disk or volume: \\.\PhysicalDrive3, a device
// interface path such as \\?\scsi#disk&ven_..., or \\?\Volume{guid} without a trailing
// backslash.
type Device string

// PhysicalDrive is the device of the disk with that number.
func PhysicalDrive(number uint32) Device { return Device(fmt.Sprintf(`\\.\PhysicalDrive%d`, number)) }

// PartitionDevice is the device of a partition, which exists even while its volume has no
// name. It can be used where a call takes only a VolumeID.
func PartitionDevice(disk, partition uint32) Device {
	return Device(fmt.Sprintf(`\\?\GLOBALROOT\Device\Harddisk%d\Partition%d`, disk, partition))
}

// Disks is the part of a machine that deals with disks, one method per control code. Each
// opens the device with the least access its code needs, and closes it before it returns:
// an open handle keeps a disk from going offline.
//
// For a device that is gone opening fails with ERROR_FILE_NOT_FOUND (2), and a later call with
// ERROR_DEV_NOT_EXIST (55), ERROR_NO_SUCH_DEVICE (433), ERROR_DEVICE_NOT_CONNECTED (1167) or
// ERROR_DEVICE_REMOVED (1617). A driver that does not know a control code fails with
// ERROR_INVALID_FUNCTION (1) or ERROR_NOT_SUPPORTED (50).
type Disks interface {
	// DiskDevices lists the interface paths of the disks that are present, in no
	// particular order: SetupDiGetClassDevs with GUID_DEVINTERFACE_DISK.
	DiskDevices(ctx context.Context) ([]Device, error)

	// HiddenDiskDevices is DiskDevices with GUID_DEVINTERFACE_HIDDEN_DISK: disks that Windows hides, such as the members
	// of storage pools.
	HiddenDiskDevices(ctx context.Context) ([]Device, error)

	// DeviceNumber is IOCTL_STORAGE_GET_DEVICE_NUMBER, for disks and volumes. It fails with
	// ERROR_INVALID_FUNCTION (1), ERROR_NOT_SUPPORTED (50) or ERROR_INVALID_PARAMETER (87)
	// for volumes that are not exactly one partition.
	DeviceNumber(ctx context.Context, d Device) (DeviceNumber, error)

	// DeviceDescriptor is IOCTL_STORAGE_QUERY_PROPERTY, StorageDeviceProperty.
	DeviceDescriptor(ctx context.Context, d Device) (DeviceDescriptor, error)

	// DeviceIdentifiers is IOCTL_STORAGE_QUERY_PROPERTY, StorageDeviceIdProperty: the
	// identifiers of SCSI page 83, in the device's order.
	DeviceIdentifiers(ctx context.Context, d Device) ([]DeviceIdentifier, error)

	// DeviceLocation is IOCTL_STORAGE_QUERY_PROPERTY, StorageDeviceLocationProperty: a
	// text such as "Integrated : Bus 0 : Device 3 : Function 0 : Adapter 1 : Port 0 :
	// Target 0 : LUN 1". Not every driver has it.
	DeviceLocation(ctx context.Context, d Device) (string, error)

	// SCSIAddress is IOCTL_SCSI_GET_ADDRESS, and the bus number of the controller.
	SCSIAddress(ctx context.Context, d Device) (SCSIAddress, error)

	// DiskGeometry is IOCTL_DISK_GET_DRIVE_GEOMETRY_EX. After a disk has grown it may
	// show the old size until UpdateDriveSize or UpdateDisk.
	DiskGeometry(ctx context.Context, d Device) (DiskGeometry, error)

	// DiskAttributes is IOCTL_DISK_GET_DISK_ATTRIBUTES.
	DiskAttributes(ctx context.Context, d Device) (DiskAttributes, error)

	// SetDiskAttributes is IOCTL_DISK_SET_DISK_ATTRIBUTES, persistent: the attributes
	// named in mask get the value they have in attributes.
	SetDiskAttributes(ctx context.Context, d Device, attributes, mask DiskAttributes) error

	// TakeUnusedOffline is SetDiskAttributes that takes a disk offline, while FSCTL_LOCK_VOLUME holds its volumes and
	// FSCTL_DISMOUNT_VOLUME has dismounted them. It fails with ERROR_ACCESS_DENIED (5), and changes nothing, if a file on
	// one is open. It leaves a volume alone whose file system Windows has not mounted: to open it would mount it.
	TakeUnusedOffline(ctx context.Context, d Device, volumes []VolumeID) error

	// SANPolicy is the policy for disks that are new to the machine.
	SANPolicy(ctx context.Context) (SANPolicy, error)

	// DriveLayout is IOCTL_DISK_GET_DRIVE_LAYOUT_EX.
	DriveLayout(ctx context.Context, d Device) (DriveLayout, error)

	// SetDriveLayout is IOCTL_DISK_SET_DRIVE_LAYOUT_EX: it replaces the whole table.
	SetDriveLayout(ctx context.Context, d Device, layout DriveLayout) error

	// CreateDisk is IOCTL_DISK_CREATE_DISK with PARTITION_STYLE_GPT. It destroys the
	// partition table that is there.
	CreateDisk(ctx context.Context, d Device, diskID GUID) error

	// GrowPartition is IOCTL_DISK_GROW_PARTITION; bytes is the difference, not a size.
	GrowPartition(ctx context.Context, d Device, partition uint32, bytes int64) error

	// ResizePartition is MSFT_Partition.Resize: the storage service grows a GPT partition to
	// size bytes, and its file system. Before that it extends the table to the end of the disk.
	// What the method returns comes as a winerr.StorageCode. The service may not know the disk:
	// winerr.WMINotFound.
	ResizePartition(ctx context.Context, disk uint32, partition GUID, size int64) error

	// DiskHealth is what the storage service knows of the disks, by their numbers: MSFT_PhysicalDisk. A disk that it
	// does not know, which may be new, is missing.
	DiskHealth(ctx context.Context) (map[uint32]DiskHealth, error)

	// UpdateDisk is IOCTL_DISK_UPDATE_PROPERTIES: Windows reads the table again.
	UpdateDisk(ctx context.Context, d Device) error

	// UpdateDriveSize is IOCTL_DISK_UPDATE_DRIVE_SIZE: Windows asks for the capacity
	// again.
	UpdateDriveSize(ctx context.Context, d Device) error

	// ReadDevice reads from a disk or volume. Offset and length must be multiples of
	// the sector size.
	ReadDevice(ctx context.Context, d Device, offset int64, length int) ([]byte, error)

	// StorageAdapters lists the device instance ids of the storage adapters.
	StorageAdapters(ctx context.Context) ([]string, error)

	// RescanAdapter makes an adapter look for new and grown disks and waits for it:
	// CM_Reenumerate_DevNode, synchronous. The empty id is the root of the device tree.
	RescanAdapter(ctx context.Context, adapter string) error
}

// DeviceType is the kind of a device, FILE_DEVICE_...
type DeviceType uint32

// The device types we tell apart: a CD-ROM and a disk can have the same number.
const (
	DeviceTypeCDROM DeviceType = 2
	DeviceTypeDisk  DeviceType = 7
)

// DeviceNumber is STORAGE_DEVICE_NUMBER.
type DeviceNumber struct {
	Type      DeviceType
	Number    uint32
	Partition uint32 // 0 for a whole disk
}

// BusType is STORAGE_BUS_TYPE, how a disk is attached.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntddstor/ne-ntddstor-storage_bus_type
type BusType uint32

// The bus types that matter to us.
const (
	BusTypeSCSI              BusType = 1
	BusTypeFibre             BusType = 6
	BusTypeISCSI             BusType = 9
	BusTypeSAS               BusType = 10
	BusTypeVirtual           BusType = 14
	BusTypeFileBackedVirtual BusType = 15
	BusTypeNVMe              BusType = 17
)

// DeviceDescriptor is the part of STORAGE_DEVICE_DESCRIPTOR that we use.
type DeviceDescriptor struct {
	BusType BusType
	// Removable says that the device takes media, as a card reader does. It may have none.
	Removable bool
	// Vendor and Product are what Windows makes the model's name of, without the spaces around
	// them; either may be empty.
	Vendor, Product string
	// Serial is the serial number without the spaces around it, or empty. It is not
	// reformatted in any other way: drivers compare it.
	Serial string
}

// DeviceIdentifier is STORAGE_IDENTIFIER.
type DeviceIdentifier struct {
	CodeSet     CodeSet
	Type        IdentifierType
	Association uint32 // 0: it identifies the device itself
	Value       []byte
}

// IdentifierType says what an identifier is made of, STORAGE_IDENTIFIER_TYPE.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/storduid/ne-storduid-_storage_identifier_type
type IdentifierType uint32

// The types of identifiers.
const (
	IdentifierVendorSpecific IdentifierType = 0
	IdentifierVendorID       IdentifierType = 1
	IdentifierEUI64          IdentifierType = 2 // the NGUID of an NVMe namespace, too
	IdentifierNAA            IdentifierType = 3
	IdentifierSCSIName       IdentifierType = 8
)

// CodeSet says how the value of an identifier is to be read.
type CodeSet uint32

// The code sets.
const (
	CodeSetBinary CodeSet = 1
	CodeSetASCII  CodeSet = 2
	CodeSetUTF8   CodeSet = 3
)

// SCSIAddress is SCSI_ADDRESS with the number of the controller's bus, which is empty if
// unknown.
type SCSIAddress struct {
	Port, Path, Target, LUN uint8
	BusNumber               string
}

// DiskGeometry is the part of DISK_GEOMETRY_EX that we use.
type DiskGeometry struct {
	Size           int64 // bytes
	BytesPerSector uint32
}

// DiskAttributes are the attributes of a disk, and a mask of them.
type DiskAttributes struct {
	Offline  bool
	ReadOnly bool
}
