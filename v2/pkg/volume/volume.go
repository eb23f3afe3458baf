// Package volume is the library's view of the volumes of a Windows node: find
// the volumes of a disk, format them, mount them at a folder and unmount them,
// grow them, flush and measure them.
//
// It deals in volumes with a file system. Disks and their partition tables
// belong to package disk, links to mounted folders to package filesystem.
//
// Volumes are named by id, \\?\Volume{GUID}\, which stays the same as long as the
// volume exists. Results end in the backslash; requests may leave it out, and case does not
// matter. Paths must be absolute, on a local drive, in
// backslash form, as package filesystem explains; but one that begins with a single slash of
// either kind is on the drive of Windows.
//
// Start with New and the host of this machine:
//
//	volumes, err := volume.New(volumeapi.New())
//
// On systems other than Windows that host fails with errors.ErrUnsupported; a host of your own works everywhere.
//
// A Volume is safe for concurrent use if its host is; the host of this machine
// is. Every method may be repeated: a driver that lost an answer asks again. Calls that
// change one volume wait for each other, and callers that ask for the same change at the
// same time share one run of it. A call returns when its context ends; work that has begun
// in Windows goes on, and a repeated call joins it.
package volume

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/hostctx"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// Interface is what a driver can do with volumes. Sizes are in bytes. Errors match those of
// the standard library: fs.ErrNotExist for a missing volume, fs.ErrInvalid for a wrong
// request, errors.ErrUnsupported for a volume that does not support the call, and so on.
type Interface interface {
	// FormatVolume puts an empty file system, NTFS or ReFS, on an empty volume. It keeps a volume
	// that has a file system and succeeds: a driver that a temporary failure misled must
	// not destroy data. It refuses content that Windows does not recognise, locked and
	// unreadable volumes, and volumes on the disk of the system (fs.ErrPermission). It completes
	// a format that was interrupted before the access to the root was set.
	FormatVolume(context.Context, *FormatVolumeRequest) (*FormatVolumeResponse, error)

	// GetClosestVolumeIDFromTargetPath returns the volume that holds a path after
	// following every link. For a path that does not exist, it returns the volume that
	// would hold it. A path that leads to a server is fs.ErrNotExist.
	GetClosestVolumeIDFromTargetPath(context.Context, *GetClosestVolumeIDFromTargetPathRequest) (*GetClosestVolumeIDFromTargetPathResponse, error)

	// GetDiskNumberFromVolumeID returns the disk that a volume is on. A volume that
	// spans several disks is an error.
	GetDiskNumberFromVolumeID(context.Context, *GetDiskNumberFromVolumeIDRequest) (*GetDiskNumberFromVolumeIDResponse, error)

	// GetVolumeIDFromTargetPath returns the volume mounted at a path, or at what the
	// path links to, even if that volume does not answer. It fails with fs.ErrNotExist if the
	// path leads to an ordinary folder, a share or nothing, or the volume is gone with its disk.
	GetVolumeIDFromTargetPath(context.Context, *GetVolumeIDFromTargetPathRequest) (*GetVolumeIDFromTargetPathResponse, error)

	// GetVolumeStats reports how large and how full the file system of a volume is.
	GetVolumeStats(context.Context, *GetVolumeStatsRequest) (*GetVolumeStatsResponse, error)

	// IsVolumeFormatted reports whether a volume has a file system. False means that it
	// is empty and can be formatted; if that is not certain, the call fails.
	IsVolumeFormatted(context.Context, *IsVolumeFormattedRequest) (*IsVolumeFormattedResponse, error)

	// ListVolumesOnDisk returns the volumes of a disk or of one partition, in the
	// order in which they lie on the disk. A disk that is not there is
	// fs.ErrNotExist. The list is empty if the disk is offline, or if Windows makes no
	// volume of its partitions. If the only volume is late, the call waits 5 seconds
	// and then fails; call again.
	ListVolumesOnDisk(context.Context, *ListVolumesOnDiskRequest) (*ListVolumesOnDiskResponse, error)

	// MountVolume makes a formatted volume appear at a folder, which is created with
	// its parents if it is missing. If the volume is mounted there the call succeeds; another
	// volume or a link there is fs.ErrExist, unless the volume is gone with its disk. A folder that is not empty is refused.
	MountVolume(context.Context, *MountVolumeRequest) (*MountVolumeResponse, error)

	// ResizeVolume grows a volume and its file system, NTFS or ReFS, while they are in use. It
	// never shrinks them: a smaller size is a success that changes nothing, and so is
	// growth by less than 1 MiB. A file system that an earlier call left smaller than
	// its partition is grown in any case.
	ResizeVolume(context.Context, *ResizeVolumeRequest) (*ResizeVolumeResponse, error)

	// UnmountVolume writes what is cached and takes the volume away from a folder. The
	// data stays on the volume, and the empty folder stays, too. If nothing is mounted
	// there, or the path does not exist, the call succeeds; another volume or a link there
	// is an error and stays. A volume that is gone can be unmounted.
	UnmountVolume(context.Context, *UnmountVolumeRequest) (*UnmountVolumeResponse, error)

	// WriteVolumeCache writes what is cached for a volume to its disk. It succeeds for a
	// read-only volume, which has nothing to write.
	WriteVolumeCache(context.Context, *WriteVolumeCacheRequest) (*WriteVolumeCacheResponse, error)
}

// Extended is Interface with what was added since it was published: implementations that drivers have of that still compile.
type Extended interface {
	Interface

	// Health asks what Windows knows of a volume: the dirty bit, what NTFS has noted, and the health of its disks. It
	// changes nothing and is quick. What could not be found out is in Unknown, so that silence never means health. A volume
	// that is not there is fs.ErrNotExist.
	Health(ctx context.Context, volumeID string) (Health, error)
}

var _ Extended = (*Volume)(nil)

// Volume implements Extended over a host.
type Volume struct {
	host              volumeapi.HostAPI
	acceptDiskNumbers bool
	formatDefaults    volumeapi.FormatOptions
}

// New returns a Volume that works on the given host, which must not be nil.
func New(hostAPI volumeapi.HostAPI, options ...Option) (*Volume, error) {
	const op = "open volume library"
	if hostAPI == nil {
		return nil, winerr.New(winerr.Invalid, op, "", "the host API is nil")
	}
	v := &Volume{host: hostAPI}
	for _, option := range options {
		if err := option(v); err != nil {
			return nil, winerr.As(winerr.Invalid, op, "", err, "")
		}
	}
	return v, nil
}

// Option changes how the group behaves.
type Option func(*Volume) error

// WorkingDirs limits the calls that take a path to the given directories, as the option of
// package filesystem does. MountVolume mounts neither over such a directory nor below a
// mounted volume.
//
// The host must be a volumeapi.Extended, as those of package hostapi and winsim are.
func WorkingDirs(dirs ...string) Option {
	return func(v *Volume) (err error) {
		v.host, err = policy.Limit(v.host, dirs)
		return err
	}
}

// UnsafeWorkingDirs is WorkingDirs that also accepts roots of drives and folders of Windows, programs and users.
func UnsafeWorkingDirs(dirs ...string) Option {
	return func(v *Volume) (err error) {
		v.host, err = policy.LimitUnsafe(v.host, dirs)
		return err
	}
}

// AcceptDiskNumbers lets ResizeVolume take the number of a disk, in decimal, for the id of the
// only volume on it. azuredisk 1.33 and later send that when they call the daemon, which is what
// this option is for: a driver that calls the library can pass the id.
func AcceptDiskNumbers() Option {
	return func(v *Volume) error {
		v.acceptDiskNumbers = true
		return nil
	}
}

// FormatDefaults are the options of FormatVolume for fields that a request leaves empty.
//
// The host must be a volumeapi.Extended, as those of package hostapi and winsim are.
func FormatDefaults(options volumeapi.FormatOptions) Option {
	return func(v *Volume) error {
		v.formatDefaults = options
		return options.Check()
	}
}

// FormatVolume implements Interface.
func (v *Volume) FormatVolume(ctx context.Context, request *FormatVolumeRequest) (*FormatVolumeResponse, error) {
	const op = "format volume"
	return hostctx.Fill(ctx, op, v.host, request, func(h volumeapi.HostAPI, _ *FormatVolumeResponse) error {
		if err := checkID(op, request.VolumeID); err != nil {
			return err
		}
		options := volumeapi.FormatOptions{
			FileSystem:         cmp.Or(request.FileSystem, v.formatDefaults.FileSystem),
			AllocationUnitSize: request.AllocationUnitSize,
			Label:              cmp.Or(request.Label, v.formatDefaults.Label),
			RootAccess:         cmp.Or(request.RootAccess, v.formatDefaults.RootAccess),
		}
		if strings.EqualFold(options.FileSystem, v.formatDefaults.FileSystem) { // the clusters of one may not fit another
			options.AllocationUnitSize = cmp.Or(request.AllocationUnitSize, v.formatDefaults.AllocationUnitSize)
		}
		return winerr.Wrap(op, request.VolumeID, formatWith(h, request.VolumeID, options))
	})
}

// formatWith formats with options if there are any: hosts that drivers write need not have them.
func formatWith(host volumeapi.HostAPI, id string, options volumeapi.FormatOptions) error {
	if options == (volumeapi.FormatOptions{}) {
		return host.FormatVolume(id)
	}
	x, err := hostctx.Extended[volumeapi.Extended](host, "format volume", id)
	if err != nil {
		return err
	}
	return x.FormatVolumeWithOptions(id, options)
}

// GetClosestVolumeIDFromTargetPath implements Interface.
func (v *Volume) GetClosestVolumeIDFromTargetPath(ctx context.Context, request *GetClosestVolumeIDFromTargetPathRequest) (*GetClosestVolumeIDFromTargetPathResponse, error) {
	const op = "get closest volume of"
	return hostctx.Fill(ctx, op, v.host, request, func(h volumeapi.HostAPI, out *GetClosestVolumeIDFromTargetPathResponse) (err error) {
		path, err := cleanPath(op, h, request.TargetPath)
		if err != nil {
			return err
		}
		out.VolumeID, err = h.GetClosestVolumeIDFromTargetPath(path)
		return winerr.Wrap(op, path, err)
	})
}

// GetDiskNumberFromVolumeID implements Interface.
func (v *Volume) GetDiskNumberFromVolumeID(ctx context.Context, request *GetDiskNumberFromVolumeIDRequest) (*GetDiskNumberFromVolumeIDResponse, error) {
	const op = "get disk of volume"
	return hostctx.Fill(ctx, op, v.host, request, func(h volumeapi.HostAPI, out *GetDiskNumberFromVolumeIDResponse) (err error) {
		if err := checkID(op, request.VolumeID); err != nil {
			return err
		}
		out.DiskNumber, err = h.GetDiskNumberFromVolumeID(request.VolumeID)
		return winerr.Wrap(op, request.VolumeID, err)
	})
}

// GetVolumeIDFromTargetPath implements Interface.
func (v *Volume) GetVolumeIDFromTargetPath(ctx context.Context, request *GetVolumeIDFromTargetPathRequest) (*GetVolumeIDFromTargetPathResponse, error) {
	const op = "get volume mounted at"
	return hostctx.Fill(ctx, op, v.host, request, func(h volumeapi.HostAPI, out *GetVolumeIDFromTargetPathResponse) (err error) {
		path, err := cleanPath(op, h, request.TargetPath)
		if err != nil {
			return err
		}
		out.VolumeID, err = h.GetVolumeIDFromTargetPath(path)
		return winerr.Wrap(op, path, err)
	})
}

// GetVolumeStats implements Interface.
func (v *Volume) GetVolumeStats(ctx context.Context, request *GetVolumeStatsRequest) (*GetVolumeStatsResponse, error) {
	const op = "get stats of volume"
	return hostctx.Fill(ctx, op, v.host, request, func(h volumeapi.HostAPI, out *GetVolumeStatsResponse) (err error) {
		if err := checkID(op, request.VolumeID); err != nil {
			return err
		}
		out.TotalBytes, out.UsedBytes, err = h.GetVolumeStats(request.VolumeID)
		return winerr.Wrap(op, request.VolumeID, err)
	})
}

// IsVolumeFormatted implements Interface.
func (v *Volume) IsVolumeFormatted(ctx context.Context, request *IsVolumeFormattedRequest) (*IsVolumeFormattedResponse, error) {
	const op = "look for a file system on volume"
	return hostctx.Fill(ctx, op, v.host, request, func(h volumeapi.HostAPI, out *IsVolumeFormattedResponse) (err error) {
		if err := checkID(op, request.VolumeID); err != nil {
			return err
		}
		out.Formatted, err = h.IsVolumeFormatted(request.VolumeID)
		return winerr.Wrap(op, request.VolumeID, err)
	})
}

// ListVolumesOnDisk implements Interface.
func (v *Volume) ListVolumesOnDisk(ctx context.Context, request *ListVolumesOnDiskRequest) (*ListVolumesOnDiskResponse, error) {
	return hostctx.Fill(ctx, "list volumes of a disk", v.host, request, func(h volumeapi.HostAPI, out *ListVolumesOnDiskResponse) (err error) {
		out.VolumeIDs, err = h.ListVolumesOnDisk(request.DiskNumber, request.PartitionNumber)
		return winerr.Wrap("list volumes of", fmt.Sprintf("disk %d", request.DiskNumber), err)
	})
}

// MountVolume implements Interface.
func (v *Volume) MountVolume(ctx context.Context, request *MountVolumeRequest) (*MountVolumeResponse, error) {
	const op = "mount volume"
	return hostctx.Fill(ctx, op, v.host, request, func(h volumeapi.HostAPI, _ *MountVolumeResponse) error {
		if err := checkID(op, request.VolumeID); err != nil {
			return err
		}
		path, err := cleanPath(op, h, request.TargetPath)
		if err != nil {
			return err
		}
		return winerr.Wrap(op, request.VolumeID+" at "+path, h.MountVolume(request.VolumeID, path))
	})
}

// ResizeVolume implements Interface.
func (v *Volume) ResizeVolume(ctx context.Context, request *ResizeVolumeRequest) (*ResizeVolumeResponse, error) {
	const op = "resize volume"
	return hostctx.Fill(ctx, op, v.host, request, func(h volumeapi.HostAPI, _ *ResizeVolumeResponse) (err error) {
		if err := checkID(op, request.VolumeID); err != nil {
			return err
		}
		if request.SizeBytes < 0 {
			return winerr.New(winerr.Invalid, op, request.VolumeID,
				"the size of %d bytes is negative; use 0 for all available space", request.SizeBytes)
		}
		id := request.VolumeID
		if number, ok := parseDiskNumber(id); ok && v.acceptDiskNumbers {
			if id, err = onlyVolume(op, h, number); err != nil {
				return err
			}
		}
		return winerr.Wrap(op, request.VolumeID, h.ResizeVolume(id, request.SizeBytes))
	})
}

// UnmountVolume implements Interface.
func (v *Volume) UnmountVolume(ctx context.Context, request *UnmountVolumeRequest) (*UnmountVolumeResponse, error) {
	const op = "unmount volume"
	return hostctx.Fill(ctx, op, v.host, request, func(h volumeapi.HostAPI, _ *UnmountVolumeResponse) error {
		if err := checkID(op, request.VolumeID); err != nil {
			return err
		}
		path, err := cleanPath(op, h, request.TargetPath)
		if err != nil {
			return err
		}
		return winerr.Wrap(op, request.VolumeID+" from "+path, h.UnmountVolume(request.VolumeID, path))
	})
}

// WriteVolumeCache implements Interface.
func (v *Volume) WriteVolumeCache(ctx context.Context, request *WriteVolumeCacheRequest) (*WriteVolumeCacheResponse, error) {
	const op = "write cache of volume"
	return hostctx.Fill(ctx, op, v.host, request, func(h volumeapi.HostAPI, out *WriteVolumeCacheResponse) error {
		if err := checkID(op, request.VolumeID); err != nil {
			return err
		}
		if request.TargetPath == "" {
			return winerr.Wrap(op, request.VolumeID, h.WriteVolumeCache(request.VolumeID))
		}
		path, err := cleanPath(op, h, request.TargetPath)
		if err != nil {
			return err
		}
		x, err := hostctx.Extended[volumeapi.Extended](h, op, request.VolumeID)
		if err != nil {
			return err
		}
		out.Loss, err = x.FlushToUnmount(request.VolumeID, path)
		return winerr.Wrap(op, request.VolumeID, err)
	})
}

// checkID keeps HostAPI's promise that ids are never empty. It does not parse them: what is
// a valid id is up to the host, and drivers' fakes use ids of their own. The hosts of package
// hostapi parse every id themselves.
func checkID(op, id string) error {
	if id == "" {
		return winerr.New(winerr.Invalid, op, "", `the volume id is empty; it looks like \\?\Volume{GUID}\`)
	}
	return nil
}

// parseDiskNumber reads a disk number as strconv writes it. Nothing else is one: a wrong
// guess would change another disk's volume.
func parseDiskNumber(text string) (uint32, bool) {
	number, err := strconv.ParseUint(text, 10, 32)
	return uint32(number), err == nil && strconv.FormatUint(number, 10) == text
}

// onlyVolume returns the volume of a disk that has no other.
func onlyVolume(op string, h volumeapi.HostAPI, disk uint32) (string, error) {
	object := fmt.Sprintf("of disk %d", disk)
	if x, ok := h.(volumeapi.Extended); ok { // which does not trust a list with one volume
		id, err := x.OnlyVolumeOnDisk(disk)
		return id, winerr.Wrap(op, object, err)
	}
	ids, err := h.ListVolumesOnDisk(disk, 0)
	switch {
	case err != nil:
		return "", winerr.Wrap(op, object, err)
	case len(ids) == 0:
		return "", winerr.New(winerr.NotFound, op, object, "the disk has no volume")
	case len(ids) > 1:
		return "", winerr.New(winerr.Invalid, op, object,
			"the disk has %d volumes, so its number names none of them; ListVolumesOnDisk returns their ids", len(ids))
	}
	return ids[0], nil
}

// cleanPath takes a path without a drive for one of the drive of Windows, as the original's volume group does and no other: a
// kubelet whose root is /var/lib/kubelet has such staging paths. Hosts that drivers write need not know that drive.
func cleanPath(op string, h volumeapi.HostAPI, path string) (string, error) {
	if x, ok := h.(volumeapi.Extended); ok && winpath.IsRooted(path) {
		drive, err := x.SystemDrive()
		if err != nil {
			return "", winerr.Wrap(op, path, err)
		}
		path = drive + strings.ReplaceAll(path, "/", winpath.Separator)
	}
	clean, err := winpath.Clean(path)
	return clean, winerr.As(winerr.Invalid, op, "", err, "")
}
