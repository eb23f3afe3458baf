package main

import (
	"context"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/client"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	diskclient "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	filesystemclient "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	iscsiclient "github.com/kubernetes-csi/csi-proxy/client/groups/iscsi/v1alpha2"
	smbclient "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1"
	volumeclient "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1"
)

// A driver stages a volume once on a node, below plugins, and publishes it to each pod as
// a link, below pods.
const (
	kubelet = `C:\var\lib\kubelet`
	staged  = kubelet + `\plugins\demo\globalmount`
	pod     = kubelet + `\pods\web`
	data    = pod + `\data`

	// blank is an empty disk of the simulator's default node, which grows it after the
	// format as if a user had asked for more space.
	blank  = 3
	system = 0
)

// clients are the clients of the groups that drivers need.
type clients struct {
	disk   *diskclient.Client
	volume *volumeclient.Client
	files  *filesystemclient.Client
	iscsi  *iscsiclient.Client
	smb    *smbclient.Client
}

// connect waits until the node answers.
func connect(ctx context.Context) (c clients, err error) {
	if c.disk, err = diskclient.New(ctx, client.WithWait()); err != nil {
		return c, err
	}
	if c.volume, err = volumeclient.New(ctx, client.WithWait()); err != nil {
		return c, err
	}
	if c.files, err = filesystemclient.New(ctx, client.WithWait()); err != nil {
		return c, err
	}
	if c.iscsi, err = iscsiclient.New(ctx, client.WithWait()); err != nil {
		return c, err
	}
	c.smb, err = smbclient.New(ctx, client.WithWait())
	return c, err
}

func (c clients) close() {
	c.disk.Close()
	c.volume.Close()
	c.files.Close()
	c.iscsi.Close()
	c.smb.Close()
}

// step is one call and the answer it wants: "done", "yes", "no", a size or number, or a gRPC
// code.
type step struct {
	api, call, want string
	do              func() (answer string, err error)
}

func done[Response any](_ Response, err error) (string, error) { return "done", err }

func yesOrNo(yes bool, err error) (string, error) {
	if yes {
		return "yes", err
	}
	return "no", err
}

func gibibytes(bytes int64, err error) (string, error) {
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)), err
}

func (c clients) countDisks(ctx context.Context) func() (string, error) {
	return func() (string, error) {
		r, err := c.disk.ListDiskIDs(ctx, &diskv1.ListDiskIDsRequest{})
		return fmt.Sprintf("%d disks", len(r.GetDiskIDs())), err
	}
}

// diskSteps are the life of a volume on a disk, in the order of a driver's calls. The kubelet
// retries calls, so some steps run twice: repeating finished work succeeds.
func (c clients) diskSteps(ctx context.Context) []step {
	var id string // of the volume, once it exists
	partition := func(disk uint32) func() (string, error) {
		return func() (string, error) {
			return done(c.disk.PartitionDisk(ctx, &diskv1.PartitionDiskRequest{DiskNumber: disk}))
		}
	}
	setState := func(disk uint32, online bool) func() (string, error) {
		return func() (string, error) {
			return done(c.disk.SetDiskState(ctx, &diskv1.SetDiskStateRequest{DiskNumber: disk, IsOnline: online}))
		}
	}
	diskSize := func() (string, error) {
		r, err := c.disk.GetDiskStats(ctx, &diskv1.GetDiskStatsRequest{DiskNumber: blank})
		return gibibytes(r.GetTotalBytes(), err)
	}
	volumeSize := func() (string, error) {
		r, err := c.volume.GetVolumeStats(ctx, &volumev1.GetVolumeStatsRequest{VolumeId: id})
		return gibibytes(r.GetTotalBytes(), err)
	}
	formatted := func() (string, error) {
		r, err := c.volume.IsVolumeFormatted(ctx, &volumev1.IsVolumeFormattedRequest{VolumeId: id})
		return yesOrNo(r.GetFormatted(), err)
	}
	format := func() (string, error) {
		return done(c.volume.FormatVolume(ctx, &volumev1.FormatVolumeRequest{VolumeId: id}))
	}
	mount := func() (string, error) {
		return done(c.volume.MountVolume(ctx, &volumev1.MountVolumeRequest{VolumeId: id, TargetPath: staged}))
	}
	unmount := func() (string, error) {
		return done(c.volume.UnmountVolume(ctx, &volumev1.UnmountVolumeRequest{VolumeId: id, TargetPath: staged}))
	}
	leadsToVolume := func(path string) func() (string, error) {
		return func() (string, error) {
			r, err := c.volume.GetVolumeIDFromTargetPath(ctx, &volumev1.GetVolumeIDFromTargetPathRequest{TargetPath: path})
			return yesOrNo(r.GetVolumeId() == id, err)
		}
	}
	mkdir := func(path string) func() (string, error) {
		return func() (string, error) {
			return done(c.files.Mkdir(ctx, &filesystemv1.MkdirRequest{Path: path}))
		}
	}
	exists := func(path string) func() (string, error) {
		return func() (string, error) {
			r, err := c.files.PathExists(ctx, &filesystemv1.PathExistsRequest{Path: path})
			return yesOrNo(r.GetExists(), err)
		}
	}

	return []step{
		{"disk", "ListDiskIDs", "4 disks", c.countDisks(ctx)},
		{"disk", "GetDiskStats of disk 3 (blank)", "20.0 GiB", diskSize},
		{"disk", "PartitionDisk 3", "done", partition(blank)},
		{"disk", "PartitionDisk 3 again", "done", partition(blank)},
		{"disk", "SetDiskState of disk 3: online", "done", setState(blank, true)},
		{"volume", "ListVolumesOnDisk 3", "1 volume", func() (string, error) {
			r, err := c.volume.ListVolumesOnDisk(ctx, &volumev1.ListVolumesOnDiskRequest{DiskNumber: blank})
			if len(r.GetVolumeIds()) != 1 {
				return fmt.Sprintf("%d volumes", len(r.GetVolumeIds())), err
			}
			id = r.GetVolumeIds()[0]
			return "1 volume", err
		}},
		{"volume", "IsVolumeFormatted", "no", formatted},
		{"volume", "FormatVolume", "done", format},
		{"volume", "FormatVolume again (no change)", "done", format},
		{"volume", "IsVolumeFormatted", "yes", formatted},

		{"filesystem", `Mkdir plugins\demo`, "done", mkdir(kubelet + `\plugins\demo`)},
		{"volume", `MountVolume at plugins\demo\globalmount`, "done", mount},
		{"volume", `MountVolume at plugins\demo\globalmount again`, "done", mount},
		{"volume", `GetVolumeIDFromTargetPath: this volume?`, "yes", leadsToVolume(staged)},
		{"filesystem", `Mkdir pods\web`, "done", mkdir(pod)},
		{"filesystem", `CreateSymlink pods\web\data to the mount`, "done", func() (string, error) {
			return done(c.files.CreateSymlink(ctx, &filesystemv1.CreateSymlinkRequest{SourcePath: staged, TargetPath: data}))
		}},
		{"filesystem", `IsSymlink pods\web\data`, "yes", func() (string, error) {
			r, err := c.files.IsSymlink(ctx, &filesystemv1.IsSymlinkRequest{Path: data})
			return yesOrNo(r.GetIsSymlink(), err)
		}},
		{"volume", `GetVolumeIDFromTargetPath of the link`, "yes", leadsToVolume(data)},
		{"volume", "WriteVolumeCache", "done", func() (string, error) {
			return done(c.volume.WriteVolumeCache(ctx, &volumev1.WriteVolumeCacheRequest{VolumeId: id}))
		}},

		// The disk has grown meanwhile; the volume grows while in use.
		{"volume", "GetVolumeStats", "20.0 GiB", volumeSize},
		{"disk", "Rescan", "done", func() (string, error) {
			return done(c.disk.Rescan(ctx, &diskv1.RescanRequest{}))
		}},
		{"disk", "GetDiskStats of disk 3", "24.0 GiB", diskSize},
		{"volume", "ResizeVolume to the maximum", "done", func() (string, error) {
			return done(c.volume.ResizeVolume(ctx, &volumev1.ResizeVolumeRequest{VolumeId: id}))
		}},
		{"volume", "GetVolumeStats", "24.0 GiB", volumeSize},

		// Anybody who can create a pod can shape requests, so each is checked.
		{"filesystem", `Mkdir C:\Windows\System32\x`, "PermissionDenied", mkdir(`C:\Windows\System32\x`)},
		{"filesystem", `Mkdir pods\..\..\x`, "InvalidArgument", mkdir(kubelet + `\pods\..\..\x`)},
		{"disk", "PartitionDisk 0 (system disk)", "PermissionDenied", partition(system)},
		{"disk", "SetDiskState of disk 0: offline", "PermissionDenied", setState(system, false)},

		{"filesystem", `Rmdir pods\web\data, with force`, "done", func() (string, error) {
			return done(c.files.Rmdir(ctx, &filesystemv1.RmdirRequest{Path: data, Force: true}))
		}},
		{"filesystem", `PathExists pods\web\data`, "no", exists(data)},
		{"volume", "UnmountVolume", "done", unmount},
		{"volume", "UnmountVolume again", "done", unmount},
		{"filesystem", `PathExists plugins\demo\globalmount`, "yes", exists(staged)},
		{"disk", "SetDiskState of disk 3: offline", "done", setState(blank, false)},
		{"disk", "GetDiskState of disk 3: online?", "no", func() (string, error) {
			r, err := c.disk.GetDiskState(ctx, &diskv1.GetDiskStateRequest{DiskNumber: blank})
			return yesOrNo(r.GetIsOnline(), err)
		}},
	}
}
