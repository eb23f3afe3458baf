// Package volume is the library's view of the volumes of a Windows node: find
// the volumes of a disk, format them, mount them at a folder and unmount them,
// grow them, flush and measure them.
//
// It deals in volumes with a file system. Disks and their partition tables
// belong to package disk, links to mounted folders to package filesystem.
//
// Volumes are named by id, \\?\Volume{GUID}\, which stays the same as long as the
// volume exists. Results end in the backslash; requests may leave it out.
//
// Start with New and the host of this machine:
//
//	volumes, err := volume.New(volumeapi.New())
//
// The package compiles on every system. Elsewhere than on Windows that host
// fails each call with an error for which errors.Is(err, errors.ErrUnsupported)
// holds; a host of your own works everywhere.
//
// A Volume is safe for concurrent use if its host is; the host of this machine
// is. Every method may be repeated: a driver that lost an answer asks again.
package volume

import (
	"context"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/hostctx"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// Interface is what a driver can ask about volumes. Failures answer to the errors
// of the standard library: fs.ErrNotExist for a volume that is not there,
// fs.ErrInvalid for a wrong request, and so on.
type Interface interface {
	// FormatVolume puts an empty NTFS file system on a volume.
	FormatVolume(context.Context, *FormatVolumeRequest) (*FormatVolumeResponse, error)

	// GetClosestVolumeIDFromTargetPath returns the volume that holds a path:
	// links are followed, then the path is walked upwards to the first mounted
	// folder or the drive.
	GetClosestVolumeIDFromTargetPath(context.Context, *GetClosestVolumeIDFromTargetPathRequest) (*GetClosestVolumeIDFromTargetPathResponse, error)

	// GetDiskNumberFromVolumeID returns the disk that a volume is on.
	GetDiskNumberFromVolumeID(context.Context, *GetDiskNumberFromVolumeIDRequest) (*GetDiskNumberFromVolumeIDResponse, error)

	// GetVolumeIDFromTargetPath returns the volume mounted at a path, or at
	// what the path links to.
	GetVolumeIDFromTargetPath(context.Context, *GetVolumeIDFromTargetPathRequest) (*GetVolumeIDFromTargetPathResponse, error)

	// GetVolumeStats tells how large and how full a volume is.
	GetVolumeStats(context.Context, *GetVolumeStatsRequest) (*GetVolumeStatsResponse, error)

	// IsVolumeFormatted tells whether a volume has a file system.
	IsVolumeFormatted(context.Context, *IsVolumeFormattedRequest) (*IsVolumeFormattedResponse, error)

	// ListVolumesOnDisk returns the volumes of a disk or of one partition.
	ListVolumesOnDisk(context.Context, *ListVolumesOnDiskRequest) (*ListVolumesOnDiskResponse, error)

	// MountVolume makes a volume appear at a folder.
	MountVolume(context.Context, *MountVolumeRequest) (*MountVolumeResponse, error)

	// ResizeVolume grows a volume and its file system. It never shrinks them.
	ResizeVolume(context.Context, *ResizeVolumeRequest) (*ResizeVolumeResponse, error)

	// UnmountVolume writes what is cached and takes the volume away from a
	// folder. The data stays on the volume.
	UnmountVolume(context.Context, *UnmountVolumeRequest) (*UnmountVolumeResponse, error)

	// WriteVolumeCache writes what is cached for a volume to its disk.
	WriteVolumeCache(context.Context, *WriteVolumeCacheRequest) (*WriteVolumeCacheResponse, error)
}

var _ Interface = (*Volume)(nil)

// Volume implements Interface over a host.
type Volume struct {
	host volumeapi.HostAPI
}

// New returns a Volume that works on the given host, which must not be nil.
func New(hostAPI volumeapi.HostAPI) (*Volume, error) {
	if hostAPI == nil {
		return nil, winerr.New(winerr.Invalid, "open volume library", "", "the host API is nil")
	}
	return &Volume{host: hostAPI}, nil
}

// FormatVolume implements Interface.
func (v *Volume) FormatVolume(ctx context.Context, request *FormatVolumeRequest) (*FormatVolumeResponse, error) {
	const op = "format volume"
	h, err := hostctx.Begin(ctx, op, v.host, request)
	if err != nil {
		return nil, err
	}
	if err := checkID(op, request.VolumeID); err != nil {
		return nil, err
	}
	if err := h.FormatVolume(request.VolumeID); err != nil {
		return nil, winerr.Wrap(op, request.VolumeID, err)
	}
	return &FormatVolumeResponse{}, nil
}

// GetClosestVolumeIDFromTargetPath implements Interface.
func (v *Volume) GetClosestVolumeIDFromTargetPath(ctx context.Context, request *GetClosestVolumeIDFromTargetPathRequest) (*GetClosestVolumeIDFromTargetPathResponse, error) {
	const op = "get closest volume of"
	h, err := hostctx.Begin(ctx, op, v.host, request)
	if err != nil {
		return nil, err
	}
	if err := checkPath(op, request.TargetPath); err != nil {
		return nil, err
	}
	id, err := h.GetClosestVolumeIDFromTargetPath(request.TargetPath)
	if err != nil {
		return nil, winerr.Wrap(op, request.TargetPath, err)
	}
	return &GetClosestVolumeIDFromTargetPathResponse{VolumeID: id}, nil
}

// GetDiskNumberFromVolumeID implements Interface.
func (v *Volume) GetDiskNumberFromVolumeID(ctx context.Context, request *GetDiskNumberFromVolumeIDRequest) (*GetDiskNumberFromVolumeIDResponse, error) {
	const op = "get disk of volume"
	h, err := hostctx.Begin(ctx, op, v.host, request)
	if err != nil {
		return nil, err
	}
	if err := checkID(op, request.VolumeID); err != nil {
		return nil, err
	}
	number, err := h.GetDiskNumberFromVolumeID(request.VolumeID)
	if err != nil {
		return nil, winerr.Wrap(op, request.VolumeID, err)
	}
	return &GetDiskNumberFromVolumeIDResponse{DiskNumber: number}, nil
}

// GetVolumeIDFromTargetPath implements Interface.
func (v *Volume) GetVolumeIDFromTargetPath(ctx context.Context, request *GetVolumeIDFromTargetPathRequest) (*GetVolumeIDFromTargetPathResponse, error) {
	const op = "get volume mounted at"
	h, err := hostctx.Begin(ctx, op, v.host, request)
	if err != nil {
		return nil, err
	}
	if err := checkPath(op, request.TargetPath); err != nil {
		return nil, err
	}
	id, err := h.GetVolumeIDFromTargetPath(request.TargetPath)
	if err != nil {
		return nil, winerr.Wrap(op, request.TargetPath, err)
	}
	return &GetVolumeIDFromTargetPathResponse{VolumeID: id}, nil
}

// GetVolumeStats implements Interface.
func (v *Volume) GetVolumeStats(ctx context.Context, request *GetVolumeStatsRequest) (*GetVolumeStatsResponse, error) {
	const op = "get stats of volume"
	h, err := hostctx.Begin(ctx, op, v.host, request)
	if err != nil {
		return nil, err
	}
	if err := checkID(op, request.VolumeID); err != nil {
		return nil, err
	}
	total, used, err := h.GetVolumeStats(request.VolumeID)
	if err != nil {
		return nil, winerr.Wrap(op, request.VolumeID, err)
	}
	return &GetVolumeStatsResponse{TotalBytes: total, UsedBytes: used}, nil
}

// IsVolumeFormatted implements Interface.
func (v *Volume) IsVolumeFormatted(ctx context.Context, request *IsVolumeFormattedRequest) (*IsVolumeFormattedResponse, error) {
	const op = "look for a file system on volume"
	h, err := hostctx.Begin(ctx, op, v.host, request)
	if err != nil {
		return nil, err
	}
	if err := checkID(op, request.VolumeID); err != nil {
		return nil, err
	}
	formatted, err := h.IsVolumeFormatted(request.VolumeID)
	if err != nil {
		return nil, winerr.Wrap(op, request.VolumeID, err)
	}
	return &IsVolumeFormattedResponse{Formatted: formatted}, nil
}

// ListVolumesOnDisk implements Interface.
func (v *Volume) ListVolumesOnDisk(ctx context.Context, request *ListVolumesOnDiskRequest) (*ListVolumesOnDiskResponse, error) {
	h, err := hostctx.Begin(ctx, "list volumes of a disk", v.host, request)
	if err != nil {
		return nil, err
	}
	ids, err := h.ListVolumesOnDisk(request.DiskNumber, request.PartitionNumber)
	if err != nil {
		return nil, winerr.Wrap("list volumes of", fmt.Sprintf("disk %d", request.DiskNumber), err)
	}
	return &ListVolumesOnDiskResponse{VolumeIDs: ids}, nil
}

// MountVolume implements Interface.
func (v *Volume) MountVolume(ctx context.Context, request *MountVolumeRequest) (*MountVolumeResponse, error) {
	const op = "mount volume"
	h, err := hostctx.Begin(ctx, op, v.host, request)
	if err != nil {
		return nil, err
	}
	if err := checkID(op, request.VolumeID); err != nil {
		return nil, err
	}
	if err := checkPath(op, request.TargetPath); err != nil {
		return nil, err
	}
	if err := h.MountVolume(request.VolumeID, request.TargetPath); err != nil {
		return nil, winerr.Wrap(op, request.VolumeID+" at "+request.TargetPath, err)
	}
	return &MountVolumeResponse{}, nil
}

// ResizeVolume implements Interface.
func (v *Volume) ResizeVolume(ctx context.Context, request *ResizeVolumeRequest) (*ResizeVolumeResponse, error) {
	const op = "resize volume"
	h, err := hostctx.Begin(ctx, op, v.host, request)
	if err != nil {
		return nil, err
	}
	if err := checkID(op, request.VolumeID); err != nil {
		return nil, err
	}
	if request.SizeBytes < 0 {
		return nil, winerr.New(winerr.Invalid, op, request.VolumeID,
			"the size of %d bytes is negative; 0 asks for all there is", request.SizeBytes)
	}
	if err := h.ResizeVolume(request.VolumeID, request.SizeBytes); err != nil {
		return nil, winerr.Wrap(op, request.VolumeID, err)
	}
	return &ResizeVolumeResponse{}, nil
}

// UnmountVolume implements Interface.
func (v *Volume) UnmountVolume(ctx context.Context, request *UnmountVolumeRequest) (*UnmountVolumeResponse, error) {
	const op = "unmount volume"
	h, err := hostctx.Begin(ctx, op, v.host, request)
	if err != nil {
		return nil, err
	}
	if err := checkID(op, request.VolumeID); err != nil {
		return nil, err
	}
	if err := checkPath(op, request.TargetPath); err != nil {
		return nil, err
	}
	if err := h.UnmountVolume(request.VolumeID, request.TargetPath); err != nil {
		return nil, winerr.Wrap(op, request.VolumeID+" from "+request.TargetPath, err)
	}
	return &UnmountVolumeResponse{}, nil
}

// WriteVolumeCache implements Interface.
func (v *Volume) WriteVolumeCache(ctx context.Context, request *WriteVolumeCacheRequest) (*WriteVolumeCacheResponse, error) {
	const op = "write cache of volume"
	h, err := hostctx.Begin(ctx, op, v.host, request)
	if err != nil {
		return nil, err
	}
	if err := checkID(op, request.VolumeID); err != nil {
		return nil, err
	}
	if err := h.WriteVolumeCache(request.VolumeID); err != nil {
		return nil, winerr.Wrap(op, request.VolumeID, err)
	}
	return &WriteVolumeCacheResponse{}, nil
}

func checkID(op, id string) error {
	if id == "" {
		return winerr.New(winerr.Invalid, op, "", `the volume id is empty; it looks like \\?\Volume{GUID}\`)
	}
	return nil
}

func checkPath(op, path string) error {
	if path == "" {
		return winerr.New(winerr.Invalid, op, "", "the target path is empty")
	}
	return nil
}
