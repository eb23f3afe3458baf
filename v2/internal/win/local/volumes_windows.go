package local

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

func (machine) VolumeIDs(_ context.Context) ([]win.VolumeID, error) {
	return volumeIDs()
}

func volumeIDs() ([]win.VolumeID, error) {
	names, err := winapi.VolumeNames()
	if err != nil {
		return nil, err
	}
	ids := make([]win.VolumeID, 0, len(names))
	for _, name := range names {
		if id, ok := win.ParseVolumeID(name); ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// VolumeExtents is answered by the volume manager. No request goes to the file
// system, so a file system that hangs does not matter.
func (machine) VolumeExtents(_ context.Context, id win.VolumeID) ([]win.Extent, error) {
	query := winapi.Query{
		Code: winapi.VolumeGetVolumeDiskExtents,
		Size: winlayout.VolumeExtentsSize,
		Need: winlayout.ExtentsSize,
	}
	return ask(id.Device(), winapi.NoAccess, query, winlayout.DecodeVolumeExtents)
}

// FileSystem makes Windows mount the file system, if it is not, and read from the disk.
func (machine) FileSystem(_ context.Context, id win.VolumeID) (win.FileSystemInfo, error) {
	name, label, flags, err := winapi.FileSystem(string(id))
	return win.FileSystemInfo{Name: name, Label: label, ReadOnly: flags&windows.FILE_READ_ONLY_VOLUME != 0}, err
}

func (machine) VolumeSpace(_ context.Context, id win.VolumeID) (win.Space, error) {
	total, _, free, err := winapi.DiskSpace(string(id))
	if err != nil {
		return win.Space{}, err
	}
	return space(total, free)
}

func space(total, free uint64) (win.Space, error) {
	if total > math.MaxInt64 || free > math.MaxInt64 {
		return win.Space{}, fmt.Errorf("%w: %d bytes, %d of them free", errInvalidData, total, free)
	}
	return win.Space{Total: int64(total), Free: int64(free)}, nil
}

// NTFSVolumeData has to reach the file system, which a volume opened without access does
// not have. The same is true of ExtendVolume.
func (machine) NTFSVolumeData(_ context.Context, id win.VolumeID) (win.NTFSVolumeData, error) {
	query := winapi.Query{Code: winapi.GetNTFSVolumeData, Size: winlayout.NTFSVolumeDataSize}
	return ask(id.Device(), winapi.Read, query, winlayout.DecodeNTFSVolumeData)
}

// ReFSVolumeData is https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-refs_volume_data_buffer
func (machine) ReFSVolumeData(_ context.Context, id win.VolumeID) (win.NTFSVolumeData, error) {
	query := winapi.Query{Code: winapi.GetReFSVolumeData, Size: winlayout.ReFSVolumeDataSize}
	return ask(id.Device(), winapi.Read, query, winlayout.DecodeReFSVolumeData)
}

func (machine) ExtendVolume(_ context.Context, id win.VolumeID, sectors int64) error {
	// LocalSystem does not need the privilege; others fail without it.
	_ = winapi.ManageVolumePrivilege.Enable()
	return tell(id.Device(), winapi.ReadWrite, winapi.ExtendVolume, winlayout.EncodeExtendVolume(sectors))
}

func (machine) OnlineVolume(_ context.Context, id win.VolumeID) error {
	return tell(id.Device(), winapi.ReadWrite, winapi.VolumeOnline, nil)
}

func (machine) FlushVolume(_ context.Context, id win.VolumeID) error {
	device, err := winapi.Open(string(id.Device()), winapi.ReadWrite)
	if err != nil {
		return err
	}
	defer device.Close()
	return device.Flush()
}

func (machine) VolumeOfDrive(_ context.Context, root string) (win.VolumeID, error) {
	return volumeOfDrive(root)
}

func volumeOfDrive(root string) (win.VolumeID, error) {
	name, err := winapi.VolumeAt(root)
	if err != nil {
		return "", err
	}
	return volumeOf(name)
}

// VolumePaths asks the mount manager.
func (machine) VolumePaths(_ context.Context, id win.VolumeID) ([]string, error) {
	return winapi.VolumePaths(string(id))
}

// volumeOf returns the volume with which a path begins.
func volumeOf(path string) (win.VolumeID, error) {
	id, ok := win.VolumeOf(path)
	if !ok {
		return "", fmt.Errorf("%w: %q is on no volume", errInvalidData, path)
	}
	return id, nil
}

// SystemVolumes opens the Windows directory.
func (machine) SystemVolumes(_ context.Context) ([]win.VolumeID, error) {
	directory, err := winapi.WindowsDirectory()
	if err != nil {
		return nil, err
	}
	own, err := askPath(win.Following(directory), func(handle windows.Handle) (win.VolumeID, error) {
		location, err := winapi.FinalPath(handle)
		if err != nil {
			return "", err
		}
		return volumeOf(location)
	})
	if err != nil { // the drive is there whatever lies over its directories
		own, err = volumeOfDrive(filepath.VolumeName(directory))
	}
	if err != nil {
		return nil, err
	}
	volumes := []win.VolumeID{own}
	boot, err := localBoot.volume()
	if err != nil {
		return nil, err
	}
	if boot != "" && boot != own {
		volumes = append(volumes, boot)
	}
	return volumes, nil
}

var localBoot = bootSource{
	partition: winapi.SystemPartition,
	volumes:   volumeIDs,
	device: func(id win.VolumeID) (string, error) {
		return winapi.DeviceOf(strings.TrimPrefix(string(id.Device()), `\\?\`))
	},
}
