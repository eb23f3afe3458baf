package storage

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// Hosts are the machine that a [Library] works on.
type Hosts struct {
	Disk       diskapi.HostAPI
	Volume     volumeapi.HostAPI
	Filesystem fsapi.HostAPI
	SMB        smbapi.HostAPI
}

// ThisMachine is the machine on which the process runs. On other systems every call
// fails with an error that matches errors.ErrUnsupported; tests pass the hosts of an emulated
// node.
func ThisMachine() Hosts {
	return Hosts{Disk: diskapi.New(), Volume: volumeapi.New(), Filesystem: fsapi.New(), SMB: smbapi.New()}
}

// Library is a [Node] without a daemon: this process does the work, in a HostProcess container.
type Library struct {
	disks   disk.Interface
	volumes volume.Interface
	files   filesystem.Interface
	shares  smb.Interface
}

// OverLibrary works on a machine. Like the daemon, it touches only paths in workingDirs; a
// HostProcess container has no other limit.
func OverLibrary(hosts Hosts, workingDirs ...string) (l *Library, err error) {
	l = &Library{}
	if l.disks, err = disk.New(hosts.Disk); err != nil {
		return nil, err
	}
	if l.volumes, err = volume.New(hosts.Volume, volume.WorkingDirs(workingDirs...)); err != nil {
		return nil, err
	}
	if l.files, err = filesystem.New(hosts.Filesystem, filesystem.WorkingDirs(workingDirs...)); err != nil {
		return nil, err
	}
	if l.shares, err = smb.New(hosts.SMB, l.files, smb.WorkingDirs(workingDirs...)); err != nil {
		return nil, err
	}
	return l, nil
}

// Disks implements [Node].
func (l *Library) Disks(ctx context.Context) (map[uint32]string, error) {
	response, err := l.disks.ListDiskIDs(ctx, &disk.ListDiskIDsRequest{})
	if err != nil {
		return nil, err
	}
	serials := map[uint32]string{}
	for number, ids := range response.DiskIDs {
		serials[number] = ids.SerialNumber
	}
	return serials, nil
}

// Rescan implements [Node].
func (l *Library) Rescan(ctx context.Context) error {
	_, err := l.disks.Rescan(ctx, &disk.RescanRequest{})
	return err
}

// DiskSize implements [Node].
func (l *Library) DiskSize(ctx context.Context, number uint32) (int64, error) {
	response, err := l.disks.GetDiskStats(ctx, &disk.GetDiskStatsRequest{DiskNumber: number})
	if err != nil {
		return 0, err
	}
	return response.TotalBytes, nil
}

// Partition implements [Node].
func (l *Library) Partition(ctx context.Context, number uint32) error {
	_, err := l.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: number})
	return err
}

// SetOnline implements [Node].
func (l *Library) SetOnline(ctx context.Context, number uint32, online bool) error {
	_, err := l.disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: number, IsOnline: online})
	return err
}

// Volumes implements [Node].
func (l *Library) Volumes(ctx context.Context, number uint32) ([]string, error) {
	response, err := l.volumes.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: number})
	if err != nil {
		return nil, err
	}
	return response.VolumeIDs, nil
}

// DiskOf implements [Node].
func (l *Library) DiskOf(ctx context.Context, id string) (uint32, error) {
	response, err := l.volumes.GetDiskNumberFromVolumeID(ctx, &volume.GetDiskNumberFromVolumeIDRequest{VolumeID: id})
	if err != nil {
		return 0, err
	}
	return response.DiskNumber, nil
}

// IsFormatted implements [Node].
func (l *Library) IsFormatted(ctx context.Context, id string) (bool, error) {
	response, err := l.volumes.IsVolumeFormatted(ctx, &volume.IsVolumeFormattedRequest{VolumeID: id})
	if err != nil {
		return false, err
	}
	return response.Formatted, nil
}

// Format implements [Node].
func (l *Library) Format(ctx context.Context, id string) error {
	_, err := l.volumes.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: id})
	return err
}

// Mount implements [Node].
func (l *Library) Mount(ctx context.Context, id, folder string) error {
	_, err := l.volumes.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: id, TargetPath: folder})
	return err
}

// Unmount implements [Node].
func (l *Library) Unmount(ctx context.Context, id, folder string) error {
	_, err := l.volumes.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeID: id, TargetPath: folder})
	return err
}

// MountedAt implements [Node].
func (l *Library) MountedAt(ctx context.Context, path string) (string, error) {
	response, err := l.volumes.GetVolumeIDFromTargetPath(ctx, &volume.GetVolumeIDFromTargetPathRequest{TargetPath: path})
	if err != nil {
		return "", err
	}
	return response.VolumeID, nil
}

// Grow implements [Node].
func (l *Library) Grow(ctx context.Context, id string) error {
	_, err := l.volumes.ResizeVolume(ctx, &volume.ResizeVolumeRequest{VolumeID: id}) // no size is all of it
	return err
}

// VolumeSpace implements [Node].
func (l *Library) VolumeSpace(ctx context.Context, id string) (total, used int64, err error) {
	response, err := l.volumes.GetVolumeStats(ctx, &volume.GetVolumeStatsRequest{VolumeID: id})
	if err != nil {
		return 0, 0, err
	}
	return response.TotalBytes, response.UsedBytes, nil
}

// Exists implements [Node].
func (l *Library) Exists(ctx context.Context, path string) (bool, error) {
	response, err := l.files.PathExists(ctx, &filesystem.PathExistsRequest{Path: path})
	if err != nil {
		return false, err
	}
	return response.Exists, nil
}

// IsLink implements [Node].
func (l *Library) IsLink(ctx context.Context, path string) (bool, error) {
	response, err := l.files.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: path})
	if err != nil {
		return false, err
	}
	return response.IsSymlink, nil
}

// MakeDir implements [Node].
func (l *Library) MakeDir(ctx context.Context, path string) error {
	_, err := l.files.Mkdir(ctx, &filesystem.MkdirRequest{Path: path})
	return err
}

// Link implements [Node].
func (l *Library) Link(ctx context.Context, path, target string) error {
	_, err := l.files.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: target, TargetPath: path})
	return err
}

// Remove implements [Node].
func (l *Library) Remove(ctx context.Context, path string) error {
	_, err := l.files.Rmdir(ctx, &filesystem.RmdirRequest{Path: path})
	return err
}

// MapShare implements [Node].
func (l *Library) MapShare(ctx context.Context, share, link, user, password string) error {
	_, err := l.shares.NewSMBGlobalMapping(ctx, &smb.NewSMBGlobalMappingRequest{
		RemotePath: share, LocalPath: link, Username: user, Password: password,
	})
	return err
}

// UnmapShare implements [Node].
func (l *Library) UnmapShare(ctx context.Context, share string) error {
	_, err := l.shares.RemoveSMBGlobalMapping(ctx, &smb.RemoveSMBGlobalMappingRequest{RemotePath: share})
	return err
}

var (
	_ Node = (*Proxy)(nil)
	_ Node = (*Library)(nil)
)
