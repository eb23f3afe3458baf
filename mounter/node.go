package mounter

import (
	"context"
	"errors"
	"io/fs"
	"reflect"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter/remote"
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
func thisMachine() *Hosts {
	return &Hosts{Disk: diskapi.New(), Volume: volumeapi.New(), Filesystem: fsapi.New(), SMB: smbapi.New(), ISCSI: iscsiapi.New(), Node: nodeapi.New}
}

// node is the library, or the daemon, with the questions of the verbs. Paths are those that Path returns, volumes are
// named by id, \\?\Volume{GUID}\. Every method can be repeated.
type node struct {
	machine nodeapi.Interface
	disks   disk.Extended
	vols    volume.Extended
	files   filesystem.Extended
	shares  smb.Interface
	targets iscsi.Interface
	close   func() error
}

func newLibrary(s *settings) (*node, error) {
	hosts := s.hosts
	if hosts == nil {
		hosts = thisMachine()
	}
	disks, err := disk.New(hosts.Disk)
	if err != nil {
		return nil, err
	}
	targets, err := iscsi.New(hosts.ISCSI)
	if err != nil {
		return nil, err
	}
	vols, err := volume.New(hosts.Volume, volume.WorkingDirs(s.workingDirs...))
	if err != nil {
		return nil, err
	}
	var shares *smb.SMB
	linksGone := filesystem.OnRemove(func(ctx context.Context, path string) { shares.LinksGone(ctx, path) })
	files, err := filesystem.New(hosts.Filesystem, filesystem.WorkingDirs(s.workingDirs...), linksGone)
	if err != nil {
		return nil, err
	}
	if shares, err = smb.New(hosts.SMB, files, smb.WorkingDirs(s.workingDirs...)); err != nil {
		return nil, err
	}
	machine, err := hosts.Node(nodeapi.WorkingDirs(s.workingDirs...), nodeapi.SMBHost(hosts.SMB))
	return &node{machine, disks, vols, files, shares, targets, func() error { return nil }}, err
}

func newDaemon(ctx context.Context, s *settings) (*node, error) {
	d, err := remote.New(ctx, s.remote...)
	if err != nil {
		return nil, err
	}
	return &node{d.Node(), d.Disk(), d.Volume(), d.Filesystem(), d.SMB(), d.ISCSI(), d.Close}, nil
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

// foundDisk is a disk that was found: its number, and what it must be when it is changed. Windows gives the number of a
// disk that has left to the next one, within seconds.
type foundDisk struct {
	number uint32
	mustBe diskapi.MustBe
	keys   nodeapi.Query // by which a disk was found that has no name: another daemon than ours does not say more
}

// source is the disk by what it is, rather than by where it was found: after a restart another one can be there.
func (d foundDisk) source(keys Source) Source {
	named := Disk{Path: d.mustBe.Device, Serial: d.mustBe.Serial, Page83: d.mustBe.Page83}
	if named == (Disk{}) {
		return keys
	}
	return named
}

// isAnother reports whether an error can mean that another disk has the number now, or none.
func isAnother(err error) bool {
	class := failure.ClassOf(err)
	return class == failure.Busy || class == failure.NotFound
}

// findDisk returns the one disk that has the keys.
func (n *node) findDisk(ctx context.Context, query nodeapi.Query) (foundDisk, error) {
	found, err := n.machine.FindDisk(ctx, query)
	if err != nil {
		return foundDisk{}, err
	}
	disk := foundDisk{number: *found.Number, mustBe: diskapi.MustBe{Device: found.Path, Serial: found.Serial, Page83: found.Page83}}
	if disk.mustBe == (diskapi.MustBe{}) {
		disk.keys = query
	}
	return disk, nil
}

// confirm fails if the number of a disk that has no name was given to another one. What happens between this and a change is
// not seen.
func (n *node) confirm(ctx context.Context, d foundDisk) error {
	if d.mustBe != (diskapi.MustBe{}) || d.keys == (nodeapi.Query{}) {
		return nil // the change itself is refused
	}
	query := d.keys
	query.Number = &d.number
	_, err := n.machine.FindDisk(ctx, query)
	if errors.Is(err, fs.ErrNotExist) {
		return newError(failure.Busy, "look at", diskName(d.number), "another disk has the number now; find the disk again by its ids")
	}
	return err
}

// rescan makes Windows look for disks that were attached or have grown.
func (n *node) rescan(ctx context.Context) error {
	return errOf(n.disks.Rescan(ctx, &disk.RescanRequest{}))
}

func (n *node) diskSize(ctx context.Context, number uint32) (int64, error) {
	response, err := responseOf(n.disks.GetDiskStats(ctx, &disk.GetDiskStatsRequest{DiskNumber: number}))
	return response.TotalBytes, err
}

// partition gives a blank disk one partition, and waits for its volume.
// It and those below fail, and change nothing, if the disk is another one.
func (n *node) partition(ctx context.Context, d foundDisk) error {
	if err := n.confirm(ctx, d); err != nil {
		return err
	}
	return errOf(n.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: d.number, MustBe: d.mustBe}))
}

func (n *node) setOnline(ctx context.Context, d foundDisk, online bool) error {
	if err := n.confirm(ctx, d); err != nil {
		return err
	}
	return errOf(n.disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: d.number, IsOnline: online, MustBe: d.mustBe}))
}

// onlineReadOnly brings a disk online that is never online and writable meanwhile.
func (n *node) onlineReadOnly(ctx context.Context, d foundDisk) error {
	if err := n.confirm(ctx, d); err != nil {
		return err
	}
	return errOf(n.disks.OnlineDiskReadOnly(ctx, &disk.OnlineDiskReadOnlyRequest{DiskNumber: d.number, MustBe: d.mustBe}))
}

func (n *node) isReadOnly(ctx context.Context, d foundDisk) (bool, error) {
	if err := n.confirm(ctx, d); err != nil {
		return false, err
	}
	response, err := responseOf(n.disks.GetDiskReadOnly(ctx, &disk.GetDiskReadOnlyRequest{DiskNumber: d.number, MustBe: d.mustBe}))
	return response.IsReadOnly, err
}

func (n *node) setReadOnly(ctx context.Context, d foundDisk, readOnly bool) error {
	if err := n.confirm(ctx, d); err != nil {
		return err
	}
	return errOf(n.disks.SetDiskReadOnly(ctx, &disk.SetDiskReadOnlyRequest{DiskNumber: d.number, IsReadOnly: readOnly, MustBe: d.mustBe}))
}

func (n *node) volumes(ctx context.Context, number uint32) ([]string, error) {
	response, err := responseOf(n.vols.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: number}))
	return response.VolumeIDs, err
}

func (n *node) diskOf(ctx context.Context, id string) (uint32, error) {
	response, err := responseOf(n.vols.GetDiskNumberFromVolumeID(ctx, &volume.GetDiskNumberFromVolumeIDRequest{VolumeID: id}))
	return response.DiskNumber, err
}

func (n *node) isFormatted(ctx context.Context, id string) (bool, error) {
	response, err := responseOf(n.vols.IsVolumeFormatted(ctx, &volume.IsVolumeFormattedRequest{VolumeID: id}))
	return response.Formatted, err
}

// format makes a file system of a type, which can be empty.
func (n *node) format(ctx context.Context, id, fsType string, options FormatOptions) error {
	return errOf(n.vols.FormatVolume(ctx, &volume.FormatVolumeRequest{
		VolumeID: id, FileSystem: fsType, AllocationUnitSize: options.AllocationUnitSize, Label: options.Label, RootAccess: options.RootAccess,
	}))
}

func (n *node) mount(ctx context.Context, id, path string) error {
	return errOf(n.vols.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: id, TargetPath: path}))
}

func (n *node) unmount(ctx context.Context, id, path string) error {
	return errOf(n.vols.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeID: id, TargetPath: path}))
}

// mountedAt returns the volume at a path, or at the end of a link there, even if it does not answer.
func (n *node) mountedAt(ctx context.Context, path string) (string, error) {
	response, err := responseOf(n.vols.GetVolumeIDFromTargetPath(ctx, &volume.GetVolumeIDFromTargetPathRequest{TargetPath: path}))
	return response.VolumeID, err
}

// flush writes what is cached. With the path at which the volume is unmounted next it fails once if the disk
// fails; then loss says what may be lost.
func (n *node) flush(ctx context.Context, id, path string) (string, error) {
	response, err := responseOf(n.vols.WriteVolumeCache(ctx, &volume.WriteVolumeCacheRequest{VolumeID: id, TargetPath: path}))
	return response.Loss, err
}

// grow makes a volume as large as its disk has room for.
func (n *node) grow(ctx context.Context, id string) error {
	return errOf(n.vols.ResizeVolume(ctx, &volume.ResizeVolumeRequest{VolumeID: id})) // no size is all of it
}

func (n *node) volumeSpace(ctx context.Context, id string) (Usage, error) {
	response, err := responseOf(n.vols.GetVolumeStats(ctx, &volume.GetVolumeStatsRequest{VolumeID: id}))
	return Usage{TotalBytes: response.TotalBytes, UsedBytes: response.UsedBytes, AvailableBytes: response.TotalBytes - response.UsedBytes}, err
}

// pathSpace measures the share that a path leads to.
func (n *node) pathSpace(ctx context.Context, path string) (Usage, error) {
	response, err := responseOf(n.files.GetPathStats(ctx, &filesystem.GetPathStatsRequest{Path: path}))
	return Usage{TotalBytes: response.TotalBytes, UsedBytes: response.UsedBytes, AvailableBytes: response.AvailableBytes}, err
}

func (n *node) exists(ctx context.Context, path string) (bool, error) {
	response, err := responseOf(n.files.PathExists(ctx, &filesystem.PathExistsRequest{Path: path}))
	return response.Exists, err
}

// isLiveLink reports whether a path is a link or mounted folder whose target exists.
func (n *node) isLiveLink(ctx context.Context, path string) (bool, error) {
	response, err := responseOf(n.files.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: path}))
	return response.IsSymlink, err
}

// list returns what is in a directory, and whether that is all.
func (n *node) list(ctx context.Context, dir string) ([]fsapi.DirectoryEntry, bool, error) {
	response, err := responseOf(n.files.ListDirectory(ctx, &filesystem.ListDirectoryRequest{Path: dir}))
	return response.Entries, !response.Truncated, err
}

// record returns the record of a path, or what is wrong with it.
func (n *node) record(ctx context.Context, path string) (text, problem string, err error) {
	if !isBelowPlugins(path) {
		return "", "", nil
	}
	response, err := responseOf(n.files.GetRecord(ctx, &filesystem.GetRecordRequest{Path: path}))
	return response.Record, response.Problem, err
}

// setRecord keeps a record, or removes it if it is empty.
func (n *node) setRecord(ctx context.Context, path, text string) error {
	if !isBelowPlugins(path) {
		return nil
	}
	return errOf(n.files.SetRecord(ctx, &filesystem.SetRecordRequest{Path: path, Record: text}))
}

func (n *node) makeDir(ctx context.Context, path string) error {
	return errOf(n.files.Mkdir(ctx, &filesystem.MkdirRequest{Path: path}))
}

func (n *node) link(ctx context.Context, path, target string) error {
	return errOf(n.files.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: target, TargetPath: path}))
}

// remove removes a link, a mounted folder or an empty folder, and nothing behind it.
func (n *node) remove(ctx context.Context, path string) error {
	return errOf(n.files.Rmdir(ctx, &filesystem.RmdirRequest{Path: path}))
}

func (n *node) mapShare(ctx context.Context, share SMB, path string) error {
	return errOf(n.shares.NewSMBGlobalMapping(ctx, &smb.NewSMBGlobalMappingRequest{
		RemotePath: share.Remote, LocalPath: path, Username: share.Username, Password: share.Password,
		Privacy: smb.Privacy(share.Privacy), RefuseOtherUser: share.RefuseOtherUser, // numbered alike
	}))
}

// unmapShare disconnects a share unless a link uses it that is not at the path except.
func (n *node) unmapShare(ctx context.Context, remote, except string) error {
	return errOf(n.shares.RemoveSMBGlobalMapping(ctx, &smb.RemoveSMBGlobalMappingRequest{RemotePath: remote, ExceptLink: except}))
}

// addPortal makes Windows know the targets of a portal.
func (n *node) addPortal(ctx context.Context, at portal) error {
	return errOf(n.targets.AddTargetPortal(ctx, &iscsi.AddTargetPortalRequest{TargetPortal: &iscsi.TargetPortal{TargetAddress: at.address, TargetPort: at.port}}))
}

// logIn does nothing if the target has a session with a connection, unless it is another path to its disks.
func (n *node) logIn(ctx context.Context, at portal, target string, chap CHAP) error {
	return errOf(n.targets.ConnectTarget(ctx, &iscsi.ConnectTargetRequest{
		TargetPortal: &iscsi.TargetPortal{TargetAddress: at.address, TargetPort: at.port}, IQN: target,
		AuthType: iscsi.AuthenticationType(chap.kind()), ChapUsername: chap.Username, ChapSecret: chap.Secret,
	}))
}

func (n *node) logOut(ctx context.Context, target string) error {
	return errOf(n.targets.DisconnectTarget(ctx, &iscsi.DisconnectTargetRequest{TargetPortal: &iscsi.TargetPortal{TargetAddress: anyPortal}, IQN: target}))
}

func (n *node) setMutualSecret(ctx context.Context, secret string) error {
	return errOf(n.targets.SetMutualChapSecret(ctx, &iscsi.SetMutualChapSecretRequest{MutualChapSecret: secret}))
}
