package simulation

import (
	"context"
	"fmt"
	"net"
	"regexp"

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/client"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// byAPI is a driver that makes the calls of aws-ebs 1.63 in its order, in version v1.
type byAPI struct {
	disks   diskv1.DiskClient
	volumes volumev1.VolumeClient
	files   filesystemv1.FilesystemClient
	shares  smbv1.SmbClient
	conns   []*grpc.ClientConn
}

// notMounted is what aws-ebs looks for in the error for a path where nothing is mounted.
var notMounted = regexp.MustCompile(`error: <nil>|because it does not exist`)

// connect connects to an endpoint.
func (n *network) connect(ctx context.Context, group, version string) (*grpc.ClientConn, error) {
	return client.Connect(ctx, group, apiversion.NewVersionOrPanic(version), client.WithDialer(func(ctx context.Context) (net.Conn, error) {
		return n.dial(ctx, group, version)
	}))
}

func openAPI(ctx context.Context, n *network) (byAPI, error) {
	var a byAPI
	for _, group := range []string{"disk", "volume", "filesystem", "smb"} {
		conn, err := n.connect(ctx, group, "v1")
		if err != nil {
			a.close()
			return byAPI{}, err
		}
		a.conns = append(a.conns, conn)
	}
	a.disks, a.volumes = diskv1.NewDiskClient(a.conns[0]), volumev1.NewVolumeClient(a.conns[1])
	a.files, a.shares = filesystemv1.NewFilesystemClient(a.conns[2]), smbv1.NewSmbClient(a.conns[3])
	return a, nil
}

func (a byAPI) close() {
	for _, conn := range a.conns {
		_ = conn.Close()
	}
}

// byShare is a driver that makes the calls of csi-driver-smb 1.20.
type byShare struct{ byAPI }

func (v *volume) remote() string { return `\\` + v.server + `\` + v.share }

// do makes a call whose answer says nothing.
func do[Q, A any](ctx context.Context, call func(context.Context, *Q, ...grpc.CallOption) (*A, error), request *Q) error {
	_, err := call(ctx, request)
	return err
}

// inTurn takes steps until one fails.
func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (s byShare) stage(ctx context.Context, v *volume) error {
	return inTurn(func() error { return s.clear(ctx, v.staging()) }, func() error {
		return do(ctx, s.shares.NewSmbGlobalMapping, &smbv1.NewSmbGlobalMappingRequest{RemotePath: v.remote(), LocalPath: v.staging(), Username: account, Password: v.run.password()})
	})
}

// unstage knows the share, which the driver reads from the link.
func (s byShare) unstage(ctx context.Context, v *volume) error {
	if err := do(ctx, s.shares.RemoveSmbGlobalMapping, &smbv1.RemoveSmbGlobalMappingRequest{RemotePath: v.remote()}); err != nil {
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
	if err := do(ctx, a.disks.Rescan, &diskv1.RescanRequest{}); err != nil {
		return err
	}
	number, err := a.find(ctx, v)
	if err != nil {
		return err
	}
	if err := do(ctx, a.files.Mkdir, &filesystemv1.MkdirRequest{Path: v.staging()}); err != nil {
		return err
	}
	if id, err := a.volumeAt(ctx, v.staging()); err != nil && !notMounted.MatchString(err.Error()) {
		return err
	} else if err == nil { // staged before
		of, err := a.diskOf(ctx, id)
		if err != nil || of != number {
			return fmt.Errorf("volume %s of disk %d is there, want disk %d: %w", id, of, number, err)
		}
		return nil
	}
	id := ""
	return inTurn(func() error { return do(ctx, a.disks.PartitionDisk, &diskv1.PartitionDiskRequest{DiskNumber: number}) }, func() error {
		return do(ctx, a.disks.SetDiskState, &diskv1.SetDiskStateRequest{DiskNumber: number, IsOnline: true})
	}, func() error {
		on, err := a.volumes.ListVolumesOnDisk(ctx, &volumev1.ListVolumesOnDiskRequest{DiskNumber: number})
		if err == nil && len(on.VolumeIds) == 0 {
			return fmt.Errorf("disk %d has no volume", number)
		}
		id = append(on.GetVolumeIds(), "")[0]
		return err
	}, func() error {
		is, err := a.volumes.IsVolumeFormatted(ctx, &volumev1.IsVolumeFormattedRequest{VolumeId: id})
		if err == nil && !is.Formatted {
			_, err = a.volumes.FormatVolume(ctx, &volumev1.FormatVolumeRequest{VolumeId: id})
		}
		return err
	}, func() error {
		return do(ctx, a.volumes.MountVolume, &volumev1.MountVolumeRequest{VolumeId: id, TargetPath: v.staging()})
	})
}

func (a byAPI) diskOf(ctx context.Context, id string) (uint32, error) {
	of, err := a.volumes.GetDiskNumberFromVolumeID(ctx, &volumev1.GetDiskNumberFromVolumeIDRequest{VolumeId: id})
	return of.GetDiskNumber(), err
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
	return do(ctx, a.files.Rmdir, &filesystemv1.RmdirRequest{Path: path, Force: true})
}

func (a byAPI) publish(ctx context.Context, v *volume, pod int) error {
	return inTurn(func() error { return a.clear(ctx, v.targetPath(pod)) }, func() error {
		return do(ctx, a.files.CreateSymlink, &filesystemv1.CreateSymlinkRequest{SourcePath: v.staging(), TargetPath: v.targetPath(pod)})
	})
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
		v.saidGone.Store(true)
		return a.clear(ctx, v.staging())
	}
	number, err := a.diskOf(ctx, id)
	if err != nil {
		return err
	}
	return inTurn(func() error {
		return do(ctx, a.volumes.UnmountVolume, &volumev1.UnmountVolumeRequest{VolumeId: id, TargetPath: v.staging()})
	}, func() error { return a.rmdir(ctx, v.staging()) }, func() error { return do(ctx, a.disks.SetDiskState, &diskv1.SetDiskStateRequest{DiskNumber: number}) })
}

func (a byAPI) expand(ctx context.Context, v *volume, _ winsim.Size) error {
	id, err := a.volumeAt(ctx, v.staging())
	return inTurn(func() error { return err }, func() error { return do(ctx, a.disks.Rescan, &diskv1.RescanRequest{}) }, func() error { return do(ctx, a.volumes.ResizeVolume, &volumev1.ResizeVolumeRequest{VolumeId: id}) })
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
