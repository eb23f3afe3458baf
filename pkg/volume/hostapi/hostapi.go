// Package api says what package volume needs from the machine below it, and
// provides that machine.
//
// Drivers call package volume and come here only for New, or to write a host of
// their own for tests. The package clause is older than the directory's name and
// stays, so that existing imports compile; import it as volumeapi.
//
// It compiles on every system. The host that New returns is safe for concurrent
// use.
package api

import "regexp"

// VolumeRegexp finds the part of a volume's id that names the volume, such as
// Volume{4c1b02c1-d990-11dc-99ae-806e6f6e6963}.
var VolumeRegexp = regexp.MustCompile(`Volume\{[\w-]*\}`)

// HostAPI is a machine with volumes. Ids and paths are never empty when package
// volume calls it. A call on a volume that is not there fails with an error for
// which errors.Is(err, fs.ErrNotExist) holds.
//
// A host may also have a method WithContext(context.Context) HostAPI; package
// volume then calls the host it returns, bound to the context of the request.
type HostAPI interface {
	// ListVolumesOnDisk returns the ids of the volumes on a partition of a
	// disk, or on all of them if the partition's number is 0.
	ListVolumesOnDisk(diskNumber uint32, partitionNumber uint32) (volumeIDs []string, err error)

	// MountVolume makes the volume appear at a folder.
	MountVolume(volumeID, targetPath string) error

	// UnmountVolume flushes the volume and takes it away from a folder.
	UnmountVolume(volumeID, targetPath string) error

	// IsVolumeFormatted tells whether the volume has a file system.
	IsVolumeFormatted(volumeID string) (bool, error)

	// FormatVolume puts an empty NTFS file system on the volume.
	FormatVolume(volumeID string) error

	// ResizeVolume grows the volume to a size in bytes, or if that is 0 as far
	// as it goes.
	ResizeVolume(volumeID string, sizeBytes int64) error

	// GetVolumeStats returns the capacity and the used part of it, in bytes.
	GetVolumeStats(volumeID string) (int64, int64, error)

	// GetDiskNumberFromVolumeID returns the number of the volume's disk.
	GetDiskNumberFromVolumeID(volumeID string) (uint32, error)

	// GetVolumeIDFromTargetPath returns the volume mounted at a path.
	GetVolumeIDFromTargetPath(targetPath string) (string, error)

	// WriteVolumeCache writes what is cached for the volume to its disk.
	WriteVolumeCache(volumeID string) error

	// GetClosestVolumeIDFromTargetPath returns the volume that holds a path.
	GetClosestVolumeIDFromTargetPath(targetPath string) (string, error)
}
