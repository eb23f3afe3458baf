package main

import (
	"context"
	"fmt"
	"strconv"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
)

const (
	iscsiAddress = "10.0.0.10"
	iscsiTarget  = "iqn.2025-01.com.example:guarded"
	iscsiMount   = kubelet + `\plugins\demo\iscsi`
)

// iscsiSteps are the life of a volume on the disk of an iSCSI target that requires CHAP.
func (c clients) iscsiSteps(ctx context.Context) []step {
	portal := &iscsiv1alpha2.TargetPortal{TargetAddress: iscsiAddress} // default port
	var disk uint32                                                    // of the target, after the login
	var id string                                                      // of the volume on it
	connectWith := func(secret string) func() (string, error) {
		return func() (string, error) {
			return done(c.iscsi.ConnectTarget(ctx, &iscsiv1alpha2.ConnectTargetRequest{
				TargetPortal: portal, Iqn: iscsiTarget,
				AuthType: iscsiv1alpha2.AuthenticationType_ONE_WAY_CHAP, ChapUsername: "winsim", ChapSecret: secret,
			}))
		}
	}
	disconnect := func() (string, error) {
		return done(c.iscsi.DisconnectTarget(ctx, &iscsiv1alpha2.DisconnectTargetRequest{TargetPortal: portal, Iqn: iscsiTarget}))
	}
	mount := func() (string, error) {
		return done(c.volume.MountVolume(ctx, &volumev1.MountVolumeRequest{VolumeId: id, TargetPath: iscsiMount}))
	}

	return []step{
		{"iscsi", "AddTargetPortal " + iscsiAddress, "done", func() (string, error) {
			return done(c.iscsi.AddTargetPortal(ctx, &iscsiv1alpha2.AddTargetPortalRequest{TargetPortal: portal}))
		}},
		{"iscsi", "DiscoverTargetPortal", "2 targets", func() (string, error) {
			r, err := c.iscsi.DiscoverTargetPortal(ctx, &iscsiv1alpha2.DiscoverTargetPortalRequest{TargetPortal: portal})
			return fmt.Sprintf("%d targets", len(r.GetIqns())), err
		}},
		{"iscsi", "ConnectTarget with a wrong secret", "PermissionDenied", connectWith("wrong-secret-12")},
		{"iscsi", "ConnectTarget", "done", connectWith("winsim-secret-1")},
		{"iscsi", "ConnectTarget again", "done", connectWith("winsim-secret-1")},
		{"iscsi", "GetTargetDisks", "2 disks", func() (string, error) {
			r, err := c.iscsi.GetTargetDisks(ctx, &iscsiv1alpha2.GetTargetDisksRequest{TargetPortal: portal, Iqn: iscsiTarget})
			if err != nil || len(r.GetDiskIDs()) == 0 {
				return "no disks", err
			}
			number, err := strconv.ParseUint(r.GetDiskIDs()[0], 10, 32)
			disk = uint32(number)
			return fmt.Sprintf("%d disks", len(r.GetDiskIDs())), err
		}},
		{"disk", "PartitionDisk of the first one", "done", func() (string, error) {
			return done(c.disk.PartitionDisk(ctx, &diskv1.PartitionDiskRequest{DiskNumber: disk}))
		}},
		{"volume", "ListVolumesOnDisk", "1 volume", func() (string, error) {
			r, err := c.volume.ListVolumesOnDisk(ctx, &volumev1.ListVolumesOnDiskRequest{DiskNumber: disk})
			if len(r.GetVolumeIds()) != 1 {
				return fmt.Sprintf("%d volumes", len(r.GetVolumeIds())), err
			}
			id = r.GetVolumeIds()[0]
			return "1 volume", err
		}},
		{"volume", "FormatVolume", "done", func() (string, error) {
			return done(c.volume.FormatVolume(ctx, &volumev1.FormatVolumeRequest{VolumeId: id}))
		}},
		{"volume", `MountVolume at plugins\demo\iscsi`, "done", mount},
		{"volume", "GetVolumeStats", "2.0 GiB", func() (string, error) {
			r, err := c.volume.GetVolumeStats(ctx, &volumev1.GetVolumeStatsRequest{VolumeId: id})
			return gibibytes(r.GetTotalBytes(), err)
		}},
		{"volume", "UnmountVolume", "done", func() (string, error) {
			return done(c.volume.UnmountVolume(ctx, &volumev1.UnmountVolumeRequest{VolumeId: id, TargetPath: iscsiMount}))
		}},
		{"iscsi", "DisconnectTarget", "done", disconnect},
		{"iscsi", "DisconnectTarget again", "done", disconnect},
		{"disk", "ListDiskIDs", "4 disks", c.countDisks(ctx)},
	}
}
