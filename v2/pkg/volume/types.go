package volume

// FormatVolumeRequest names the volume to format. The other fields are optional, and take effect
// only if this call formats the volume.
type FormatVolumeRequest struct {
	// VolumeID is the id of the volume.
	VolumeID string
	// FileSystem is NTFS or ReFS; empty means the default.
	FileSystem string
	// AllocationUnitSize is the cluster size in bytes, a power of two from 512 to 2 MiB, of ReFS 4 or
	// 64 KiB; 0 means the default.
	AllocationUnitSize uint32
	// Label is the name of the file system, at most 32 characters; empty means the default.
	Label string
	// RootAccess says who has access to the root directory: volumeapi.UsersModify, or an access
	// list in SDDL, see volumeapi.FormatOptions. Empty means the default.
	RootAccess string
}

// FormatVolumeResponse is empty: the volume has a file system, new or not.
type FormatVolumeResponse struct{}

// GetClosestVolumeIDFromTargetPathRequest names a path.
type GetClosestVolumeIDFromTargetPathRequest struct {
	// TargetPath is an absolute path; it need not exist.
	TargetPath string
}

// GetClosestVolumeIDFromTargetPathResponse names the volume that holds the path.
type GetClosestVolumeIDFromTargetPathResponse struct {
	// VolumeID is the id of the volume.
	VolumeID string
}

// GetDiskNumberFromVolumeIDRequest names a volume.
type GetDiskNumberFromVolumeIDRequest struct {
	// VolumeID is the id of the volume.
	VolumeID string
}

// GetDiskNumberFromVolumeIDResponse names the disk of a volume.
type GetDiskNumberFromVolumeIDResponse struct {
	// DiskNumber is the number Windows gave the disk; use it at once.
	DiskNumber uint32
}

// GetVolumeIDFromTargetPathRequest names a mounted folder or a link to one.
type GetVolumeIDFromTargetPathRequest struct {
	// TargetPath is an absolute path.
	TargetPath string
}

// GetVolumeIDFromTargetPathResponse names the volume mounted there.
type GetVolumeIDFromTargetPathResponse struct {
	// VolumeID is the id of the volume.
	VolumeID string
}

// GetVolumeStatsRequest names a volume.
type GetVolumeStatsRequest struct {
	// VolumeID is the id of the volume.
	VolumeID string
}

// GetVolumeStatsResponse reports how large and how full a volume is.
type GetVolumeStatsResponse struct {
	// TotalBytes is the capacity of the file system in bytes.
	TotalBytes int64
	// UsedBytes is the part of it that is in use, in bytes.
	UsedBytes int64
}

// IsVolumeFormattedRequest names a volume.
type IsVolumeFormattedRequest struct {
	// VolumeID is the id of the volume.
	VolumeID string
}

// IsVolumeFormattedResponse reports whether a volume has a file system.
type IsVolumeFormattedResponse struct {
	// Formatted is false only if Windows found no file system it knows.
	Formatted bool
}

// ListVolumesOnDiskRequest names a disk, and maybe one of its partitions.
type ListVolumesOnDiskRequest struct {
	// DiskNumber is the number Windows gave the disk.
	DiskNumber uint32
	// PartitionNumber restricts the list to one partition; 0 means all.
	PartitionNumber uint32
}

// ListVolumesOnDiskResponse holds the volumes found.
type ListVolumesOnDiskResponse struct {
	// VolumeIDs are the ids of the volumes, in the order in which they lie on the disk.
	VolumeIDs []string
}

// MountVolumeRequest names a volume and the folder it should appear at.
type MountVolumeRequest struct {
	// VolumeID is the id of the volume.
	VolumeID string
	// TargetPath is the absolute path of the folder.
	TargetPath string
}

// MountVolumeResponse is empty: the volume is mounted at the folder.
type MountVolumeResponse struct{}

// ResizeVolumeRequest names a volume and the size it should have.
type ResizeVolumeRequest struct {
	// VolumeID is the id of the volume.
	VolumeID string
	// SizeBytes is the wanted size of the partition in bytes. Use 0 for all available
	// space. The size of the disk means the same, although its partition table takes a
	// part of it. A size below the current one changes nothing.
	SizeBytes int64
}

// ResizeVolumeResponse is empty: the volume has the wanted size, to a mebibyte, or more.
type ResizeVolumeResponse struct{}

// UnmountVolumeRequest names a volume and the folder it should leave.
type UnmountVolumeRequest struct {
	// VolumeID is the id of the volume.
	VolumeID string
	// TargetPath is the absolute path of the folder.
	TargetPath string
}

// UnmountVolumeResponse is empty: the volume is not mounted at the folder.
type UnmountVolumeResponse struct{}

// WriteVolumeCacheRequest names the volume to flush.
type WriteVolumeCacheRequest struct {
	// VolumeID is the id of the volume.
	VolumeID string
	// TargetPath is the folder from which the volume is unmounted next, or empty. With it, a volume that
	// UnmountVolume would unmount without a flush is not waited for: one that is gone, and one whose
	// disk has failed at the call before. The host must be one of package hostapi or winsim.
	TargetPath string
}

// WriteVolumeCacheResponse says that what was cached is on the disk, or why it is not.
type WriteVolumeCacheResponse struct {
	// Loss says why what was written last may be lost. It is empty without a TargetPath.
	Loss string
}
