package win

import (
	"context"
	"strings"
)

// VolumeID is the name of a volume in the one spelling we use: \\?\Volume{guid}\ with the
// GUID in lower case and a trailing backslash.
type VolumeID string

// ParseVolumeID brings a volume id into our spelling. It accepts any case, with or without the
// trailing backslash, and nothing else: a caller must not smuggle in \\?\Volume{...}\..\x or
// another device.
func ParseVolumeID(text string) (VolumeID, bool) {
	const begin, end = `\\?\Volume{`, `}\`
	id, ok := strings.CutSuffix(strings.TrimSuffix(text, `\`)+`\`, end)
	if !ok || len(id) < len(begin) || !strings.EqualFold(id[:len(begin)], begin) || !isGUID(id[len(begin):]) {
		return "", false
	}
	return VolumeID(begin + strings.ToLower(id[len(begin):]) + end), true
}

// Device is what CreateFile opens to reach the volume itself; with the trailing backslash
// it would open the root directory.
func (id VolumeID) Device() Device { return Device(strings.TrimSuffix(string(id), `\`)) }

// Volumes is the part of a machine that deals with volumes and where they are mounted.
//
// For a volume that is gone calls fail with ERROR_FILE_NOT_FOUND (2) or ERROR_PATH_NOT_FOUND (3),
// for one that is offline with ERROR_NOT_READY (21).
type Volumes interface {
	// VolumeIDs lists the volumes that have a name, in no particular order:
	// FindFirstVolume, FindNextVolume.
	VolumeIDs(ctx context.Context) ([]VolumeID, error)

	// VolumeExtents is IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS.
	VolumeExtents(ctx context.Context, id VolumeID) ([]Extent, error)

	// FileSystem describes the volume's file system: GetVolumeInformation.
	// It fails with ERROR_UNRECOGNIZED_VOLUME (1005) if none is recognised. The name can also
	// be "RAW".
	FileSystem(ctx context.Context, id VolumeID) (FileSystemInfo, error)

	// VolumeSpace is GetDiskFreeSpaceEx.
	VolumeSpace(ctx context.Context, id VolumeID) (Space, error)

	// NTFSVolumeData is FSCTL_GET_NTFS_VOLUME_DATA.
	NTFSVolumeData(ctx context.Context, id VolumeID) (NTFSVolumeData, error)

	// ReFSVolumeData is FSCTL_GET_REFS_VOLUME_DATA.
	ReFSVolumeData(ctx context.Context, id VolumeID) (NTFSVolumeData, error)

	// ExtendVolume is FSCTL_EXTEND_VOLUME; sectors is the new total size.
	ExtendVolume(ctx context.Context, id VolumeID, sectors int64) error

	// OnlineVolume is IOCTL_VOLUME_ONLINE.
	OnlineVolume(ctx context.Context, id VolumeID) error

	// FlushVolume writes everything cached to the volume: FlushFileBuffers.
	FlushVolume(ctx context.Context, id VolumeID) error

	// VolumeOfDrive returns the volume of a drive, which is given by its root:
	// GetVolumeNameForVolumeMountPoint.
	VolumeOfDrive(ctx context.Context, root string) (VolumeID, error)

	// VolumePaths returns the names under which a volume is known besides its id: roots of
	// drives, and mounted folders of which the mount manager was notified.
	// GetVolumePathNamesForVolumeName. It fails with ERROR_FILE_NOT_FOUND (2) if the volume is
	// gone.
	VolumePaths(ctx context.Context, id VolumeID) ([]string, error)

	// SystemVolumes returns the volumes of the Windows directory, which is the first, and of the
	// boot files: nothing may ever be done to their disks.
	SystemVolumes(ctx context.Context) ([]VolumeID, error)

	// VolumeDirty reports the dirty bit: FSCTL_IS_VOLUME_DIRTY. It is set while the file system may be inconsistent.
	// NTFS answers ERROR_FILE_CORRUPT (1392) if it cannot read the bit itself.
	VolumeDirty(ctx context.Context, id VolumeID) (bool, error)

	// VolumeHealth is what the storage service knows of a volume's file system, or with an empty id of all volumes:
	// MSFT_Volume. A volume that it does not know, which may be new, is missing.
	VolumeHealth(ctx context.Context, id VolumeID) (map[VolumeID]VolumeHealth, error)

	// LockFormat takes the lock without which no process of ours formats a volume. It fails with WAIT_TIMEOUT (258) while
	// it is taken, also by this process. Windows has it as a mutex, with a key of the registry that survives its owner:
	// CreateMutexEx, WaitForSingleObject, RegCreateKeyEx.
	LockFormat(ctx context.Context, id VolumeID) (FormatLock, error)

	// Format formats a volume, quickly, destroying what is there:
	// MSFT_Volume.Format. It takes seconds, and goes on after ctx has ended. What the
	// method returns comes as a winerr.StorageCode. The storage service may not know
	// a new volume yet: winerr.WMINotFound, or winerr.StorageCacheOutOfDate.
	Format(ctx context.Context, id VolumeID, options FormatOptions) error

	// FormatLegacy does the same by Win32_Volume.Format, which does not depend on the storage
	// service's cache. What the method returns comes as a winerr.LegacyFormatCode.
	FormatLegacy(ctx context.Context, id VolumeID, options FormatOptions) error

	// SetVolumeLabel names the file system, or with an empty label removes its name:
	// SetVolumeLabel.
	SetVolumeLabel(ctx context.Context, id VolumeID, label string) error

	// RootEntries lists the root directory of the volume. Of many entries, it returns only the
	// first.
	RootEntries(ctx context.Context, id VolumeID) ([]DirEntry, error)

	// RootSecurity returns the access list of the volume's root directory, on a handle of it:
	// GetSecurityInfo. It is a text that package sddl may read; Windows has lists that it does
	// not know.
	RootSecurity(ctx context.Context, id VolumeID) (accessList string, err error)

	// SetRootSecurity replaces the access list of the volume's root directory, on a handle of
	// it: SetKernelObjectSecurity. Entries in the root keep theirs. The list is a text that
	// package sddl reads.
	SetRootSecurity(ctx context.Context, id VolumeID, accessList string) error

	// RefreshStorageCache makes the storage service look at disks and volumes again:
	// MSFT_StorageSetting.UpdateHostStorageCache.
	RefreshStorageCache(ctx context.Context) error
}

// FileSystemInfo is the part of the result of GetVolumeInformation that we use.
type FileSystemInfo struct {
	Name     string
	Label    string
	ReadOnly bool // FILE_READ_ONLY_VOLUME: writes fail with ERROR_WRITE_PROTECT (19)
}

// FormatOptions are what a format can choose. Zero values leave the choice to Windows.
type FormatOptions struct {
	FileSystem  string // NTFS, which is also the zero value, or ReFS
	ClusterSize uint32 // in bytes
	Label       string
	Force       bool // also while programs have the volume open; FormatLegacy may do that without it
}

// FormatLock is the lock of a volume's format.
type FormatLock struct {
	Abandoned bool   // its last owner has ended without releasing it
	Release   func() // to be called once; it can neither wait nor fail
}

// Extent is DISK_EXTENT: a part of a disk that belongs to a volume.
type Extent struct {
	Disk           uint32
	Offset, Length int64
}

// Space is the result of GetDiskFreeSpaceEx, in bytes.
type Space struct {
	Total int64
	Free  int64 // of a volume without regard to quotas
}

// NTFSVolumeData is the part of NTFS_VOLUME_DATA_BUFFER that we use, and of REFS_VOLUME_DATA_BUFFER the same part.
type NTFSVolumeData struct {
	Sectors         int64 // of NTFS one less than it occupies: the backup boot sector
	TotalClusters   int64
	FreeClusters    int64
	BytesPerSector  uint32
	BytesPerCluster uint32
	ReFS            bool
}

// VolumeOf returns the volume with which a location or another path by volume begins.
func VolumeOf(location string) (id VolumeID, ok bool) {
	return ParseVolumeID(location[:strings.IndexByte(location, '}')+1])
}
