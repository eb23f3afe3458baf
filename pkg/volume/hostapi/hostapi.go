// Package api is the host side of the volume group: what pkg/volume needs from a
// machine (HostAPI), and our implementation of it.
//
// Drivers call package volume and come here only for New, or to write a host of
// their own for tests. The package clause is older than the directory's name and
// stays, so that existing imports compile; import it as volumeapi.
//
// It compiles on every system. Elsewhere than on Windows the methods of the host that
// New returns fail with an error that matches errors.ErrUnsupported; tests use the
// emulated node of pkg/winsim instead. All hosts made here are safe for concurrent use.
package api

import (
	"context"
	"regexp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
)

// VolumeRegexp finds the part of a volume's id that names the volume, such as
// Volume{4c1b02c1-d990-11dc-99ae-806e6f6e6963}.
var VolumeRegexp = regexp.MustCompile(`Volume\{[\w-]*\}`)

// HostAPI is a machine with volumes. Ids and paths are never empty when package
// volume calls it, and paths are absolute and clean. A call on a volume that is not
// there fails with an error for which errors.Is(err, fs.ErrNotExist) holds. Every
// method may be called again with the same arguments.
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

	// FormatVolume puts an empty NTFS file system on the volume, unless it has a
	// file system.
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

// Option changes how a host behaves.
type Option func(*host)

// FormatOverExisting makes FormatVolume format whatever is on the volume, as releases
// before this one did: a driver that is told by a passing failure that its volume is
// empty loses the data. Volumes of the system disk are refused all the same.
func FormatOverExisting() Option { return func(h *host) { h.formatOver = true } }

// New returns the host of the machine we run on. It is cheap, and all hosts it returns
// share their locks: drivers make a new one for every call.
func New(options ...Option) HostAPI { return newHost(local.Machine(), &thisMachine, options) }

// NewOn returns the host of a given machine. Outside this module the only machines to be
// had are emulated ones: NewOn(node) with a *winsim.Node. Calls through two hosts of the
// same machine made so do not know of each other.
func NewOn(m win.Machine, options ...Option) HostAPI { return newHost(m, &shared{}, options) }

// thisMachine is what all calls to the machine we run on share.
var thisMachine shared

func newHost(m win.Machine, s *shared, options []Option) host {
	h := host{m: m, shared: s, ctx: context.Background()} //nolint:forbidigo // the published HostAPI has no context; WithContext replaces this one
	for _, option := range options {
		option(&h)
	}
	return h
}
