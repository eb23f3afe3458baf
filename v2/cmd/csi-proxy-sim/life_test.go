//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/client"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	kubelet   = `C:\var\lib\kubelet`
	staged    = kubelet + `\plugins\crash\globalmount`
	published = kubelet + `\pods\web\data`
	written   = "what the pod wrote"
)

// nodeClients are the clients of a node, as a driver has them.
type nodeClients struct {
	disk   diskv1.DiskClient
	volume volumev1.VolumeClient
	files  filesystemv1.FilesystemClient
	iscsi  iscsiv1alpha2.IscsiClient
	smb    smbv1.SmbClient
}

// dialNode makes clients that find the simulator on the sockets in a directory, whenever it is
// started.
func dialNode(ctx context.Context, dir string) (c nodeClients, closeAll func(), err error) {
	var conns []*grpc.ClientConn
	closeAll = func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
	dial := func(group, version string) *grpc.ClientConn {
		path := filepath.Join(dir, fmt.Sprintf("csi-proxy-%s-%s.sock", group, version))
		conn, dialErr := client.Connect(ctx, group, apiversion.NewVersionOrPanic(version), client.WithWait(), client.WithPipePath(path))
		if dialErr != nil {
			err = errors.Join(err, dialErr)
			return nil
		}
		conns = append(conns, conn)
		return conn
	}
	c = nodeClients{
		disk:   diskv1.NewDiskClient(dial("disk", "v1")),
		volume: volumev1.NewVolumeClient(dial("volume", "v1")),
		files:  filesystemv1.NewFilesystemClient(dial("filesystem", "v1")),
		iscsi:  iscsiv1alpha2.NewIscsiClient(dial("iscsi", "v1alpha2")),
		smb:    smbv1.NewSmbClient(dial("smb", "v1")),
	}
	return c, closeAll, err
}

// life is what a driver does with a volume: a first half until a pod writes to it, and a second
// one until it is put away. Each step may be taken again.
type life struct {
	first, second []step
	// pod is where the pod writes.
	pod string
	// format are the options of the simulator. With root access, the pod runs as ContainerUser.
	format volumeapi.FormatOptions
	// check looks at the node when all is over.
	check func(context.Context, *winsim.Node) error
}

// flags are the simulator's flags for the options of formats.
func (l life) flags() []string {
	if l.format == (volumeapi.FormatOptions{}) {
		return nil
	}
	return []string{
		fmt.Sprintf("-format-allocation-unit-size=%d", l.format.AllocationUnitSize),
		"-format-label=" + l.format.Label, "-format-root-access=" + l.format.RootAccess,
	}
}

// write is what the pod does.
func (l life) write(node *winsim.Node) error {
	if l.format.RootAccess != "" {
		return node.WriteFileAsUser(l.pod, written)
	}
	return node.WriteFile(l.pod, written)
}

// step is a call to the node.
type step struct {
	name string
	do   func(context.Context, nodeClients) error
}

func just[Response any](_ Response, err error) error { return err }

// onDisk is the life of a volume on a disk.
func onDisk() life {
	const number = 1
	var id string
	setState := func(online bool) func(context.Context, nodeClients) error {
		return func(ctx context.Context, c nodeClients) error {
			return just(c.disk.SetDiskState(ctx, &diskv1.SetDiskStateRequest{DiskNumber: number, IsOnline: online}))
		}
	}
	prepared := prepare(func() uint32 { return number }, &id, staged)
	return life{
		first: append(append([]step{
			{"ListDiskIDs", func(ctx context.Context, c nodeClients) error {
				return just(c.disk.ListDiskIDs(ctx, &diskv1.ListDiskIDsRequest{}))
			}},
			{"Rescan", rescan},
			{"SetDiskState", setState(true)},
		}, prepared...), publish()...),
		pod: published + `\file`,
		second: []step{
			{"GetVolumeStats", func(ctx context.Context, c nodeClients) error {
				return just(c.volume.GetVolumeStats(ctx, &volumev1.GetVolumeStatsRequest{VolumeId: id}))
			}},
			{"WriteVolumeCache", func(ctx context.Context, c nodeClients) error {
				return just(c.volume.WriteVolumeCache(ctx, &volumev1.WriteVolumeCacheRequest{VolumeId: id}))
			}},
			{"Rescan", rescan},
			{"ResizeVolume", func(ctx context.Context, c nodeClients) error {
				return just(c.volume.ResizeVolume(ctx, &volumev1.ResizeVolumeRequest{VolumeId: id}))
			}},
			{"FormatVolume again", func(ctx context.Context, c nodeClients) error {
				return just(c.volume.FormatVolume(ctx, &volumev1.FormatVolumeRequest{VolumeId: id}))
			}},
			rmdir(published),
			unmount(&id, staged),
			rmdir(staged),
			{"SetDiskState offline", setState(false)},
		},
		check: func(ctx context.Context, node *winsim.Node) error {
			if err := node.SetDiskAttributes(ctx, win.PhysicalDrive(number), win.DiskAttributes{}, win.DiskAttributes{Offline: true}); err != nil {
				return err
			}
			return checkDisk(ctx, node, number, 2*winsim.GiB)
		},
	}
}

// onDiskWithOptions is a volume that is formatted with all options, by a driver that asks before
// it formats.
func onDiskWithOptions() life {
	const number = 1
	var id string
	return life{
		format: volumeapi.FormatOptions{AllocationUnitSize: 64 << 10, Label: "crash", RootAccess: volumeapi.UsersModify},
		first: append([]step{
			{"SetDiskState", func(ctx context.Context, c nodeClients) error {
				return just(c.disk.SetDiskState(ctx, &diskv1.SetDiskStateRequest{DiskNumber: number, IsOnline: true}))
			}},
			{"PartitionDisk", func(ctx context.Context, c nodeClients) error {
				return just(c.disk.PartitionDisk(ctx, &diskv1.PartitionDiskRequest{DiskNumber: number}))
			}},
			{"stage", func(ctx context.Context, c nodeClients) error {
				return stage(ctx, c.volume, number, &id)
			}},
		}, publish()...),
		pod:    published + `\file`,
		second: []step{rmdir(published), unmount(&id, staged)},
		check: func(ctx context.Context, node *winsim.Node) error {
			info, err := node.DiskInfo(number)
			if err != nil {
				return err
			}
			if p := info.Partitions[len(info.Partitions)-1].Volume; p.Label != "crash" || p.ClusterSize != 64*winsim.KiB {
				return fmt.Errorf("the volume has label %q and clusters of %v", p.Label, p.ClusterSize)
			}
			return checkDisk(ctx, node, number, winsim.GiB)
		},
	}
}

// stage formats and mounts the only volume of a disk, if it is not formatted yet.
func stage(ctx context.Context, volumes volumev1.VolumeClient, number uint32, id *string) error {
	list, err := volumes.ListVolumesOnDisk(ctx, &volumev1.ListVolumesOnDiskRequest{DiskNumber: number})
	if err != nil {
		return err
	}
	*id = list.VolumeIds[0]
	is, err := volumes.IsVolumeFormatted(ctx, &volumev1.IsVolumeFormattedRequest{VolumeId: *id})
	if err != nil {
		return err
	}
	if !is.Formatted {
		if err := just(volumes.FormatVolume(ctx, &volumev1.FormatVolumeRequest{VolumeId: *id})); err != nil {
			return err
		}
	}
	return just(volumes.MountVolume(ctx, &volumev1.MountVolumeRequest{VolumeId: *id, TargetPath: staged}))
}

// onTarget is the life of a volume on the disk of an iSCSI target.
func onTarget() life {
	const iqn = "iqn.2025-01.com.example:guarded"
	portal := &iscsiv1alpha2.TargetPortal{TargetAddress: "10.0.0.10"}
	var id string
	var number uint32
	return life{
		first: append(append([]step{
			{"AddTargetPortal", func(ctx context.Context, c nodeClients) error {
				return just(c.iscsi.AddTargetPortal(ctx, &iscsiv1alpha2.AddTargetPortalRequest{TargetPortal: portal}))
			}},
			{"DiscoverTargetPortal", func(ctx context.Context, c nodeClients) error {
				return just(c.iscsi.DiscoverTargetPortal(ctx, &iscsiv1alpha2.DiscoverTargetPortalRequest{TargetPortal: portal}))
			}},
			{"ConnectTarget", func(ctx context.Context, c nodeClients) error {
				return just(c.iscsi.ConnectTarget(ctx, &iscsiv1alpha2.ConnectTargetRequest{
					TargetPortal: portal, Iqn: iqn,
					AuthType: iscsiv1alpha2.AuthenticationType_ONE_WAY_CHAP, ChapUsername: "winsim", ChapSecret: "winsim-secret-1",
				}))
			}},
			{"GetTargetDisks", func(ctx context.Context, c nodeClients) error {
				r, err := c.iscsi.GetTargetDisks(ctx, &iscsiv1alpha2.GetTargetDisksRequest{TargetPortal: portal, Iqn: iqn})
				if err != nil {
					return err
				}
				if len(r.DiskIDs) != 1 {
					return fmt.Errorf("the target has the disks %v", r.DiskIDs)
				}
				parsed, err := strconv.ParseUint(r.DiskIDs[0], 10, 32)
				number = uint32(parsed)
				return err
			}},
		}, prepare(func() uint32 { return number }, &id, staged)...), publish()...),
		pod: published + `\file`,
		second: []step{
			rmdir(published),
			unmount(&id, staged),
			{"DisconnectTarget", func(ctx context.Context, c nodeClients) error {
				return just(c.iscsi.DisconnectTarget(ctx, &iscsiv1alpha2.DisconnectTargetRequest{TargetPortal: portal, Iqn: iqn}))
			}},
		},
		check: func(ctx context.Context, node *winsim.Node) error {
			if left := node.Describe().ISCSI.Sessions; len(left) > 0 {
				return fmt.Errorf("the sessions %+v are left", left)
			}
			at := win.TargetPortal{Address: "10.0.0.10", Port: 3260}
			if _, err := node.Login(ctx, win.Login{Target: iqn, Portal: at, Auth: win.OneWayCHAP, User: "winsim", Secret: win.NewSecret("winsim-secret-1")}); err != nil {
				return err
			}
			if err := node.Sleep(ctx, time.Minute); err != nil { // until its disk is there
				return err
			}
			return checkDisk(ctx, node, node.Describe().ISCSI.Targets[0].LUNs[0].Number, winsim.GiB)
		},
	}
}

// onShare is the life of a volume on an SMB share.
func onShare() life {
	const remote = `\\files\data`
	mapping := step{"NewSmbGlobalMapping", func(ctx context.Context, c nodeClients) error {
		return just(c.smb.NewSmbGlobalMapping(ctx, &smbv1.NewSmbGlobalMappingRequest{
			RemotePath: remote, LocalPath: staged, Username: "csi", Password: "csi-Pa55",
		}))
	}}
	return life{
		first: append([]step{mapping}, publish()...),
		pod:   published + `\file`,
		second: []step{
			mapping,
			rmdir(published),
			rmdir(staged),
			{"RemoveSmbGlobalMapping", func(ctx context.Context, c nodeClients) error {
				return just(c.smb.RemoveSmbGlobalMapping(ctx, &smbv1.RemoveSmbGlobalMappingRequest{RemotePath: remote}))
			}},
		},
		check: func(ctx context.Context, node *winsim.Node) error {
			if left, err := node.SMBMappings(ctx); err != nil || len(left) > 0 {
				return fmt.Errorf("the mappings %+v are left, %w", left, err)
			}
			request := win.SMBMappingRequest{Remote: remote, User: "csi", Password: win.NewSecret("csi-Pa55"), RequirePrivacy: true}
			if err := node.CreateSMBMapping(ctx, request); err != nil {
				return err
			}
			return checkFile(node, remote+`\file`)
		},
	}
}

func rescan(ctx context.Context, c nodeClients) error {
	return just(c.disk.Rescan(ctx, &diskv1.RescanRequest{}))
}

// prepare partitions, formats and mounts a disk.
func prepare(number func() uint32, id *string, folder string) []step {
	return []step{
		{"PartitionDisk", func(ctx context.Context, c nodeClients) error {
			return just(c.disk.PartitionDisk(ctx, &diskv1.PartitionDiskRequest{DiskNumber: number()}))
		}},
		{"ListVolumesOnDisk", func(ctx context.Context, c nodeClients) error {
			r, err := c.volume.ListVolumesOnDisk(ctx, &volumev1.ListVolumesOnDiskRequest{DiskNumber: number()})
			if err != nil {
				return err
			}
			if len(r.VolumeIds) != 1 {
				return fmt.Errorf("the disk has the volumes %v", r.VolumeIds)
			}
			*id = r.VolumeIds[0]
			return nil
		}},
		{"FormatVolume", func(ctx context.Context, c nodeClients) error {
			return just(c.volume.FormatVolume(ctx, &volumev1.FormatVolumeRequest{VolumeId: *id}))
		}},
		{"MountVolume", func(ctx context.Context, c nodeClients) error {
			return just(c.volume.MountVolume(ctx, &volumev1.MountVolumeRequest{VolumeId: *id, TargetPath: folder}))
		}},
	}
}

func publish() []step {
	return []step{
		{"Mkdir", func(ctx context.Context, c nodeClients) error {
			return just(c.files.Mkdir(ctx, &filesystemv1.MkdirRequest{Path: kubelet + `\pods\web`}))
		}},
		{"CreateSymlink", func(ctx context.Context, c nodeClients) error {
			return just(c.files.CreateSymlink(ctx, &filesystemv1.CreateSymlinkRequest{SourcePath: staged, TargetPath: published}))
		}},
	}
}

func unmount(id *string, folder string) step {
	return step{"UnmountVolume", func(ctx context.Context, c nodeClients) error {
		return just(c.volume.UnmountVolume(ctx, &volumev1.UnmountVolumeRequest{VolumeId: *id, TargetPath: folder}))
	}}
}

func rmdir(path string) step {
	return step{"Rmdir " + path, func(ctx context.Context, c nodeClients) error {
		return just(c.files.Rmdir(ctx, &filesystemv1.RmdirRequest{Path: path, Force: true}))
	}}
}

// checkDisk wants one data partition of about the size of the disk, with the pod's file.
func checkDisk(ctx context.Context, node *winsim.Node, number uint32, size winsim.Size) error {
	if err := node.Sleep(ctx, time.Minute); err != nil { // until its volumes are there
		return err
	}
	info, err := node.DiskInfo(number)
	if err != nil {
		return err
	}
	var data []winsim.Partition
	for _, p := range info.Partitions {
		if p.Type == "basic" {
			data = append(data, p)
		}
	}
	if len(data) != 1 || data[0].Size < size-64*winsim.MiB {
		return fmt.Errorf("the disk has the data partitions %+v", data)
	}
	return checkFile(node, data[0].Volume.ID+"file")
}

func checkFile(node *winsim.Node, path string) error {
	content, err := node.ReadFile(path)
	if err == nil && content != written {
		err = fmt.Errorf("%s contains %q", path, content)
	}
	return err
}
