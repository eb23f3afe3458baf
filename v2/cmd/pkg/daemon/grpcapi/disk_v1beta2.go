package grpcapi

import (
	"context"

	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta2"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
)

// diskV1beta2 has disk numbers as text, identifiers in a map and "attach state"
// for what is now the disk's state. It also answers v1beta1.
type diskV1beta2 struct{ disk disk.Interface }

var _ diskv1beta2.DiskServer = diskV1beta2{}

func newDiskV1beta2(s Services) any { return diskV1beta2{s.Disk} }

func (s diskV1beta2) ListDiskLocations(ctx context.Context, _ *diskv1beta2.ListDiskLocationsRequest) (*diskv1beta2.ListDiskLocationsResponse, error) {
	out, err := responseOf(s.disk.ListDiskLocations(ctx, &disk.ListDiskLocationsRequest{}))
	locations := byText(out.DiskLocations, func(at *disk.DiskLocation) *diskv1beta2.DiskLocation {
		return &diskv1beta2.DiskLocation{Adapter: at.Adapter, Bus: at.Bus, Target: at.Target, LUNID: at.LUNID}
	})
	return &diskv1beta2.ListDiskLocationsResponse{DiskLocations: locations}, err
}

func (s diskV1beta2) PartitionDisk(ctx context.Context, in *diskv1beta2.PartitionDiskRequest) (*diskv1beta2.PartitionDiskResponse, error) {
	number, err := parseDiskNumber(in.DiskID)
	if err != nil {
		return nil, err
	}
	return empty[diskv1beta2.PartitionDiskResponse](s.disk.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: number}))
}

func (s diskV1beta2) Rescan(ctx context.Context, _ *diskv1beta2.RescanRequest) (*diskv1beta2.RescanResponse, error) {
	return empty[diskv1beta2.RescanResponse](s.disk.Rescan(ctx, &disk.RescanRequest{}))
}

func (s diskV1beta2) ListDiskIDs(ctx context.Context, _ *diskv1beta2.ListDiskIDsRequest) (*diskv1beta2.ListDiskIDsResponse, error) {
	out, err := responseOf(s.disk.ListDiskIDs(ctx, &disk.ListDiskIDsRequest{}))
	return &diskv1beta2.ListDiskIDsResponse{DiskIDs: byText(out.DiskIDs, toIdentifiers)}, err
}

func (s diskV1beta2) DiskStats(ctx context.Context, in *diskv1beta2.DiskStatsRequest) (*diskv1beta2.DiskStatsResponse, error) {
	number, err := parseDiskNumber(in.DiskID)
	if err != nil {
		return nil, err
	}
	out, err := responseOf(s.disk.GetDiskStats(ctx, &disk.GetDiskStatsRequest{DiskNumber: number}))
	return &diskv1beta2.DiskStatsResponse{DiskSize: out.TotalBytes}, err
}

func (s diskV1beta2) SetAttachState(ctx context.Context, in *diskv1beta2.SetAttachStateRequest) (*diskv1beta2.SetAttachStateResponse, error) {
	number, err := parseDiskNumber(in.DiskID)
	if err != nil {
		return nil, err
	}
	return empty[diskv1beta2.SetAttachStateResponse](s.disk.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: number, IsOnline: in.IsOnline}))
}

func (s diskV1beta2) GetAttachState(ctx context.Context, in *diskv1beta2.GetAttachStateRequest) (*diskv1beta2.GetAttachStateResponse, error) {
	number, err := parseDiskNumber(in.DiskID)
	if err != nil {
		return nil, err
	}
	out, err := responseOf(s.disk.GetDiskState(ctx, &disk.GetDiskStateRequest{DiskNumber: number}))
	return &diskv1beta2.GetAttachStateResponse{IsOnline: out.IsOnline}, err
}

// toIdentifiers puts ids under the keys that old drivers look for. Both keys are always there,
// as in the original; a disk without an id has an empty one.
func toIdentifiers(ids *disk.DiskIDs) *diskv1beta2.DiskIDs {
	return &diskv1beta2.DiskIDs{Identifiers: map[string]string{
		"page83":       wireText(ids.Page83),
		"serialNumber": wireText(ids.SerialNumber),
	}}
}
