package storage

import (
	"context"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/client"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	diskclient "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	filesystemclient "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	smbclient "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1"
	volumeclient "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1"
)

// Proxy is a [Node] behind the CSI Proxy daemon. Containers other than
// HostProcess containers use this one.
type Proxy struct {
	disks   *diskclient.Client
	volumes *volumeclient.Client
	files   *filesystemclient.Client
	shares  *smbclient.Client
}

// OverProxy connects to the daemon, and waits for it until ctx ends. The caller closes the
// result.
func OverProxy(ctx context.Context) (p *Proxy, err error) {
	p = &Proxy{}
	defer func() {
		if err != nil {
			_ = p.Close()
		}
	}()
	if p.disks, err = diskclient.New(ctx, client.WithWait()); err != nil {
		return nil, err
	}
	if p.volumes, err = volumeclient.New(ctx, client.WithWait()); err != nil {
		return nil, err
	}
	if p.files, err = filesystemclient.New(ctx, client.WithWait()); err != nil {
		return nil, err
	}
	if p.shares, err = smbclient.New(ctx, client.WithWait()); err != nil {
		return nil, err
	}
	return p, nil
}

// Close ends the connections.
func (p *Proxy) Close() error {
	var errs []error
	if p.disks != nil {
		errs = append(errs, p.disks.Close())
	}
	if p.volumes != nil {
		errs = append(errs, p.volumes.Close())
	}
	if p.files != nil {
		errs = append(errs, p.files.Close())
	}
	if p.shares != nil {
		errs = append(errs, p.shares.Close())
	}
	return errors.Join(errs...)
}

// Disks implements [Node].
func (p *Proxy) Disks(ctx context.Context) (map[uint32]string, error) {
	response, err := p.disks.ListDiskIDs(ctx, &diskv1.ListDiskIDsRequest{})
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
func (p *Proxy) Rescan(ctx context.Context) error {
	_, err := p.disks.Rescan(ctx, &diskv1.RescanRequest{})
	return err
}

// DiskSize implements [Node].
func (p *Proxy) DiskSize(ctx context.Context, disk uint32) (int64, error) {
	response, err := p.disks.GetDiskStats(ctx, &diskv1.GetDiskStatsRequest{DiskNumber: disk})
	return response.GetTotalBytes(), err
}

// Partition implements [Node].
func (p *Proxy) Partition(ctx context.Context, disk uint32) error {
	_, err := p.disks.PartitionDisk(ctx, &diskv1.PartitionDiskRequest{DiskNumber: disk})
	return err
}

// SetOnline implements [Node].
func (p *Proxy) SetOnline(ctx context.Context, disk uint32, online bool) error {
	_, err := p.disks.SetDiskState(ctx, &diskv1.SetDiskStateRequest{DiskNumber: disk, IsOnline: online})
	return err
}

// Volumes implements [Node].
func (p *Proxy) Volumes(ctx context.Context, disk uint32) ([]string, error) {
	response, err := p.volumes.ListVolumesOnDisk(ctx, &volumev1.ListVolumesOnDiskRequest{DiskNumber: disk})
	return response.GetVolumeIds(), err
}

// DiskOf implements [Node].
func (p *Proxy) DiskOf(ctx context.Context, volume string) (uint32, error) {
	response, err := p.volumes.GetDiskNumberFromVolumeID(ctx, &volumev1.GetDiskNumberFromVolumeIDRequest{VolumeId: volume})
	return response.GetDiskNumber(), err
}

// IsFormatted implements [Node].
func (p *Proxy) IsFormatted(ctx context.Context, volume string) (bool, error) {
	response, err := p.volumes.IsVolumeFormatted(ctx, &volumev1.IsVolumeFormattedRequest{VolumeId: volume})
	return response.GetFormatted(), err
}

// Format implements [Node].
func (p *Proxy) Format(ctx context.Context, volume string) error {
	_, err := p.volumes.FormatVolume(ctx, &volumev1.FormatVolumeRequest{VolumeId: volume})
	return err
}

// Mount implements [Node].
func (p *Proxy) Mount(ctx context.Context, volume, folder string) error {
	_, err := p.volumes.MountVolume(ctx, &volumev1.MountVolumeRequest{VolumeId: volume, TargetPath: folder})
	return err
}

// Unmount implements [Node].
func (p *Proxy) Unmount(ctx context.Context, volume, folder string) error {
	_, err := p.volumes.UnmountVolume(ctx, &volumev1.UnmountVolumeRequest{VolumeId: volume, TargetPath: folder})
	return err
}

// MountedAt implements [Node].
func (p *Proxy) MountedAt(ctx context.Context, path string) (string, error) {
	response, err := p.volumes.GetVolumeIDFromTargetPath(ctx, &volumev1.GetVolumeIDFromTargetPathRequest{TargetPath: path})
	return response.GetVolumeId(), err
}

// Grow implements [Node].
func (p *Proxy) Grow(ctx context.Context, volume string) error {
	_, err := p.volumes.ResizeVolume(ctx, &volumev1.ResizeVolumeRequest{VolumeId: volume}) // no size is all of it
	return err
}

// VolumeSpace implements [Node].
func (p *Proxy) VolumeSpace(ctx context.Context, volume string) (total, used int64, err error) {
	response, err := p.volumes.GetVolumeStats(ctx, &volumev1.GetVolumeStatsRequest{VolumeId: volume})
	return response.GetTotalBytes(), response.GetUsedBytes(), err
}

// Exists implements [Node].
func (p *Proxy) Exists(ctx context.Context, path string) (bool, error) {
	response, err := p.files.PathExists(ctx, &filesystemv1.PathExistsRequest{Path: path})
	return response.GetExists(), err
}

// IsLink implements [Node].
func (p *Proxy) IsLink(ctx context.Context, path string) (bool, error) {
	response, err := p.files.IsSymlink(ctx, &filesystemv1.IsSymlinkRequest{Path: path})
	return response.GetIsSymlink(), err
}

// MakeDir implements [Node].
func (p *Proxy) MakeDir(ctx context.Context, path string) error {
	_, err := p.files.Mkdir(ctx, &filesystemv1.MkdirRequest{Path: path})
	return err
}

// Link implements [Node].
func (p *Proxy) Link(ctx context.Context, path, target string) error {
	_, err := p.files.CreateSymlink(ctx, &filesystemv1.CreateSymlinkRequest{SourcePath: target, TargetPath: path})
	return err
}

// Remove implements [Node].
func (p *Proxy) Remove(ctx context.Context, path string) error {
	_, err := p.files.Rmdir(ctx, &filesystemv1.RmdirRequest{Path: path})
	return err
}

// MapShare implements [Node].
func (p *Proxy) MapShare(ctx context.Context, share, link, user, password string) error {
	_, err := p.shares.NewSmbGlobalMapping(ctx, &smbv1.NewSmbGlobalMappingRequest{
		RemotePath: share, LocalPath: link, Username: user, Password: password,
	})
	return err
}

// UnmapShare implements [Node].
func (p *Proxy) UnmapShare(ctx context.Context, share string) error {
	_, err := p.shares.RemoveSmbGlobalMapping(ctx, &smbv1.RemoveSmbGlobalMappingRequest{RemotePath: share})
	return err
}
