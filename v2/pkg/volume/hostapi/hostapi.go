// Package api is the host side of the volume group: what pkg/volume needs from a
// machine (HostAPI), and our implementation of it.
//
// Drivers call package volume and come here only for New, or to write a host of
// their own for tests. The package clause is older than the directory's name and
// stays, so that existing imports compile; import it as volumeapi.
//
// All hosts made here are safe for concurrent use.
package api

import (
	"context"
	"regexp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/lostvolume"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
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
type HostAPI interface {
	// ListVolumesOnDisk returns the ids of the volumes on a partition of a
	// disk, or on all of them if the partition's number is 0. It fails if Windows has
	// not shown an expected volume yet.
	ListVolumesOnDisk(diskNumber uint32, partitionNumber uint32) (volumeIDs []string, err error)

	// MountVolume makes the volume appear at a folder.
	MountVolume(volumeID, targetPath string) error

	// UnmountVolume flushes the volume and takes it away from a folder.
	UnmountVolume(volumeID, targetPath string) error

	// IsVolumeFormatted reports whether the volume has a file system.
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

// Extended is HostAPI with what was added since it was published: hosts that drivers have written still compile. Those of
// this package have it. Package volume refuses with errors.ErrUnsupported what another host would need it for.
type Extended interface {
	HostAPI

	// WithContext returns the same host, its calls bounded by ctx.
	WithContext(ctx context.Context) HostAPI
	// Within returns the same host, limited by a policy. Nil means no limits.
	Within(p *policy.Policy) HostAPI
	// FormatVolumeWithOptions is FormatVolume. It does not change a volume that has a file
	// system, even if that differs from the options.
	FormatVolumeWithOptions(volumeID string, options FormatOptions) error
	// OnlyVolumeOnDisk returns the id of the volume of a disk that has exactly one partition
	// for data, and no other volume.
	OnlyVolumeOnDisk(diskNumber uint32) (volumeID string, err error)
	// FlushToUnmount flushes a volume as UnmountVolume does, and leaves it mounted: for a caller that must do something to
	// its disk before. It fails once if the disk fails. After that loss says why what was written last may be lost.
	FlushToUnmount(volumeID, targetPath string) (loss string, err error)
	// SystemDrive returns the drive of Windows, such as C:, for paths that have none.
	SystemDrive() (string, error)
	// Health asks what Windows knows already. It reads nothing but the dirty bit from the disk.
	Health(volumeID string) (Health, error)
	// Exclusively calls do while no call changes the volume or the folder. The context of do goes
	// on after ctx has ended. Package node needs it to remove the mounted folder of a volume that is gone: a
	// driver may mount the volume there at the same time, and would get the answer that it is mounted.
	Exclusively(ctx context.Context, volumeID, path string, do func(ctx context.Context) error) error
}

// Option changes how a host behaves.
type Option func(*host)

// FormatOverExisting makes FormatVolume format whatever is on the volume, as releases
// before this one did: a driver that a temporary failure misleads into formatting loses the
// data. FormatVolume still refuses volumes of the system disk.
func FormatOverExisting() Option { return func(h *host) { h.formatOver = true } }

// OnLoss sets what is called, with a sentence for operators, when UnmountVolume has unmounted a volume
// whose disk did not take what was cached. The log has the same sentence.
func OnLoss(report func(text string)) Option { return func(h *host) { h.onLoss = report } }

// New returns the host of the machine this program runs on. It is cheap, and all hosts it
// returns share their locks: drivers make a new one for every call.
func New(options ...Option) HostAPI { return newHost(local.Machine(), &thisMachine, options) }

// NewOn returns the host of a given machine. Code outside this module can pass only
// emulated machines: NewOn(node) with a *winsim.Node. Two hosts that it returns for the
// same machine do not share locks.
func NewOn(m win.Machine, options ...Option) HostAPI {
	return newHost(m, &machineState{lost: lostvolume.NewFinder()}, options)
}

// thisMachine is shared by all hosts of the machine this program runs on.
var thisMachine = machineState{lost: lostvolume.ThisMachine}

func newHost(m win.Machine, state *machineState, options []Option) HostAPI {
	h := host{m: m, machineState: state}
	for _, option := range options {
		option(&h)
	}
	return boundHost{host: h, ctx: context.Background()} //nolint:forbidigo // the published HostAPI has no context; WithContext replaces this one
}
