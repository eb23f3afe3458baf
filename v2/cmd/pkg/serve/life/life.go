// Package life takes volumes through the life that a CSI driver gives them, with the clients of version v1: on a disk,
// on the disk of an iSCSI target, on an SMB share. The demo shows it, and tests take it on nodes of all kinds.
//
// Each step checks its result, and can be repeated: the kubelet repeats calls, too.
package life

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/kubernetes-csi/csi-proxy/client"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	diskclient "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	filesystemclient "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	iscsiclient "github.com/kubernetes-csi/csi-proxy/client/groups/iscsi/v1alpha2"
	smbclient "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1"
	volumeclient "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
)

// Where a volume is staged and published. Plugins and pods must exist.
const (
	Staged    = `C:\var\lib\kubelet\plugins\life`
	pod       = `C:\var\lib\kubelet\pods\life`
	Published = pod + `\volume`
)

// reserved is what tables and reserved partitions may take of a disk.
const reserved = 64 << 20

// Clients are the clients of a node.
type Clients struct {
	Disk   diskv1.DiskClient
	Volume volumev1.VolumeClient
	Files  filesystemv1.FilesystemClient
	ISCSI  iscsiv1alpha2.IscsiClient
	SMB    smbv1.SmbClient
}

// Dial waits for a node that serves on the sockets in a directory, or where clients look if dir is empty.
func Dial(ctx context.Context, dir string) (_ Clients, closeAll func(), err error) {
	var open []io.Closer
	closeAll = func() {
		for _, c := range open {
			_ = c.Close() // it never fails
		}
	}
	options := func(group string, version apiversion.Version) []client.Option {
		if dir == "" {
			return []client.Option{client.WithWait()}
		}
		return []client.Option{client.WithWait(), client.WithPipePath(filepath.Join(dir, fmt.Sprintf("csi-proxy-%s-%s.sock", group, version)))}
	}
	disks, diskErr := diskclient.New(ctx, options(diskclient.GroupName, diskclient.Version)...)
	volumes, volumeErr := volumeclient.New(ctx, options(volumeclient.GroupName, volumeclient.Version)...)
	files, filesErr := filesystemclient.New(ctx, options(filesystemclient.GroupName, filesystemclient.Version)...)
	targets, iscsiErr := iscsiclient.New(ctx, options(iscsiclient.GroupName, iscsiclient.Version)...)
	shares, smbErr := smbclient.New(ctx, options(smbclient.GroupName, smbclient.Version)...)
	if err := errors.Join(diskErr, volumeErr, filesErr, iscsiErr, smbErr); err != nil {
		return Clients{}, closeAll, err
	}
	open = []io.Closer{disks, volumes, files, targets, shares}
	return Clients{disks, volumes, files, targets, shares}, closeAll, nil
}

// Life is that of a volume. A pod can use it after Begin, and has ended before End.
type Life struct{ Begin, End []Step }

// Step is a call, or a few that belong together. Do returns what came of it.
type Step struct {
	Name string
	Do   func(context.Context, Clients) (result string, err error)
}

// done is the result of a call that has none.
func done[Response any](_ Response, err error) (string, error) { return "done", err }

// OnDisk is the life of a volume on a disk.
func OnDisk(number uint32) Life {
	return (&volume{disk: number}).life()
}

type volume struct {
	disk uint32
	id   string
}

func (v *volume) life() Life {
	return Life{
		Begin: slices.Concat([]Step{
			{"list the disks", v.list},
			{"bring the disk online", v.setOnline(true)},
			{"partition the disk", func(ctx context.Context, c Clients) (string, error) {
				return done(c.Disk.PartitionDisk(ctx, &diskv1.PartitionDiskRequest{DiskNumber: v.disk}))
			}},
			{"find its volume", v.find},
			{"format the volume", v.format},
			{"mount the volume", func(ctx context.Context, c Clients) (string, error) {
				return done(c.Volume.MountVolume(ctx, &volumev1.MountVolumeRequest{VolumeId: v.id, TargetPath: Staged}))
			}},
			{"find the volume by its path", v.findByPath},
		}, publish),
		End: slices.Concat([]Step{
			{"write its cache", func(ctx context.Context, c Clients) (string, error) {
				return done(c.Volume.WriteVolumeCache(ctx, &volumev1.WriteVolumeCacheRequest{VolumeId: v.id}))
			}},
			{"rescan the disks", func(ctx context.Context, c Clients) (string, error) {
				return done(c.Disk.Rescan(ctx, &diskv1.RescanRequest{}))
			}},
			{"grow the volume", func(ctx context.Context, c Clients) (string, error) {
				return done(c.Volume.ResizeVolume(ctx, &volumev1.ResizeVolumeRequest{VolumeId: v.id}))
			}},
			{"compare its size with the disk's", v.compareSizes},
			{"format it again, which keeps it", func(ctx context.Context, c Clients) (string, error) {
				return done(c.Volume.FormatVolume(ctx, &volumev1.FormatVolumeRequest{VolumeId: v.id}))
			}},
		}, unpublish, []Step{
			{"unmount the volume", func(ctx context.Context, c Clients) (string, error) {
				return done(c.Volume.UnmountVolume(ctx, &volumev1.UnmountVolumeRequest{VolumeId: v.id, TargetPath: Staged}))
			}},
			unstage,
			{"take the disk offline", v.setOnline(false)},
		}),
	}
}

func (v *volume) list(ctx context.Context, c Clients) (string, error) {
	r, err := c.Disk.ListDiskIDs(ctx, &diskv1.ListDiskIDsRequest{})
	if _, ok := r.GetDiskIDs()[v.disk]; err == nil && !ok {
		err = fmt.Errorf("disk %d is not one of them", v.disk)
	}
	return fmt.Sprintf("%d disks", len(r.GetDiskIDs())), err
}

func (v *volume) setOnline(online bool) func(context.Context, Clients) (string, error) {
	return func(ctx context.Context, c Clients) (string, error) {
		if _, err := c.Disk.SetDiskState(ctx, &diskv1.SetDiskStateRequest{DiskNumber: v.disk, IsOnline: online}); err != nil {
			return "", err
		}
		r, err := c.Disk.GetDiskState(ctx, &diskv1.GetDiskStateRequest{DiskNumber: v.disk})
		if err == nil && r.IsOnline != online {
			err = fmt.Errorf("it is online: %v", r.IsOnline)
		}
		return "done", err
	}
}

func (v *volume) find(ctx context.Context, c Clients) (string, error) {
	r, err := c.Volume.ListVolumesOnDisk(ctx, &volumev1.ListVolumesOnDiskRequest{DiskNumber: v.disk})
	if err == nil && len(r.VolumeIds) != 1 {
		err = fmt.Errorf("disk %d has the volumes %q, want one", v.disk, r.VolumeIds)
	}
	if err != nil {
		return "", err
	}
	v.id = r.VolumeIds[0]
	return "1 volume", nil
}

// format formats the volume unless it is formatted.
func (v *volume) format(ctx context.Context, c Clients) (string, error) {
	ask := func() (bool, error) {
		r, err := c.Volume.IsVolumeFormatted(ctx, &volumev1.IsVolumeFormattedRequest{VolumeId: v.id})
		return r.GetFormatted(), err
	}
	formatted, err := ask()
	if formatted || err != nil {
		return "was formatted", err
	}
	if _, err := c.Volume.FormatVolume(ctx, &volumev1.FormatVolumeRequest{VolumeId: v.id}); err != nil {
		return "", err
	}
	if formatted, err = ask(); err == nil && !formatted {
		err = errors.New("it is not formatted")
	}
	return "done", err
}

func (v *volume) findByPath(ctx context.Context, c Clients) (string, error) {
	r, err := c.Volume.GetVolumeIDFromTargetPath(ctx, &volumev1.GetVolumeIDFromTargetPathRequest{TargetPath: Staged})
	if err == nil && r.VolumeId != v.id {
		err = fmt.Errorf("%s leads to volume %s, want %s", Staged, r.VolumeId, v.id)
	}
	return "same volume", err
}

func (v *volume) compareSizes(ctx context.Context, c Clients) (string, error) {
	volume, err := c.Volume.GetVolumeStats(ctx, &volumev1.GetVolumeStatsRequest{VolumeId: v.id})
	if err != nil {
		return "", err
	}
	disk, err := c.Disk.GetDiskStats(ctx, &diskv1.GetDiskStatsRequest{DiskNumber: v.disk})
	if free := disk.GetTotalBytes() - volume.TotalBytes; err == nil && (free < 0 || free > reserved || volume.UsedBytes <= 0 || volume.UsedBytes > volume.TotalBytes) {
		err = fmt.Errorf("the volume has %d bytes, %d of them in use, the disk %d", volume.TotalBytes, volume.UsedBytes, disk.TotalBytes)
	}
	return printable.Size(volume.TotalBytes), err
}

var publish = []Step{
	{"create the pod's folder", func(ctx context.Context, c Clients) (string, error) {
		return done(c.Files.Mkdir(ctx, &filesystemv1.MkdirRequest{Path: pod}))
	}},
	{"link it to the volume", func(ctx context.Context, c Clients) (string, error) {
		return done(c.Files.CreateSymlink(ctx, &filesystemv1.CreateSymlinkRequest{SourcePath: Staged, TargetPath: Published}))
	}},
	{"look at the link", func(ctx context.Context, c Clients) (string, error) {
		r, err := c.Files.IsSymlink(ctx, &filesystemv1.IsSymlinkRequest{Path: Published})
		if err == nil && !r.IsSymlink {
			err = fmt.Errorf("%s is not a link", Published)
		}
		return "a link", err
	}},
}

var (
	unpublish = []Step{remove("remove the link", Published), remove("remove the pod's folder", pod)}
	unstage   = remove("remove its folder", Staged)
)

// remove removes a link or a folder, never what is behind it.
func remove(name, path string) Step {
	return Step{name, func(ctx context.Context, c Clients) (string, error) {
		if _, err := c.Files.Rmdir(ctx, &filesystemv1.RmdirRequest{Path: path, Force: true}); err != nil {
			return "", err
		}
		r, err := c.Files.PathExists(ctx, &filesystemv1.PathExistsRequest{Path: path})
		if err == nil && r.Exists {
			err = fmt.Errorf("%s is still there", path)
		}
		return "done", err
	}}
}

// OnTarget is the life of a volume on the first disk of an iSCSI target that requires CHAP.
func OnTarget(address, iqn, user, secret string) Life {
	v, portal := &volume{}, &iscsiv1alpha2.TargetPortal{TargetAddress: address}
	l := v.life()
	return Life{
		Begin: slices.Concat([]Step{
			{"add the portal", func(ctx context.Context, c Clients) (string, error) {
				return done(c.ISCSI.AddTargetPortal(ctx, &iscsiv1alpha2.AddTargetPortalRequest{TargetPortal: portal}))
			}},
			{"discover its targets", func(ctx context.Context, c Clients) (string, error) {
				r, err := c.ISCSI.DiscoverTargetPortal(ctx, &iscsiv1alpha2.DiscoverTargetPortalRequest{TargetPortal: portal})
				if err == nil && !slices.Contains(r.Iqns, iqn) {
					err = fmt.Errorf("%s is not one of %q", iqn, r.Iqns)
				}
				return fmt.Sprintf("%d targets", len(r.GetIqns())), err
			}},
			{"connect the target", func(ctx context.Context, c Clients) (string, error) {
				return done(c.ISCSI.ConnectTarget(ctx, &iscsiv1alpha2.ConnectTargetRequest{
					TargetPortal: portal, Iqn: iqn,
					AuthType: iscsiv1alpha2.AuthenticationType_ONE_WAY_CHAP, ChapUsername: user, ChapSecret: secret,
				}))
			}},
			{"find its disks", func(ctx context.Context, c Clients) (string, error) {
				r, err := c.ISCSI.GetTargetDisks(ctx, &iscsiv1alpha2.GetTargetDisksRequest{TargetPortal: portal, Iqn: iqn})
				if err == nil && len(r.DiskIDs) == 0 {
					err = errors.New("it has none")
				}
				if err != nil {
					return "", err
				}
				number, err := strconv.ParseUint(r.DiskIDs[0], 10, 32)
				v.disk = uint32(number)
				return fmt.Sprintf("%d disks", len(r.DiskIDs)), err
			}},
		}, l.Begin),
		End: slices.Concat(l.End, []Step{{"disconnect the target", func(ctx context.Context, c Clients) (string, error) {
			return done(c.ISCSI.DisconnectTarget(ctx, &iscsiv1alpha2.DisconnectTargetRequest{TargetPortal: portal, Iqn: iqn}))
		}}}),
	}
}

// OnShare is the life of a volume on an SMB share.
func OnShare(remote, user, password string) Life {
	mapping := func(ctx context.Context, c Clients) (string, error) {
		return done(c.SMB.NewSmbGlobalMapping(ctx, &smbv1.NewSmbGlobalMappingRequest{RemotePath: remote, LocalPath: Staged, Username: user, Password: password}))
	}
	return Life{
		Begin: slices.Concat([]Step{{"map the share", mapping}}, publish),
		End: slices.Concat([]Step{{"map the share again", mapping}}, unpublish, []Step{unstage, {"unmap the share", func(ctx context.Context, c Clients) (string, error) {
			return done(c.SMB.RemoveSmbGlobalMapping(ctx, &smbv1.RemoveSmbGlobalMappingRequest{RemotePath: remote}))
		}}}),
	}
}
