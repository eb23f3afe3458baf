package grpcapi

import (
	"context"

	"google.golang.org/grpc"

	readonlyv1 "github.com/kubernetes-csi/csi-proxy/client/extension/readonly/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
)

// readOnlyGroup is the group whose endpoints also show and change whether disks are read-only.
const readOnlyGroup = "disk"

// readOnlyDisks is what a disk.Disk has besides disk.Interface.
type readOnlyDisks interface {
	SetDiskReadOnly(context.Context, *disk.SetDiskReadOnlyRequest) (*disk.SetDiskReadOnlyResponse, error)
	GetDiskReadOnly(context.Context, *disk.GetDiskReadOnlyRequest) (*disk.GetDiskReadOnlyResponse, error)
}

// registerReadOnly adds the service if the disks have it.
func registerReadOnly(r grpc.ServiceRegistrar, disks disk.Interface) {
	if has, ok := disks.(readOnlyDisks); ok {
		readonlyv1.RegisterDiskReadOnlyServer(r, readOnlyV1{has})
	}
}

type readOnlyV1 struct{ disks readOnlyDisks }

var _ readonlyv1.DiskReadOnlyServer = readOnlyV1{}

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
