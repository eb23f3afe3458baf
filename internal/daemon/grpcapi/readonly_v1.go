package grpcapi

import (
	"context"

	readonlyv1 "github.com/kubernetes-csi/csi-proxy/client/extension/readonly/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
)

// readOnlyDisks is what a disk.Disk has besides disk.Interface.
type readOnlyDisks interface {
	SetDiskReadOnly(context.Context, *disk.SetDiskReadOnlyRequest) (*disk.SetDiskReadOnlyResponse, error)
	GetDiskReadOnly(context.Context, *disk.GetDiskReadOnlyRequest) (*disk.GetDiskReadOnlyResponse, error)
}

type readOnlyV1 struct{ disks readOnlyDisks }

var _ readonlyv1.DiskReadOnlyServer = readOnlyV1{}

func newReadOnlyV1(s Services) any {
	if has, ok := s.Disk.(readOnlyDisks); ok {
		return readOnlyV1{has}
	}
	return nil
}

func (s readOnlyV1) SetDiskReadOnly(ctx context.Context, in *readonlyv1.SetDiskReadOnlyRequest) (*readonlyv1.SetDiskReadOnlyResponse, error) {
	if _, err := s.disks.SetDiskReadOnly(ctx, &disk.SetDiskReadOnlyRequest{DiskNumber: in.DiskNumber, IsReadOnly: in.IsReadOnly}); err != nil {
		return nil, err
	}
	return &readonlyv1.SetDiskReadOnlyResponse{}, nil
}

func (s readOnlyV1) GetDiskReadOnly(ctx context.Context, in *readonlyv1.GetDiskReadOnlyRequest) (*readonlyv1.GetDiskReadOnlyResponse, error) {
	out, err := s.disks.GetDiskReadOnly(ctx, &disk.GetDiskReadOnlyRequest{DiskNumber: in.DiskNumber})
	if err != nil {
		return nil, err
	}
	return &readonlyv1.GetDiskReadOnlyResponse{IsReadOnly: out.IsReadOnly}, nil
}
