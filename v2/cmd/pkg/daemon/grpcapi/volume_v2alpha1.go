package grpcapi

import (
	"context"

	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

// volumeV2alpha1 also answers v1 and v1beta3.
type volumeV2alpha1 struct{ volume volume.Interface }

var _ volumev2alpha1.VolumeServer = volumeV2alpha1{}

func newVolumeV2alpha1(s Services) any { return volumeV2alpha1{s.Volume} }

func (s volumeV2alpha1) ListVolumesOnDisk(ctx context.Context, in *volumev2alpha1.ListVolumesOnDiskRequest) (*volumev2alpha1.ListVolumesOnDiskResponse, error) {
	out, err := responseOf(s.volume.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: in.DiskNumber, PartitionNumber: in.PartitionNumber}))
	return &volumev2alpha1.ListVolumesOnDiskResponse{VolumeIds: out.VolumeIDs}, err
}

func (s volumeV2alpha1) MountVolume(ctx context.Context, in *volumev2alpha1.MountVolumeRequest) (*volumev2alpha1.MountVolumeResponse, error) {
	return empty[volumev2alpha1.MountVolumeResponse](s.volume.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: in.VolumeId, TargetPath: in.TargetPath}))
}

func (s volumeV2alpha1) UnmountVolume(ctx context.Context, in *volumev2alpha1.UnmountVolumeRequest) (*volumev2alpha1.UnmountVolumeResponse, error) {
	return empty[volumev2alpha1.UnmountVolumeResponse](s.volume.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeID: in.VolumeId, TargetPath: in.TargetPath}))
}

func (s volumeV2alpha1) IsVolumeFormatted(ctx context.Context, in *volumev2alpha1.IsVolumeFormattedRequest) (*volumev2alpha1.IsVolumeFormattedResponse, error) {
	out, err := responseOf(s.volume.IsVolumeFormatted(ctx, &volume.IsVolumeFormattedRequest{VolumeID: in.VolumeId}))
	return &volumev2alpha1.IsVolumeFormattedResponse{Formatted: out.Formatted}, err
}

func (s volumeV2alpha1) FormatVolume(ctx context.Context, in *volumev2alpha1.FormatVolumeRequest) (*volumev2alpha1.FormatVolumeResponse, error) {
	return empty[volumev2alpha1.FormatVolumeResponse](s.volume.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: in.VolumeId}))
}

func (s volumeV2alpha1) ResizeVolume(ctx context.Context, in *volumev2alpha1.ResizeVolumeRequest) (*volumev2alpha1.ResizeVolumeResponse, error) {
	return empty[volumev2alpha1.ResizeVolumeResponse](s.volume.ResizeVolume(ctx, &volume.ResizeVolumeRequest{VolumeID: in.VolumeId, SizeBytes: in.SizeBytes}))
}

func (s volumeV2alpha1) GetVolumeStats(ctx context.Context, in *volumev2alpha1.GetVolumeStatsRequest) (*volumev2alpha1.GetVolumeStatsResponse, error) {
	out, err := responseOf(s.volume.GetVolumeStats(ctx, &volume.GetVolumeStatsRequest{VolumeID: in.VolumeId}))
	return &volumev2alpha1.GetVolumeStatsResponse{TotalBytes: out.TotalBytes, UsedBytes: out.UsedBytes}, err
}

func (s volumeV2alpha1) GetDiskNumberFromVolumeID(ctx context.Context, in *volumev2alpha1.GetDiskNumberFromVolumeIDRequest) (*volumev2alpha1.GetDiskNumberFromVolumeIDResponse, error) {
	out, err := responseOf(s.volume.GetDiskNumberFromVolumeID(ctx, &volume.GetDiskNumberFromVolumeIDRequest{VolumeID: in.VolumeId}))
	return &volumev2alpha1.GetDiskNumberFromVolumeIDResponse{DiskNumber: out.DiskNumber}, err
}

func (s volumeV2alpha1) GetVolumeIDFromTargetPath(ctx context.Context, in *volumev2alpha1.GetVolumeIDFromTargetPathRequest) (*volumev2alpha1.GetVolumeIDFromTargetPathResponse, error) {
	out, err := responseOf(s.volume.GetVolumeIDFromTargetPath(ctx, &volume.GetVolumeIDFromTargetPathRequest{TargetPath: in.TargetPath}))
	return &volumev2alpha1.GetVolumeIDFromTargetPathResponse{VolumeId: out.VolumeID}, err
}

func (s volumeV2alpha1) GetClosestVolumeIDFromTargetPath(ctx context.Context, in *volumev2alpha1.GetClosestVolumeIDFromTargetPathRequest) (*volumev2alpha1.GetClosestVolumeIDFromTargetPathResponse, error) {
	out, err := responseOf(s.volume.GetClosestVolumeIDFromTargetPath(ctx, &volume.GetClosestVolumeIDFromTargetPathRequest{TargetPath: in.TargetPath}))
	return &volumev2alpha1.GetClosestVolumeIDFromTargetPathResponse{VolumeId: out.VolumeID}, err
}

func (s volumeV2alpha1) WriteVolumeCache(ctx context.Context, in *volumev2alpha1.WriteVolumeCacheRequest) (*volumev2alpha1.WriteVolumeCacheResponse, error) {
	return empty[volumev2alpha1.WriteVolumeCacheResponse](s.volume.WriteVolumeCache(ctx, &volume.WriteVolumeCacheRequest{VolumeID: in.VolumeId}))
}
