package grpcapi

import (
	"context"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
)

// diskV1 also answers v1beta3.
type diskV1 struct{ disk disk.Interface }

var _ diskv1.DiskServer = diskV1{}

func newDiskV1(s Services) any { return diskV1{s.Disk} }

func (s diskV1) ListDiskLocations(ctx context.Context, _ *diskv1.ListDiskLocationsRequest) (*diskv1.ListDiskLocationsResponse, error) {
	out, err := s.disk.ListDiskLocations(ctx, &disk.ListDiskLocationsRequest{})
	if err != nil {
		return nil, err
	}
	locations := make(map[uint32]*diskv1.DiskLocation, len(out.DiskLocations))
	for number, at := range out.DiskLocations {
		locations[number] = &diskv1.DiskLocation{Adapter: at.Adapter, Bus: at.Bus, Target: at.Target, LUNID: at.LUNID}
	}
	return &diskv1.ListDiskLocationsResponse{DiskLocations: locations}, nil
}

func (s diskV1) PartitionDisk(ctx context.Context, in *diskv1.PartitionDiskRequest) (*diskv1.PartitionDiskResponse, error) {
	return empty[diskv1.PartitionDiskResponse](s.disk.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: in.DiskNumber}))
}

func (s diskV1) Rescan(ctx context.Context, _ *diskv1.RescanRequest) (*diskv1.RescanResponse, error) {
	return empty[diskv1.RescanResponse](s.disk.Rescan(ctx, &disk.RescanRequest{}))
}

func (s diskV1) ListDiskIDs(ctx context.Context, _ *diskv1.ListDiskIDsRequest) (*diskv1.ListDiskIDsResponse, error) {
	out, err := s.disk.ListDiskIDs(ctx, &disk.ListDiskIDsRequest{})
	if err != nil {
		return nil, err
	}
	ids := make(map[uint32]*diskv1.DiskIDs, len(out.DiskIDs))
	for number, id := range out.DiskIDs {
		ids[number] = &diskv1.DiskIDs{Page83: wireText(id.Page83), SerialNumber: wireText(id.SerialNumber)}
	}
	return &diskv1.ListDiskIDsResponse{DiskIDs: ids}, nil
}

func (s diskV1) GetDiskStats(ctx context.Context, in *diskv1.GetDiskStatsRequest) (*diskv1.GetDiskStatsResponse, error) {
	out, err := responseOf(s.disk.GetDiskStats(ctx, &disk.GetDiskStatsRequest{DiskNumber: in.DiskNumber}))
	return &diskv1.GetDiskStatsResponse{TotalBytes: out.TotalBytes}, err
}

func (s diskV1) SetDiskState(ctx context.Context, in *diskv1.SetDiskStateRequest) (*diskv1.SetDiskStateResponse, error) {
	return empty[diskv1.SetDiskStateResponse](s.disk.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: in.DiskNumber, IsOnline: in.IsOnline}))
}

func (s diskV1) GetDiskState(ctx context.Context, in *diskv1.GetDiskStateRequest) (*diskv1.GetDiskStateResponse, error) {
	out, err := responseOf(s.disk.GetDiskState(ctx, &disk.GetDiskStateRequest{DiskNumber: in.DiskNumber}))
	return &diskv1.GetDiskStateResponse{IsOnline: out.IsOnline}, err
}
