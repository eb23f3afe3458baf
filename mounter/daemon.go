package mounter

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/kubernetes-csi/csi-proxy/client"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/client/failure"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// daemon is the node behind the pipes of CSI Proxy.
type daemon struct {
	disks, vols, files, shares, targets, system *endpoint
}

var _ node = (*daemon)(nil)

func newDaemon(ctx context.Context, s *settings) (*daemon, error) {
	serving := func(group, version string) *endpoint {
		return &endpoint{settings: s, group: group, version: apiversion.NewVersionOrPanic(version), turn: make(chan struct{}, 1)}
	}
	d := &daemon{
		disks: serving("disk", "v1"), vols: serving("volume", "v1"), files: serving("filesystem", "v1"), shares: serving("smb", "v1"),
		targets: serving("iscsi", "v1alpha2"), system: serving("system", "v1alpha1"),
	}
	var options []client.Option
	if s.wait {
		options = append(options, client.WithWait())
	}
	if _, err := d.files.connect(ctx, options...); err != nil {
		return nil, err
	}
	return d, nil
}

// endpoint is a pipe of the daemon, which is opened at the first use. Drivers mount only the pipes
// that they need into their containers.
type endpoint struct {
	settings *settings
	group    string
	version  apiversion.Version

	turn chan struct{}    // has a value while a call connects, which takes as long as its context allows
	conn *grpc.ClientConn // guarded by turn, as closed is

	closed bool // for good
}

// errNoPipe means that the daemon does not run, or that the container does not have the pipe.
var errNoPipe = errors.New("no such pipe")

func (e *endpoint) connect(ctx context.Context, options ...client.Option) (*grpc.ClientConn, error) {
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-e.turn }()
	switch {
	case e.closed:
		return nil, errClosed()
	case e.conn != nil:
		return e.conn, nil
	}
	options = append(slices.Clone(options), client.WithPipePath(e.path()))
	if dial := e.settings.dialer; dial != nil {
		options = append(options, client.WithDialer(func(ctx context.Context) (net.Conn, error) { return dial(ctx, e.group, e.version.String()) }))
	}
	conn, err := client.Connect(ctx, e.group, e.version, options...)
	if err != nil {
		// The daemon, not a volume, is missing.
		failed := &nodeError{class: failure.Unavailable, text: err.Error()}
		if errors.Is(err, fs.ErrNotExist) {
			failed.err = errNoPipe
		}
		return nil, failed
	}
	e.conn = conn
	return conn, nil
}

// path is the pipe, or the Unix socket.
func (e *endpoint) path() string {
	if e.settings.pipePath != nil {
		return e.settings.pipePath(e.group, e.version.String())
	}
	return client.PipePath(e.group, e.version)
}

func (e *endpoint) close() error {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	e.closed = true
	if e.conn == nil {
		return nil
	}
	defer func() { e.conn = nil }()
	return e.conn.Close()
}

// call calls a method of a service of an endpoint. The error is that of the library.
func call[Client, Request, Response any](
	ctx context.Context, e *endpoint, newClient func(grpc.ClientConnInterface) Client,
	method func(Client, context.Context, Request, ...grpc.CallOption) (Response, error), request Request,
) (Response, error) {
	conn, err := e.connect(ctx)
	if err != nil {
		var none Response
		if ended := ctx.Err(); ended != nil {
			err = ended
		}
		return none, err
	}
	response, err := method(newClient(conn), ctx, request)
	return response, failure.FromStatus(err)
}

// lacks returns what a daemon without an extension cannot do. probe asks the extension something
// harmless: one that only refuses the object answers that, and its own error counts.
func lacks(err error, probe func() error, op, object, missing, remedy string) error {
	if !isUnimplemented(err) || !isUnimplemented(probe()) {
		return err
	}
	return newError(failure.Unsupported, op, object, "the daemon does not have %s; upgrade it to CSI Proxy v2%s", missing, remedy)
}

const omitOption = ", or omit the option"

func isUnimplemented(err error) bool { return failure.ClassOf(err) == failure.Unsupported }

func (d *daemon) rescan(ctx context.Context) error {
	return errOf(call(ctx, d.disks, diskv1.NewDiskClient, diskv1.DiskClient.Rescan, &diskv1.RescanRequest{}))
}

func (d *daemon) diskSize(ctx context.Context, number uint32) (int64, error) {
	response, err := call(ctx, d.disks, diskv1.NewDiskClient, diskv1.DiskClient.GetDiskStats, &diskv1.GetDiskStatsRequest{DiskNumber: number})
	return response.GetTotalBytes(), err
}

// wire is a disk as a request of the extensions.
func (f foundDisk) wire() *extensionv1.Disk {
	request := &extensionv1.Disk{Number: &f.number}
	if is := f.is; is != (diskapi.MustBe{}) {
		request.MustBe = &extensionv1.MustBe{Device: is.Device, SerialNumber: is.Serial, Page83: is.Page83, VolumeId: is.VolumeID, MountPath: is.Path}
	}
	return request
}

// confirm fails if another disk has the number. A daemon that does not know what a disk must be is asked before each
// change: what happens in between is not seen.
func (d *daemon) confirm(ctx context.Context, f foundDisk) error {
	at, err := f.number, error(nil)
	switch is, query := f.is, f.keys; {
	case is.VolumeID != "":
		at, err = d.diskOf(ctx, is.VolumeID)
	case is != diskapi.MustBe{} || query != nodeapi.Query{}:
		query.Number, query.Serial, query.Page83 = &f.number, is.Serial, is.Page83
		_, err = d.findListed(ctx, query, nil)
	}
	if err == nil && at != f.number || errors.Is(err, fs.ErrNotExist) {
		return newError(failure.Busy, "look at", diskName(f.number), "another disk has the number now; find the disk again by its ids")
	}
	return err
}

// changeDisk asks the extension, which checks the disk at the change itself, or the published method after it has looked.
func (d *daemon) changeDisk(
	ctx context.Context, f foundDisk, request *extensionv1.Disk, plain func() error,
	method func(extensionv1.DiskChangeClient, context.Context, *extensionv1.Disk, ...grpc.CallOption) (*emptypb.Empty, error),
) error {
	if request.MustBe != nil {
		if err := errOf(call(ctx, d.disks, extensionv1.NewDiskChangeClient, method, request)); !isUnimplemented(err) {
			return err
		}
	}
	if err := d.confirm(ctx, f); err != nil {
		return err
	}
	return plain()
}

func (d *daemon) partition(ctx context.Context, f foundDisk) error {
	return d.changeDisk(ctx, f, f.wire(), func() error {
		return errOf(call(ctx, d.disks, diskv1.NewDiskClient, diskv1.DiskClient.PartitionDisk, &diskv1.PartitionDiskRequest{DiskNumber: f.number}))
	}, extensionv1.DiskChangeClient.PartitionDisk)
}

func (d *daemon) setOnline(ctx context.Context, f foundDisk, online bool) error {
	request := f.wire()
	request.Online = &online
	return d.changeDisk(ctx, f, request, func() error {
		return errOf(call(ctx, d.disks, diskv1.NewDiskClient, diskv1.DiskClient.SetDiskState, &diskv1.SetDiskStateRequest{DiskNumber: f.number, IsOnline: online}))
	}, extensionv1.DiskChangeClient.SetDiskState)
}

func (d *daemon) isReadOnly(ctx context.Context, f foundDisk) (bool, error) {
	response, err := call(ctx, d.disks, extensionv1.NewDiskReadOnlyClient, extensionv1.DiskReadOnlyClient.GetDiskReadOnly, f.wire())
	if isUnimplemented(err) {
		err = cmp.Or(d.confirm(ctx, f), err)
	}
	return response.GetReadOnly(), err
}

func (d *daemon) onlineReadOnly(ctx context.Context, f foundDisk) error {
	yes, request := true, f.wire()
	request.ReadOnly, request.Online = &yes, &yes
	_, err := call(ctx, d.disks, extensionv1.NewDiskReadOnlyClient, extensionv1.DiskReadOnlyClient.SetDiskReadOnly, request)
	return d.lacksReadOnly(ctx, "bring online read-only", f, err)
}

func (d *daemon) setReadOnly(ctx context.Context, f foundDisk, readOnly bool) error {
	request := f.wire()
	request.ReadOnly = &readOnly
	_, err := call(ctx, d.disks, extensionv1.NewDiskReadOnlyClient, extensionv1.DiskReadOnlyClient.SetDiskReadOnly, request)
	return d.lacksReadOnly(ctx, "set read-only state of", f, err)
}

func (d *daemon) lacksReadOnly(ctx context.Context, op string, f foundDisk, err error) error {
	probe := func() error { _, err := d.isReadOnly(ctx, f); return err }
	return lacks(err, probe, op, diskName(f.number), "the option ReadOnly", omitOption)
}

func (d *daemon) volumes(ctx context.Context, number uint32) ([]string, error) {
	response, err := call(ctx, d.vols, volumev1.NewVolumeClient, volumev1.VolumeClient.ListVolumesOnDisk, &volumev1.ListVolumesOnDiskRequest{DiskNumber: number})
	return response.GetVolumeIds(), err
}

func (d *daemon) diskOf(ctx context.Context, id string) (uint32, error) {
	response, err := call(ctx, d.vols, volumev1.NewVolumeClient, volumev1.VolumeClient.GetDiskNumberFromVolumeID,
		&volumev1.GetDiskNumberFromVolumeIDRequest{VolumeId: id})
	return response.GetDiskNumber(), err
}

func (d *daemon) isFormatted(ctx context.Context, id string) (bool, error) {
	response, err := call(ctx, d.vols, volumev1.NewVolumeClient, volumev1.VolumeClient.IsVolumeFormatted, &volumev1.IsVolumeFormattedRequest{VolumeId: id})
	return response.GetFormatted(), err
}

func (d *daemon) health(ctx context.Context, id string) (volumeapi.Health, error) {
	condition, err := call(ctx, d.vols, extensionv1.NewVolumeHealthClient, extensionv1.VolumeHealthClient.CheckVolume, &extensionv1.Volume{Id: id})
	if err != nil {
		return volumeapi.Health{}, err
	}
	health := volumeapi.Health{
		FileSystem: condition.Volume.GetFileSystem(), ReadOnly: condition.Volume.GetReadOnly(), Dirty: condition.Volume.GetDirty(),
		Damage: volumeapi.Damage(condition.Volume.GetDamage()), Unknown: condition.Unknown,
	}
	for _, disk := range condition.Disks {
		health.Disks = append(health.Disks, volumeapi.DiskHealth{Number: disk.GetNumber(), State: disk.Health, Reason: disk.HealthReason})
	}
	return health, nil
}

func (d *daemon) format(ctx context.Context, id, fsType string, options FormatOptions) error {
	plain := func() error {
		return errOf(call(ctx, d.vols, volumev1.NewVolumeClient, volumev1.VolumeClient.FormatVolume, &volumev1.FormatVolumeRequest{VolumeId: id}))
	}
	if options == (FormatOptions{}) && fsType == "" { // NTFS, unless the daemon's flag says otherwise
		return plain()
	}
	ask := func(request *extensionv1.Volume) error {
		return errOf(call(ctx, d.vols, extensionv1.NewVolumeFormatClient, extensionv1.VolumeFormatClient.FormatVolume, request))
	}
	err := ask(&extensionv1.Volume{
		Id: id, FileSystem: fsType, ClusterSizeBytes: options.AllocationUnitSize, Label: options.Label, RootAccess: options.RootAccess,
	})
	if options == (FormatOptions{}) && strings.EqualFold(fsType, "ntfs") && isUnimplemented(err) { // all that an older daemon makes
		return plain()
	}
	probe := func() error { return ask(&extensionv1.Volume{}) } // no volume
	return lacks(err, probe, "format volume", id, "the format options", omitOption)
}

func (d *daemon) mount(ctx context.Context, id, path string) error {
	return errOf(call(ctx, d.vols, volumev1.NewVolumeClient, volumev1.VolumeClient.MountVolume, &volumev1.MountVolumeRequest{VolumeId: id, TargetPath: path}))
}

func (d *daemon) unmount(ctx context.Context, id, path string) error {
	return errOf(call(ctx, d.vols, volumev1.NewVolumeClient, volumev1.VolumeClient.UnmountVolume, &volumev1.UnmountVolumeRequest{VolumeId: id, TargetPath: path}))
}

func (d *daemon) mountedAt(ctx context.Context, path string) (string, error) {
	response, err := call(ctx, d.vols, volumev1.NewVolumeClient, volumev1.VolumeClient.GetVolumeIDFromTargetPath,
		&volumev1.GetVolumeIDFromTargetPathRequest{TargetPath: path})
	return response.GetVolumeId(), err
}

func (d *daemon) flush(ctx context.Context, id, path string) (string, error) {
	if path != "" {
		response, err := call(ctx, d.vols, extensionv1.NewVolumeFlushClient, extensionv1.VolumeFlushClient.WriteVolumeCache,
			&extensionv1.Volume{Id: id, MountPaths: []string{path}})
		if !isUnimplemented(err) {
			return strings.Join(response.GetProblems(), "; "), err
		}
	}
	return "", errOf(call(ctx, d.vols, volumev1.NewVolumeClient, volumev1.VolumeClient.WriteVolumeCache, &volumev1.WriteVolumeCacheRequest{VolumeId: id}))
}

func (d *daemon) grow(ctx context.Context, id string) error {
	// no size is all of it
	return errOf(call(ctx, d.vols, volumev1.NewVolumeClient, volumev1.VolumeClient.ResizeVolume, &volumev1.ResizeVolumeRequest{VolumeId: id}))
}

func (d *daemon) volumeSpace(ctx context.Context, id string) (Usage, error) {
	response, err := call(ctx, d.vols, volumev1.NewVolumeClient, volumev1.VolumeClient.GetVolumeStats, &volumev1.GetVolumeStatsRequest{VolumeId: id})
	total, used := response.GetTotalBytes(), response.GetUsedBytes()
	return Usage{TotalBytes: total, UsedBytes: used, AvailableBytes: total - used}, err
}

func (d *daemon) pathSpace(ctx context.Context, path string) (Usage, error) {
	ask := func(request *extensionv1.Path) (*extensionv1.Space, error) {
		return call(ctx, d.files, extensionv1.NewPathsClient, extensionv1.PathsClient.GetPathStats, request)
	}
	response, err := ask(&extensionv1.Path{Path: path})
	probe := func() error { _, err := ask(&extensionv1.Path{}); return err } // no path
	total, available := response.GetTotalBytes(), response.GetAvailableBytes()
	return Usage{TotalBytes: total, UsedBytes: total - available, AvailableBytes: available},
		lacks(err, probe, "measure share at", path, "a service for it", "")
}

func (d *daemon) exists(ctx context.Context, path string) (bool, error) {
	response, err := call(ctx, d.files, filesystemv1.NewFilesystemClient, filesystemv1.FilesystemClient.PathExists, &filesystemv1.PathExistsRequest{Path: path})
	return response.GetExists(), err
}

func (d *daemon) isLiveLink(ctx context.Context, path string) (bool, error) {
	response, err := call(ctx, d.files, filesystemv1.NewFilesystemClient, filesystemv1.FilesystemClient.IsSymlink, &filesystemv1.IsSymlinkRequest{Path: path})
	return response.GetIsSymlink(), err
}

func (d *daemon) list(ctx context.Context, dir string) ([]fsapi.DirectoryEntry, bool, error) {
	response, err := call(ctx, d.files, extensionv1.NewPathsClient, extensionv1.PathsClient.ListDirectory, &extensionv1.Path{Path: dir})
	var entries []fsapi.DirectoryEntry
	for _, e := range response.GetEntries() {
		entries = append(entries, fsapi.DirectoryEntry{Name: e.Name, Type: fsapi.EntryType(e.Type), Target: e.Target})
	}
	return entries, !response.GetTruncated(), err
}

func (d *daemon) makeDir(ctx context.Context, path string) error {
	return errOf(call(ctx, d.files, filesystemv1.NewFilesystemClient, filesystemv1.FilesystemClient.Mkdir, &filesystemv1.MkdirRequest{Path: path}))
}

func (d *daemon) link(ctx context.Context, path, target string) error {
	return errOf(call(ctx, d.files, filesystemv1.NewFilesystemClient, filesystemv1.FilesystemClient.CreateSymlink,
		&filesystemv1.CreateSymlinkRequest{SourcePath: target, TargetPath: path}))
}

func (d *daemon) remove(ctx context.Context, path string) error {
	return errOf(call(ctx, d.files, filesystemv1.NewFilesystemClient, filesystemv1.FilesystemClient.Rmdir, &filesystemv1.RmdirRequest{Path: path}))
}

func (d *daemon) mapShare(ctx context.Context, share SMB, path string) error {
	if share.Privacy == PrivacyDefault && !share.RefuseOtherUser {
		_, err := call(ctx, d.shares, smbv1.NewSmbClient, smbv1.SmbClient.NewSmbGlobalMapping, &smbv1.NewSmbGlobalMappingRequest{
			RemotePath: share.Remote, LocalPath: path, Username: share.Username, Password: share.Password,
		})
		return err
	}
	ask := func(request *extensionv1.NewSmbGlobalMappingRequest) error {
		return errOf(call(ctx, d.shares, extensionv1.NewShareMappingClient, extensionv1.ShareMappingClient.NewSmbGlobalMapping, request))
	}
	request := &extensionv1.NewSmbGlobalMappingRequest{
		RemotePath: share.Remote, LocalPath: path, Username: share.Username, Password: share.Password, RefuseOtherUser: share.RefuseOtherUser,
	}
	if share.Privacy != PrivacyDefault {
		private := share.Privacy != PrivacyNotRequired
		request.Private = &private
	}
	err := ask(request)
	probe := func() error { return ask(&extensionv1.NewSmbGlobalMappingRequest{}) } // no share
	return lacks(err, probe, "map share", share.Remote, "the options Privacy and RefuseOtherUser", omitOption)
}

// unmapShare of a daemon that cannot except a link keeps the share until the link is gone.
func (d *daemon) unmapShare(ctx context.Context, remote, except string) error {
	if except != "" {
		err := errOf(call(ctx, d.shares, extensionv1.NewShareMappingClient, extensionv1.ShareMappingClient.RemoveSmbGlobalMapping,
			&extensionv1.RemoveSmbGlobalMappingRequest{RemotePath: remote, ExceptLink: except}))
		if !isUnimplemented(err) {
			return err
		}
	}
	return errOf(call(ctx, d.shares, smbv1.NewSmbClient, smbv1.SmbClient.RemoveSmbGlobalMapping, &smbv1.RemoveSmbGlobalMappingRequest{RemotePath: remote}))
}

func (d *daemon) addPortal(ctx context.Context, at portal) error {
	return errOf(call(ctx, d.targets, iscsiv1alpha2.NewIscsiClient, iscsiv1alpha2.IscsiClient.AddTargetPortal,
		&iscsiv1alpha2.AddTargetPortalRequest{TargetPortal: &iscsiv1alpha2.TargetPortal{TargetAddress: at.address, TargetPort: at.port}}))
}

func (d *daemon) logIn(ctx context.Context, at portal, target string, chap CHAP) error {
	return errOf(call(ctx, d.targets, iscsiv1alpha2.NewIscsiClient, iscsiv1alpha2.IscsiClient.ConnectTarget, &iscsiv1alpha2.ConnectTargetRequest{
		TargetPortal: &iscsiv1alpha2.TargetPortal{TargetAddress: at.address, TargetPort: at.port}, Iqn: target,
		AuthType: iscsiv1alpha2.AuthenticationType(chap.kind()), ChapUsername: chap.Username, ChapSecret: chap.Secret,
	}))
}

func (d *daemon) logOut(ctx context.Context, target string) error {
	return errOf(call(ctx, d.targets, iscsiv1alpha2.NewIscsiClient, iscsiv1alpha2.IscsiClient.DisconnectTarget,
		&iscsiv1alpha2.DisconnectTargetRequest{TargetPortal: &iscsiv1alpha2.TargetPortal{TargetAddress: anyPortal}, Iqn: target}))
}

func (d *daemon) setMutualSecret(ctx context.Context, secret string) error {
	return errOf(call(ctx, d.targets, iscsiv1alpha2.NewIscsiClient, iscsiv1alpha2.IscsiClient.SetMutualChapSecret,
		&iscsiv1alpha2.SetMutualChapSecretRequest{MutualChapSecret: secret}))
}

func (d *daemon) close() error {
	var errs []error
	for _, e := range []*endpoint{d.disks, d.vols, d.files, d.shares, d.targets, d.system} {
		errs = append(errs, e.close())
	}
	return errors.Join(errs...)
}
