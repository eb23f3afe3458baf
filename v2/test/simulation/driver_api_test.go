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

// do makes a call, unless one before it has failed.
func do[Q, A any](ctx context.Context, err *error, call func(context.Context, *Q, ...grpc.CallOption) (*A, error), request *Q) (answer *A) {
	if *err == nil {
		answer, *err = call(ctx, request)
	}
	return answer
}

// find looks for the disk by its serial number.
func (a byAPI) find(ctx context.Context, v *volume, err *error) (number uint32) {
	found := 0
	for n, ids := range do(ctx, err, a.disks.ListDiskIDs, &diskv1.ListDiskIDsRequest{}).GetDiskIDs() {
		if ids.SerialNumber == v.serial {
			number = n
			found++
		}
	}
	if *err == nil && found != 1 {
		*err = fmt.Errorf("%d disks have the serial number %s", found, v.serial)
	}
	return number
}

func (a byAPI) stage(ctx context.Context, v *volume) (err error) {
	do(ctx, &err, a.disks.Rescan, &diskv1.RescanRequest{})
	number := a.find(ctx, v, &err)
	if do(ctx, &err, a.files.Mkdir, &filesystemv1.MkdirRequest{Path: v.staging()}); err != nil {
		return err
	}
	switch id := a.volumeAt(ctx, &err, v.staging()); {
	case err == nil: // staged before
		if of := a.diskOf(ctx, &err, id); err != nil || of != number {
			return fmt.Errorf("volume %s of disk %d is there, want disk %d: %w", id, of, number, err)
		}
		return nil
	case !notMounted.MatchString(err.Error()):
		return err
	}
	err = nil
	do(ctx, &err, a.disks.PartitionDisk, &diskv1.PartitionDiskRequest{DiskNumber: number})
	do(ctx, &err, a.disks.SetDiskState, &diskv1.SetDiskStateRequest{DiskNumber: number, IsOnline: true})
	ids := do(ctx, &err, a.volumes.ListVolumesOnDisk, &volumev1.ListVolumesOnDiskRequest{DiskNumber: number}).GetVolumeIds()
	if err == nil && len(ids) == 0 {
		err = fmt.Errorf("disk %d has no volume", number)
	}
	id := append(ids, "")[0]
	if !do(ctx, &err, a.volumes.IsVolumeFormatted, &volumev1.IsVolumeFormattedRequest{VolumeId: id}).GetFormatted() {
		do(ctx, &err, a.volumes.FormatVolume, &volumev1.FormatVolumeRequest{VolumeId: id})
	}
	do(ctx, &err, a.volumes.MountVolume, &volumev1.MountVolumeRequest{VolumeId: id, TargetPath: v.staging()})
	return err
}

func (a byAPI) diskOf(ctx context.Context, err *error, id string) uint32 {
	return do(ctx, err, a.volumes.GetDiskNumberFromVolumeID, &volumev1.GetDiskNumberFromVolumeIDRequest{VolumeId: id}).GetDiskNumber()
}

func (a byAPI) volumeAt(ctx context.Context, err *error, path string) string {
	return do(ctx, err, a.volumes.GetVolumeIDFromTargetPath, &volumev1.GetVolumeIDFromTargetPathRequest{TargetPath: path}).GetVolumeId()
}

// clear removes what is at a path.
func (a byAPI) clear(ctx context.Context, err *error, path string) {
	if do(ctx, err, a.files.PathExists, &filesystemv1.PathExistsRequest{Path: path}).GetExists() {
		a.rmdir(ctx, err, path)
	}
}

func (a byAPI) rmdir(ctx context.Context, err *error, path string) {
	do(ctx, err, a.files.Rmdir, &filesystemv1.RmdirRequest{Path: path, Force: true})
}

func (a byAPI) publish(ctx context.Context, v *volume, pod int) (err error) {
	a.clear(ctx, &err, v.targetPath(pod))
	do(ctx, &err, a.files.CreateSymlink, &filesystemv1.CreateSymlinkRequest{SourcePath: v.staging(), TargetPath: v.targetPath(pod)})
	return err
}

func (a byAPI) unpublish(ctx context.Context, v *volume, pod int) (err error) {
	a.rmdir(ctx, &err, v.targetPath(pod))
	return err
}

// unstage goes on, as the driver does, if nothing is mounted at the path.
func (a byAPI) unstage(ctx context.Context, v *volume) (err error) {
	id := a.volumeAt(ctx, &err, v.staging())
	if err != nil && notMounted.MatchString(err.Error()) {
		v.saidGone.Store(true)
		err = nil
		a.clear(ctx, &err, v.staging())
		return err
	}
	number := a.diskOf(ctx, &err, id)
	do(ctx, &err, a.volumes.UnmountVolume, &volumev1.UnmountVolumeRequest{VolumeId: id, TargetPath: v.staging()})
	a.rmdir(ctx, &err, v.staging())
	do(ctx, &err, a.disks.SetDiskState, &diskv1.SetDiskStateRequest{DiskNumber: number})
	return err
}

func (a byAPI) expand(ctx context.Context, v *volume, _ winsim.Size) (err error) {
	id := a.volumeAt(ctx, &err, v.staging())
	do(ctx, &err, a.disks.Rescan, &diskv1.RescanRequest{})
	do(ctx, &err, a.volumes.ResizeVolume, &volumev1.ResizeVolumeRequest{VolumeId: id})
	return err
}

// stats has no deadline, as that of gcp-pd.
func (a byAPI) stats(ctx context.Context, v *volume, pod int) (total int64, err error) {
	ctx = context.WithoutCancel(ctx)
	id := a.volumeAt(ctx, &err, v.targetPath(pod))
	total = do(ctx, &err, a.volumes.GetVolumeStats, &volumev1.GetVolumeStatsRequest{VolumeId: id}).GetTotalBytes()
	return total, err
}

// byShare is a driver that makes the calls of csi-driver-smb 1.20.
type byShare struct{ byAPI }

func (v *volume) remote() string { return `\\` + v.server + `\` + v.share }

func (s byShare) stage(ctx context.Context, v *volume) (err error) {
	s.clear(ctx, &err, v.staging())
	do(ctx, &err, s.shares.NewSmbGlobalMapping, &smbv1.NewSmbGlobalMappingRequest{RemotePath: v.remote(), LocalPath: v.staging(), Username: account, Password: v.run.password()})
	return err
}

// unstage knows the share, which the driver reads from the link.
func (s byShare) unstage(ctx context.Context, v *volume) (err error) {
	do(ctx, &err, s.shares.RemoveSmbGlobalMapping, &smbv1.RemoveSmbGlobalMappingRequest{RemotePath: v.remote()})
	s.rmdir(ctx, &err, v.staging())
	return err
}

func (s byShare) stats(ctx context.Context, v *volume, pod int) (_ int64, err error) {
	do(ctx, &err, s.files.PathExists, &filesystemv1.PathExistsRequest{Path: v.targetPath(pod)})
	return 0, err
}
