package mounter

import (
	"context"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// Hosts are the machine that a Mounter in the mode Library works on.
type Hosts struct {
	Disk       diskapi.HostAPI
	Volume     volumeapi.HostAPI
	Filesystem fsapi.HostAPI
	SMB        smbapi.HostAPI
	// Node returns the whole machine.
	Node func(...nodeapi.Option) (*nodeapi.Node, error)
}

// thisMachine is the machine on which the process runs. On systems other than Windows every call
// fails with an error that matches errors.ErrUnsupported.
func thisMachine() Hosts {
	return Hosts{Disk: diskapi.New(), Volume: volumeapi.New(), Filesystem: fsapi.New(), SMB: smbapi.New(), Node: nodeapi.New}
}

// library is the node in this process.
type library struct {
	machine *nodeapi.Node
	disks   *disk.Disk
	vols    *volume.Volume
	files   *filesystem.Filesystem
	shares  *smb.SMB
}

var _ node = (*library)(nil)

func newLibrary(s *settings) (*library, error) {
	hosts := s.hosts
	if hosts == nil {
		this := thisMachine()
		hosts = &this
	}
	l := &library{}
	var diskErr, volumeErr, fileErr, smbErr, nodeErr error
	l.disks, diskErr = disk.New(hosts.Disk)
	l.vols, volumeErr = volume.New(hosts.Volume, volume.WorkingDirs(s.workingDirs...))
	l.files, fileErr = filesystem.New(hosts.Filesystem, filesystem.WorkingDirs(s.workingDirs...),
		filesystem.OnRemove(func(ctx context.Context, path string) { l.shares.LinksGone(ctx, path) }))
	l.shares, smbErr = smb.New(hosts.SMB, l.files, smb.WorkingDirs(s.workingDirs...))
	l.machine, nodeErr = hosts.Node(nodeapi.WorkingDirs(s.workingDirs...), nodeapi.SMBHost(hosts.SMB))
	if err := errors.Join(diskErr, volumeErr, fileErr, smbErr, nodeErr); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *library) findDisk(ctx context.Context, query nodeapi.Query) (uint32, error) {
	found, err := l.machine.FindDisk(ctx, query)
	if err != nil {
		return 0, err
	}
	return *found.Number, nil
}

func (l *library) rescan(ctx context.Context) error {
	_, err := l.disks.Rescan(ctx, &disk.RescanRequest{})
	return err
}

func (l *library) diskSize(ctx context.Context, number uint32) (int64, error) {
	response, err := l.disks.GetDiskStats(ctx, &disk.GetDiskStatsRequest{DiskNumber: number})
	if err != nil {
		return 0, err
	}
	return response.TotalBytes, nil
}

func (l *library) partition(ctx context.Context, number uint32) error {
	_, err := l.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: number})
	return err
}

func (l *library) setOnline(ctx context.Context, number uint32, online bool) error {
	_, err := l.disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: number, IsOnline: online})
	return err
}

func (l *library) onlineReadOnly(ctx context.Context, number uint32) error {
	_, err := l.disks.OnlineDiskReadOnly(ctx, &disk.OnlineDiskReadOnlyRequest{DiskNumber: number})
	return err
}

func (l *library) isReadOnly(ctx context.Context, number uint32) (bool, error) {
	response, err := l.disks.GetDiskReadOnly(ctx, &disk.GetDiskReadOnlyRequest{DiskNumber: number})
	if err != nil {
		return false, err
	}
	return response.IsReadOnly, nil
}

func (l *library) setReadOnly(ctx context.Context, number uint32, readOnly bool) error {
	_, err := l.disks.SetDiskReadOnly(ctx, &disk.SetDiskReadOnlyRequest{DiskNumber: number, IsReadOnly: readOnly})
	return err
}

func (l *library) volumes(ctx context.Context, number uint32) ([]string, error) {
	response, err := l.vols.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: number})
	if err != nil {
		return nil, err
	}
	return response.VolumeIDs, nil
}

func (l *library) diskOf(ctx context.Context, id string) (uint32, error) {
	response, err := l.vols.GetDiskNumberFromVolumeID(ctx, &volume.GetDiskNumberFromVolumeIDRequest{VolumeID: id})
	if err != nil {
		return 0, err
	}
	return response.DiskNumber, nil
}

func (l *library) isFormatted(ctx context.Context, id string) (bool, error) {
	response, err := l.vols.IsVolumeFormatted(ctx, &volume.IsVolumeFormattedRequest{VolumeID: id})
	if err != nil {
		return false, err
	}
	return response.Formatted, nil
}

func (l *library) format(ctx context.Context, id string, options FormatOptions) error {
	_, err := l.vols.FormatVolume(ctx, &volume.FormatVolumeRequest{
		VolumeID: id, AllocationUnitSize: options.AllocationUnitSize, Label: options.Label, RootAccess: options.RootAccess,
	})
	return err
}

func (l *library) mount(ctx context.Context, id, path string) error {
	_, err := l.vols.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: id, TargetPath: path})
	return err
}

func (l *library) unmount(ctx context.Context, id, path string) error {
	_, err := l.vols.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeID: id, TargetPath: path})
	return err
}

func (l *library) mountedAt(ctx context.Context, path string) (string, error) {
	response, err := l.vols.GetVolumeIDFromTargetPath(ctx, &volume.GetVolumeIDFromTargetPathRequest{TargetPath: path})
	if err != nil {
		return "", err
	}
	return response.VolumeID, nil
}

func (l *library) flush(ctx context.Context, id string) error {
	_, err := l.vols.WriteVolumeCache(ctx, &volume.WriteVolumeCacheRequest{VolumeID: id})
	return err
}

func (l *library) grow(ctx context.Context, id string) error {
	_, err := l.vols.ResizeVolume(ctx, &volume.ResizeVolumeRequest{VolumeID: id}) // no size is all of it
	return err
}

func (l *library) volumeSpace(ctx context.Context, id string) (Usage, error) {
	response, err := l.vols.GetVolumeStats(ctx, &volume.GetVolumeStatsRequest{VolumeID: id})
	if err != nil {
		return Usage{}, err
	}
	return Usage{TotalBytes: response.TotalBytes, UsedBytes: response.UsedBytes, AvailableBytes: response.TotalBytes - response.UsedBytes}, nil
}

func (l *library) pathSpace(ctx context.Context, path string) (Usage, error) {
	response, err := l.files.GetPathStats(ctx, &filesystem.GetPathStatsRequest{Path: path})
	if err != nil {
		return Usage{}, err
	}
	return Usage{TotalBytes: response.TotalBytes, UsedBytes: response.UsedBytes, AvailableBytes: response.AvailableBytes}, nil
}

func (l *library) exists(ctx context.Context, path string) (bool, error) {
	response, err := l.files.PathExists(ctx, &filesystem.PathExistsRequest{Path: path})
	if err != nil {
		return false, err
	}
	return response.Exists, nil
}

func (l *library) leads(ctx context.Context, path string) (bool, error) {
	response, err := l.files.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: path})
	if err != nil {
		return false, err
	}
	return response.IsSymlink, nil
}

func (l *library) makeDir(ctx context.Context, path string) error {
	_, err := l.files.Mkdir(ctx, &filesystem.MkdirRequest{Path: path})
	return err
}

func (l *library) link(ctx context.Context, path, target string) error {
	_, err := l.files.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: target, TargetPath: path})
	return err
}

func (l *library) remove(ctx context.Context, path string) error {
	_, err := l.files.Rmdir(ctx, &filesystem.RmdirRequest{Path: path})
	return err
}

func (l *library) mapShare(ctx context.Context, share Share, path string) error {
	_, err := l.shares.NewSMBGlobalMapping(ctx, &smb.NewSMBGlobalMappingRequest{
		RemotePath: share.Remote, LocalPath: path, Username: share.Username, Password: share.Password,
		Privacy: smb.Privacy(share.Privacy), RefuseOtherUser: share.RefuseOtherUser, // numbered alike
	})
	return err
}

func (l *library) unmapShare(ctx context.Context, remote string) error {
	_, err := l.shares.RemoveSMBGlobalMapping(ctx, &smb.RemoveSMBGlobalMappingRequest{RemotePath: remote})
	return err
}

func (l *library) describe(ctx context.Context, parts ...nodeapi.Part) (*nodeapi.Description, error) {
	return l.machine.Describe(ctx, parts...)
}

func (l *library) describeVolumes(ctx context.Context, ids []string) (*nodeapi.Description, error) {
	volumes, err := l.machine.DescribeVolumes(ctx, ids...)
	return &nodeapi.Description{Volumes: volumes}, err
}

func (l *library) close() error { return nil }
