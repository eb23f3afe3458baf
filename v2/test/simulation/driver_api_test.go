package simulation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"regexp"

	"github.com/kubernetes-csi/csi-proxy/client"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	diskclient "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	filesystemclient "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	smbclient "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1"
	volumeclient "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// byAPI is a driver that makes the calls of aws-ebs 1.63 in its order, with the clients of version v1.
type byAPI struct {
	disks   *diskclient.Client
	volumes *volumeclient.Client
	files   *filesystemclient.Client
	shares  *smbclient.Client
}

// notMounted is what aws-ebs looks for in the error for a path where nothing is mounted.
var notMounted = regexp.MustCompile(`error: <nil>|because it does not exist`)

// openClients connects to the daemon.
func openClients(ctx context.Context, p *process) (verbs, error) { return openAPI(ctx, p.run.network) }

// openHosts serves the API in the driver's own process, as one that links the library: its hosts are not the daemon's.
func openHosts(ctx context.Context, p *process) (verbs, error) {
	own := newNetwork()
	p.serve(own)
	return openAPI(ctx, own)
}

func openAPI(ctx context.Context, n *network) (byAPI, error) {
	at := func(group string) client.Option {
		return client.WithDialer(func(ctx context.Context) (net.Conn, error) { return n.dial(ctx, group, "v1") })
	}
	var a byAPI
	var diskErr, volumeErr, filesErr, sharesErr error
	a.disks, diskErr = diskclient.New(ctx, at("disk"))
	a.volumes, volumeErr = volumeclient.New(ctx, at("volume"))
	a.files, filesErr = filesystemclient.New(ctx, at("filesystem"))
	a.shares, sharesErr = smbclient.New(ctx, at("smb"))
	err := errors.Join(diskErr, volumeErr, filesErr, sharesErr)
	if err != nil {
		a.close()
	}
	return a, err
}

func (a byAPI) close() {
	for _, c := range []interface{ Close() error }{a.disks, a.volumes, a.files, a.shares} {
		if !reflect.ValueOf(c).IsNil() { // of those, some could not connect
			_ = c.Close()
		}
	}
}

// openShares is csi-driver-smb.
func openShares(ctx context.Context, p *process) (verbs, error) {
	a, err := openAPI(ctx, p.run.network)
	return byShare{a}, err
}

// byShare is a driver that makes the calls of csi-driver-smb 1.20.
type byShare struct{ byAPI }

func (v *volume) remote() string { return `\\` + v.server + `\` + v.share }

func (s byShare) stage(ctx context.Context, v *volume) error {
	if err := s.clear(ctx, v.staging()); err != nil {
		return err
	}
	_, err := s.shares.NewSmbGlobalMapping(ctx, &smbv1.NewSmbGlobalMappingRequest{RemotePath: v.remote(), LocalPath: v.staging(), Username: account, Password: v.password()})
	return err
}

// unstage knows the share, which the driver reads from the link.
func (s byShare) unstage(ctx context.Context, v *volume) error {
	if _, err := s.shares.RemoveSmbGlobalMapping(ctx, &smbv1.RemoveSmbGlobalMappingRequest{RemotePath: v.remote()}); err != nil {
		return err
	}
	return s.rmdir(ctx, v.staging())
}

func (s byShare) stats(ctx context.Context, v *volume, pod int) (int64, error) {
	_, err := s.exists(ctx, v.targetPath(pod))
	return 0, err
}

// find looks for the disk by its serial number.
func (a byAPI) find(ctx context.Context, v *volume) (number uint32, err error) {
	all, err := a.disks.ListDiskIDs(ctx, &diskv1.ListDiskIDsRequest{})
	found := 0
	for n, ids := range all.GetDiskIDs() {
		if ids.SerialNumber == v.serial {
			number = n
			found++
		}
	}
	if err == nil && found != 1 {
		err = fmt.Errorf("%d disks have the serial number %s", found, v.serial)
	}
	return number, err
}

func (a byAPI) stage(ctx context.Context, v *volume) error {
	if _, err := a.disks.Rescan(ctx, &diskv1.RescanRequest{}); err != nil {
		return err
	}
	number, err := a.find(ctx, v)
	if err != nil {
		return err
	}
	if _, err := a.files.Mkdir(ctx, &filesystemv1.MkdirRequest{Path: v.staging()}); err != nil {
		return err
	}
	if id, err := a.volumeAt(ctx, v.staging()); err != nil && !notMounted.MatchString(err.Error()) {
		return err
	} else if err == nil { // staged before
		of, err := a.volumes.GetDiskNumberFromVolumeID(ctx, &volumev1.GetDiskNumberFromVolumeIDRequest{VolumeId: id})
		if err != nil || of.DiskNumber != number {
			return fmt.Errorf("volume %s of disk %d is there, want disk %d: %w", id, of.GetDiskNumber(), number, err)
		}
		return nil
	}
	if _, err := a.disks.PartitionDisk(ctx, &diskv1.PartitionDiskRequest{DiskNumber: number}); err != nil {
		return err
	}
	if _, err := a.disks.SetDiskState(ctx, &diskv1.SetDiskStateRequest{DiskNumber: number, IsOnline: true}); err != nil {
		return err
	}
	on, err := a.volumes.ListVolumesOnDisk(ctx, &volumev1.ListVolumesOnDiskRequest{DiskNumber: number})
	if err != nil {
		return err
	}
	if len(on.VolumeIds) == 0 {
		return fmt.Errorf("disk %d has no volume", number)
	}
	id := on.VolumeIds[0]
	formatted, err := a.volumes.IsVolumeFormatted(ctx, &volumev1.IsVolumeFormattedRequest{VolumeId: id})
	if err != nil {
		return err
	}
	if !formatted.Formatted {
		if _, err := a.volumes.FormatVolume(ctx, &volumev1.FormatVolumeRequest{VolumeId: id}); err != nil {
			return err
		}
	}
	_, err = a.volumes.MountVolume(ctx, &volumev1.MountVolumeRequest{VolumeId: id, TargetPath: v.staging()})
	return err
}

func (a byAPI) volumeAt(ctx context.Context, path string) (string, error) {
	at, err := a.volumes.GetVolumeIDFromTargetPath(ctx, &volumev1.GetVolumeIDFromTargetPathRequest{TargetPath: path})
	return at.GetVolumeId(), err
}

func (a byAPI) exists(ctx context.Context, path string) (bool, error) {
	is, err := a.files.PathExists(ctx, &filesystemv1.PathExistsRequest{Path: path})
	return is.GetExists(), err
}

// clear removes what is at a path.
func (a byAPI) clear(ctx context.Context, path string) error {
	if exists, err := a.exists(ctx, path); err != nil || !exists {
		return err
	}
	return a.rmdir(ctx, path)
}

func (a byAPI) rmdir(ctx context.Context, path string) error {
	_, err := a.files.Rmdir(ctx, &filesystemv1.RmdirRequest{Path: path, Force: true})
	return err
}

func (a byAPI) publish(ctx context.Context, v *volume, pod int) error {
	target := v.targetPath(pod)
	if err := a.clear(ctx, target); err != nil {
		return err
	}
	_, err := a.files.CreateSymlink(ctx, &filesystemv1.CreateSymlinkRequest{SourcePath: v.staging(), TargetPath: target})
	return err
}

func (a byAPI) unpublish(ctx context.Context, v *volume, pod int) error {
	return a.rmdir(ctx, v.targetPath(pod))
}

// unstage goes on, as the driver does, if nothing is mounted at the path.
func (a byAPI) unstage(ctx context.Context, v *volume) error {
	id, err := a.volumeAt(ctx, v.staging())
	switch {
	case err != nil && !notMounted.MatchString(err.Error()):
		return err
	case err != nil:
		return a.clear(ctx, v.staging())
	}
	of, err := a.volumes.GetDiskNumberFromVolumeID(ctx, &volumev1.GetDiskNumberFromVolumeIDRequest{VolumeId: id})
	if err != nil {
		return err
	}
	if _, err := a.volumes.UnmountVolume(ctx, &volumev1.UnmountVolumeRequest{VolumeId: id, TargetPath: v.staging()}); err != nil {
		return err
	}
	if err := a.rmdir(ctx, v.staging()); err != nil {
		return err
	}
	_, err = a.disks.SetDiskState(ctx, &diskv1.SetDiskStateRequest{DiskNumber: of.DiskNumber})
	return err
}

func (a byAPI) expand(ctx context.Context, v *volume, _ winsim.Size) error {
	id, err := a.volumeAt(ctx, v.staging())
	if err != nil {
		return err
	}
	if _, err := a.disks.Rescan(ctx, &diskv1.RescanRequest{}); err != nil {
		return err
	}
	_, err = a.volumes.ResizeVolume(ctx, &volumev1.ResizeVolumeRequest{VolumeId: id})
	return err
}

// stats has no deadline, as that of gcp-pd.
func (a byAPI) stats(ctx context.Context, v *volume, pod int) (int64, error) {
	ctx = context.WithoutCancel(ctx)
	id, err := a.volumeAt(ctx, v.targetPath(pod))
	if err != nil {
		return 0, err
	}
	of, err := a.volumes.GetVolumeStats(ctx, &volumev1.GetVolumeStatsRequest{VolumeId: id})
	return of.GetTotalBytes(), err
}
