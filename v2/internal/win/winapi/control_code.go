package winapi

// ControlCode says what DeviceIoControl asks of a driver: which kind of device knows the
// request, what access to the device it needs, its number, and how data travels.
// https://learn.microsoft.com/windows-hardware/drivers/kernel/defining-i-o-control-codes
type ControlCode uint32

// Parts of control codes, as CTL_CODE puts them together.
const (
	controller = 0x04 << 16 // FILE_DEVICE_CONTROLLER
	disk       = 0x07 << 16 // IOCTL_DISK_BASE
	fileSystem = 0x09 << 16 // FILE_DEVICE_FILE_SYSTEM
	storage    = 0x2D << 16 // IOCTL_STORAGE_BASE
	volume     = 0x56 << 16 // IOCTL_VOLUME_BASE
	mountMgr   = 0x6D << 16 // MOUNTMGRCONTROLTYPE

	anyAccess = 0 << 14 // FILE_ANY_ACCESS
	readWrite = 3 << 14 // FILE_READ_ACCESS | FILE_WRITE_ACCESS

	// The number of the request stands above two bits for how data travels, which are
	// 0 in all of ours: METHOD_BUFFERED, through a buffer of the system.
	number = 2
)

// The control codes we send. Those with anyAccess work on devices opened with NoAccess.
// https://learn.microsoft.com/windows/win32/api/winioctl/
// https://learn.microsoft.com/windows-hardware/drivers/ddi/mountmgr/
const (
	SCSIGetAddress ControlCode = controller | anyAccess | 0x406<<number // IOCTL_SCSI_GET_ADDRESS

	DiskGetDriveLayoutEx   ControlCode = disk | anyAccess | 0x014<<number // IOCTL_DISK_GET_DRIVE_LAYOUT_EX
	DiskSetDriveLayoutEx   ControlCode = disk | readWrite | 0x015<<number // IOCTL_DISK_SET_DRIVE_LAYOUT_EX
	DiskCreateDisk         ControlCode = disk | readWrite | 0x016<<number // IOCTL_DISK_CREATE_DISK
	DiskGetDriveGeometryEx ControlCode = disk | anyAccess | 0x028<<number // IOCTL_DISK_GET_DRIVE_GEOMETRY_EX
	DiskUpdateDriveSize    ControlCode = disk | readWrite | 0x032<<number // IOCTL_DISK_UPDATE_DRIVE_SIZE
	DiskGrowPartition      ControlCode = disk | readWrite | 0x034<<number // IOCTL_DISK_GROW_PARTITION
	DiskGetDiskAttributes  ControlCode = disk | anyAccess | 0x03C<<number // IOCTL_DISK_GET_DISK_ATTRIBUTES
	DiskSetDiskAttributes  ControlCode = disk | readWrite | 0x03D<<number // IOCTL_DISK_SET_DISK_ATTRIBUTES
	DiskUpdateProperties   ControlCode = disk | anyAccess | 0x050<<number // IOCTL_DISK_UPDATE_PROPERTIES

	LockVolume        ControlCode = fileSystem | anyAccess | 6<<number   // FSCTL_LOCK_VOLUME
	DismountVolume    ControlCode = fileSystem | anyAccess | 8<<number   // FSCTL_DISMOUNT_VOLUME
	GetNTFSVolumeData ControlCode = fileSystem | anyAccess | 25<<number  // FSCTL_GET_NTFS_VOLUME_DATA
	IsVolumeDirty     ControlCode = fileSystem | anyAccess | 30<<number  // FSCTL_IS_VOLUME_DIRTY
	GetReFSVolumeData ControlCode = fileSystem | anyAccess | 182<<number // FSCTL_GET_REFS_VOLUME_DATA
	ExtendVolume      ControlCode = fileSystem | anyAccess | 60<<number  // FSCTL_EXTEND_VOLUME

	StorageGetDeviceNumber ControlCode = storage | anyAccess | 0x420<<number // IOCTL_STORAGE_GET_DEVICE_NUMBER
	StorageQueryProperty   ControlCode = storage | anyAccess | 0x500<<number // IOCTL_STORAGE_QUERY_PROPERTY

	VolumeGetVolumeDiskExtents ControlCode = volume | anyAccess | 0<<number // IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS
	VolumeOnline               ControlCode = volume | readWrite | 2<<number // IOCTL_VOLUME_ONLINE

	MountManagerMountPointCreated ControlCode = mountMgr | readWrite | 6<<number // IOCTL_MOUNTMGR_VOLUME_MOUNT_POINT_CREATED
	MountManagerMountPointDeleted ControlCode = mountMgr | readWrite | 7<<number // IOCTL_MOUNTMGR_VOLUME_MOUNT_POINT_DELETED
)
