package grpcapi

import (
	"context"

	"google.golang.org/protobuf/types/known/emptypb"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
)

type diskChangeV1 struct{ disks disk.Extended }

var _ extensionv1.DiskChangeServer = diskChangeV1{}

func newDiskChangeV1(s Services) any { return diskChangeV1{s.Disk} }

// mustBe says which disk a request means.
func mustBe(in *extensionv1.Disk) disk.MustBe {
	wanted := in.GetMustBe()
	return disk.MustBe{
		Device: wanted.GetDevice(), Serial: wanted.GetSerialNumber(), Page83: wanted.GetPage83(), VolumeID: wanted.GetVolumeId(), Path: wanted.GetMountPath(),
	}
}

func (s diskChangeV1) PartitionDisk(ctx context.Context, in *extensionv1.Disk) (*emptypb.Empty, error) {
	const op = "partition disk"
	if err := onlyFields(op, in, "number", "must_be"); err != nil {
		return nil, err
	}
	if in.Number == nil || mustBe(in) == (disk.MustBe{}) {
		return nil, winerr.New(winerr.Invalid, op, "", "number or must_be is missing")
	}
	return empty[emptypb.Empty](s.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: *in.Number, MustBe: mustBe(in)}))
}

func (s diskChangeV1) SetDiskState(ctx context.Context, in *extensionv1.Disk) (*emptypb.Empty, error) {
	const op = "set state of disk"
	if err := onlyFields(op, in, "number", "online", "must_be"); err != nil {
		return nil, err
	}
	if in.Number == nil || in.Online == nil || mustBe(in) == (disk.MustBe{}) {
		return nil, winerr.New(winerr.Invalid, op, "", "number, online or must_be is missing")
	}
	return empty[emptypb.Empty](s.disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: *in.Number, IsOnline: *in.Online, MustBe: mustBe(in)}))
}
