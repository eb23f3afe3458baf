package mounter

import (
	"context"
	"reflect"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
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
	ISCSI      iscsiapi.HostAPI
	// Node returns the whole machine.
	Node func(...nodeapi.Option) (*nodeapi.Node, error)
}

// missing returns the name of a host that is nil, or "".
func (h Hosts) missing() string {
	for _, host := range []struct {
		name  string
		value any
	}{{"Disk", h.Disk}, {"Volume", h.Volume}, {"Filesystem", h.Filesystem}, {"SMB", h.SMB}, {"ISCSI", h.ISCSI}, {"Node", h.Node}} {
		switch v := reflect.ValueOf(host.value); {
		case !v.IsValid(), (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil():
			return host.name
		}
	}
	return ""
}

// thisMachine is the machine on which the process runs. On systems other than Windows every call
// fails with an error that matches errors.ErrUnsupported.
func thisMachine() Hosts {
	return Hosts{Disk: diskapi.New(), Volume: volumeapi.New(), Filesystem: fsapi.New(), SMB: smbapi.New(), ISCSI: iscsiapi.New(), Node: nodeapi.New}
}

type library struct {
	machine *nodeapi.Node
	disks   *disk.Disk
	vols    *volume.Volume
	files   *filesystem.Filesystem
	shares  *smb.SMB
	targets *iscsi.ISCSI
}

var _ node = (*library)(nil)

func newLibrary(s *settings) (*library, error) {
	hosts := s.hosts
	if hosts == nil {
		this := thisMachine()
		hosts = &this
	}
	l := &library{}
	var err error
	if l.disks, err = disk.New(hosts.Disk); err != nil {
		return nil, err
	}
	if l.targets, err = iscsi.New(hosts.ISCSI); err != nil {
		return nil, err
	}
	if l.vols, err = volume.New(hosts.Volume, volume.WorkingDirs(s.workingDirs...)); err != nil {
		return nil, err
	}
	linksGone := filesystem.OnRemove(func(ctx context.Context, path string) { l.shares.LinksGone(ctx, path) })
	if l.files, err = filesystem.New(hosts.Filesystem, filesystem.WorkingDirs(s.workingDirs...), linksGone); err != nil {
		return nil, err
	}
	if l.shares, err = smb.New(hosts.SMB, l.files, smb.WorkingDirs(s.workingDirs...)); err != nil {
		return nil, err
	}
	if l.machine, err = hosts.Node(nodeapi.WorkingDirs(s.workingDirs...), nodeapi.SMBHost(hosts.SMB)); err != nil {
		return nil, err
	}
	return l, nil
}

// errOf returns the error of a call whose response says nothing.
func errOf[Response any](_ Response, err error) error { return err }

// responseOf returns an empty response if a call has failed.
func responseOf[Response any](response *Response, err error) (*Response, error) {
	if err != nil {
		return new(Response), err
	}
	return response, nil
}

func (l *library) findDisk(ctx context.Context, query nodeapi.Query) (foundDisk, error) {
	found, err := l.machine.FindDisk(ctx, query)
	if err != nil {
		return foundDisk{}, err
	}
	return foundDisk{number: *found.Number, is: diskapi.MustBe{Device: found.Path, Serial: found.Serial, Page83: found.Page83}}, nil
}

func (l *library) rescan(ctx context.Context) error {
	return errOf(l.disks.Rescan(ctx, &disk.RescanRequest{}))
}

func (l *library) diskSize(ctx context.Context, number uint32) (int64, error) {
	response, err := responseOf(l.disks.GetDiskStats(ctx, &disk.GetDiskStatsRequest{DiskNumber: number}))
	return response.TotalBytes, err
}

func (l *library) partition(ctx context.Context, d foundDisk) error {
	return errOf(l.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: d.number, MustBe: d.is}))
}

func (l *library) setOnline(ctx context.Context, d foundDisk, online bool) error {
	return errOf(l.disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: d.number, IsOnline: online, MustBe: d.is}))
}

func (l *library) onlineReadOnly(ctx context.Context, d foundDisk) error {
	return errOf(l.disks.OnlineDiskReadOnly(ctx, &disk.OnlineDiskReadOnlyRequest{DiskNumber: d.number, MustBe: d.is}))
}

func (l *library) isReadOnly(ctx context.Context, d foundDisk) (bool, error) {
	response, err := responseOf(l.disks.GetDiskReadOnly(ctx, &disk.GetDiskReadOnlyRequest{DiskNumber: d.number, MustBe: d.is}))
	return response.IsReadOnly, err
}

func (l *library) setReadOnly(ctx context.Context, d foundDisk, readOnly bool) error {
	return errOf(l.disks.SetDiskReadOnly(ctx, &disk.SetDiskReadOnlyRequest{DiskNumber: d.number, IsReadOnly: readOnly, MustBe: d.is}))
}

func (l *library) volumes(ctx context.Context, number uint32) ([]string, error) {
	response, err := responseOf(l.vols.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: number}))
	return response.VolumeIDs, err
}

func (l *library) diskOf(ctx context.Context, id string) (uint32, error) {
	response, err := responseOf(l.vols.GetDiskNumberFromVolumeID(ctx, &volume.GetDiskNumberFromVolumeIDRequest{VolumeID: id}))
	return response.DiskNumber, err
}

func (l *library) isFormatted(ctx context.Context, id string) (bool, error) {
	response, err := responseOf(l.vols.IsVolumeFormatted(ctx, &volume.IsVolumeFormattedRequest{VolumeID: id}))
	return response.Formatted, err
}

func (l *library) health(ctx context.Context, id string) (volumeapi.Health, error) {
	return l.vols.Health(ctx, id)
}

func (l *library) format(ctx context.Context, id, fsType string, options FormatOptions) error {
	return errOf(l.vols.FormatVolume(ctx, &volume.FormatVolumeRequest{
		VolumeID: id, FileSystem: fsType, AllocationUnitSize: options.AllocationUnitSize, Label: options.Label, RootAccess: options.RootAccess,
	}))
}

func (l *library) mount(ctx context.Context, id, path string) error {
	return errOf(l.vols.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: id, TargetPath: path}))
}

func (l *library) unmount(ctx context.Context, id, path string) error {
	return errOf(l.vols.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeID: id, TargetPath: path}))
}

func (l *library) mountedAt(ctx context.Context, path string) (string, error) {
	response, err := responseOf(l.vols.GetVolumeIDFromTargetPath(ctx, &volume.GetVolumeIDFromTargetPathRequest{TargetPath: path}))
	return response.VolumeID, err
}

func (l *library) flush(ctx context.Context, id, path string) (string, error) {
	response, err := responseOf(l.vols.WriteVolumeCache(ctx, &volume.WriteVolumeCacheRequest{VolumeID: id, TargetPath: path}))
	return response.Loss, err
}

func (l *library) grow(ctx context.Context, id string) error {
	return errOf(l.vols.ResizeVolume(ctx, &volume.ResizeVolumeRequest{VolumeID: id})) // no size is all of it
}

func (l *library) volumeSpace(ctx context.Context, id string) (Usage, error) {
	response, err := responseOf(l.vols.GetVolumeStats(ctx, &volume.GetVolumeStatsRequest{VolumeID: id}))
	return Usage{TotalBytes: response.TotalBytes, UsedBytes: response.UsedBytes, AvailableBytes: response.TotalBytes - response.UsedBytes}, err
}

func (l *library) pathSpace(ctx context.Context, path string) (Usage, error) {
	response, err := responseOf(l.files.GetPathStats(ctx, &filesystem.GetPathStatsRequest{Path: path}))
	return Usage{TotalBytes: response.TotalBytes, UsedBytes: response.UsedBytes, AvailableBytes: response.AvailableBytes}, err
}

func (l *library) exists(ctx context.Context, path string) (bool, error) {
	response, err := responseOf(l.files.PathExists(ctx, &filesystem.PathExistsRequest{Path: path}))
	return response.Exists, err
}

func (l *library) isLiveLink(ctx context.Context, path string) (bool, error) {
	response, err := responseOf(l.files.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: path}))
	return response.IsSymlink, err
}

func (l *library) list(ctx context.Context, dir string) ([]fsapi.DirectoryEntry, bool, error) {
	response, err := responseOf(l.files.ListDirectory(ctx, &filesystem.ListDirectoryRequest{Path: dir}))
	return response.Entries, !response.Truncated, err
}

func (l *library) makeDir(ctx context.Context, path string) error {
	return errOf(l.files.Mkdir(ctx, &filesystem.MkdirRequest{Path: path}))
}

func (l *library) link(ctx context.Context, path, target string) error {
	return errOf(l.files.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: target, TargetPath: path}))
}

func (l *library) remove(ctx context.Context, path string) error {
	return errOf(l.files.Rmdir(ctx, &filesystem.RmdirRequest{Path: path}))
}

func (l *library) mapShare(ctx context.Context, share SMB, path string) error {
	return errOf(l.shares.NewSMBGlobalMapping(ctx, &smb.NewSMBGlobalMappingRequest{
		RemotePath: share.Remote, LocalPath: path, Username: share.Username, Password: share.Password,
		Privacy: smb.Privacy(share.Privacy), RefuseOtherUser: share.RefuseOtherUser, // numbered alike
	}))
}

func (l *library) unmapShare(ctx context.Context, remote, except string) error {
	return errOf(l.shares.RemoveSMBGlobalMapping(ctx, &smb.RemoveSMBGlobalMappingRequest{RemotePath: remote, ExceptLink: except}))
}

func (l *library) sessions(ctx context.Context, name string) ([]nodeapi.Session, error) {
	return l.machine.SessionsOf(ctx, name)
}

func (l *library) addPortal(ctx context.Context, at portal) error {
	return errOf(l.targets.AddTargetPortal(ctx, &iscsi.AddTargetPortalRequest{TargetPortal: &iscsi.TargetPortal{TargetAddress: at.address, TargetPort: at.port}}))
}

func (l *library) logIn(ctx context.Context, at portal, target string, chap CHAP) error {
	return errOf(l.targets.ConnectTarget(ctx, &iscsi.ConnectTargetRequest{
		TargetPortal: &iscsi.TargetPortal{TargetAddress: at.address, TargetPort: at.port}, IQN: target,
		AuthType: iscsi.AuthenticationType(chap.kind()), ChapUsername: chap.Username, ChapSecret: chap.Secret,
	}))
}

func (l *library) logOut(ctx context.Context, target string) error {
	return errOf(l.targets.DisconnectTarget(ctx, &iscsi.DisconnectTargetRequest{TargetPortal: &iscsi.TargetPortal{TargetAddress: anyPortal}, IQN: target}))
}

func (l *library) setMutualSecret(ctx context.Context, secret string) error {
	return errOf(l.targets.SetMutualChapSecret(ctx, &iscsi.SetMutualChapSecretRequest{MutualChapSecret: secret}))
}

func (l *library) describe(ctx context.Context, parts ...nodeapi.Part) (*nodeapi.Description, error) {
	return l.machine.Describe(ctx, parts...)
}

func (l *library) describeVolumes(ctx context.Context, ids []string) (*nodeapi.Description, error) {
	volumes, err := l.machine.DescribeVolumes(ctx, ids...)
	return &nodeapi.Description{Volumes: volumes}, err
}

func (l *library) close() error { return nil }
