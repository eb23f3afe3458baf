package grpcapi

import (
	"context"

	"google.golang.org/protobuf/types/known/emptypb"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
)

type readOnlyV1 struct{ disks disk.Extended }

var _ extensionv1.DiskReadOnlyServer = readOnlyV1{}

func newReadOnlyV1(s Services) any { return readOnlyV1{s.Disk} }

func (s readOnlyV1) SetDiskReadOnly(ctx context.Context, in *extensionv1.Disk) (*emptypb.Empty, error) {
	const op = "set read-only state of disk"
	if err := onlyFields(op, in, "number", "read_only", "online", "must_be"); err != nil {
		return nil, err
	}
	switch {
	case in.Number == nil || in.ReadOnly == nil:
		return nil, winerr.New(winerr.Invalid, op, "", "number or read_only is missing")
	case in.Online != nil && !(*in.Online && *in.ReadOnly):
		return nil, winerr.New(winerr.Invalid, op, "", "online is only for a disk that becomes read-only")
	case in.Online != nil:
		return empty[emptypb.Empty](s.disks.OnlineDiskReadOnly(ctx, &disk.OnlineDiskReadOnlyRequest{DiskNumber: *in.Number, MustBe: mustBe(in)}))
	}
	return empty[emptypb.Empty](s.disks.SetDiskReadOnly(ctx, &disk.SetDiskReadOnlyRequest{DiskNumber: *in.Number, IsReadOnly: *in.ReadOnly, MustBe: mustBe(in)}))
}

func (s readOnlyV1) GetDiskReadOnly(ctx context.Context, in *extensionv1.Disk) (*extensionv1.Disk, error) {
	const op = "get read-only state of disk"
	if err := onlyFields(op, in, "number", "must_be"); err != nil {
		return nil, err
	}
	if in.Number == nil {
		return nil, winerr.New(winerr.Invalid, op, "", "number is missing")
	}
	out, err := responseOf(s.disks.GetDiskReadOnly(ctx, &disk.GetDiskReadOnlyRequest{DiskNumber: *in.Number, MustBe: mustBe(in)}))
	return &extensionv1.Disk{Number: in.Number, ReadOnly: &out.IsReadOnly}, err
}
