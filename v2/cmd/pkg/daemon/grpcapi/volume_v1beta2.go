package grpcapi

import (
	"context"

	volumev1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta2"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

// volumeV1beta2 has disk numbers as text and older names for several methods. It
// also answers v1beta1 and v1alpha1.
type volumeV1beta2 struct{ volume volume.Interface }

var _ volumev1beta2.VolumeServer = volumeV1beta2{}

func newVolumeV1beta2(s Services) any { return volumeV1beta2{s.Volume} }

// ListVolumesOnDisk knows no partitions: partition 0 stands for all of them.
func (s volumeV1beta2) ListVolumesOnDisk(ctx context.Context, in *volumev1beta2.ListVolumesOnDiskRequest) (*volumev1beta2.ListVolumesOnDiskResponse, error) {
	number, err := parseDiskNumber(in.DiskId)
	if err != nil {
		return nil, err
	}
	out, err := responseOf(s.volume.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: number}))
	return &volumev1beta2.ListVolumesOnDiskResponse{VolumeIds: out.VolumeIDs}, err
}

func (s volumeV1beta2) MountVolume(ctx context.Context, in *volumev1beta2.MountVolumeRequest) (*volumev1beta2.MountVolumeResponse, error) {
	return empty[volumev1beta2.MountVolumeResponse](s.volume.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: in.VolumeId, TargetPath: in.Path}))
}

func (s volumeV1beta2) DismountVolume(ctx context.Context, in *volumev1beta2.DismountVolumeRequest) (*volumev1beta2.DismountVolumeResponse, error) {
	return empty[volumev1beta2.DismountVolumeResponse](s.volume.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeID: in.VolumeId, TargetPath: in.Path}))
}

func (s volumeV1beta2) IsVolumeFormatted(ctx context.Context, in *volumev1beta2.IsVolumeFormattedRequest) (*volumev1beta2.IsVolumeFormattedResponse, error) {
	out, err := responseOf(s.volume.IsVolumeFormatted(ctx, &volume.IsVolumeFormattedRequest{VolumeID: in.VolumeId}))
	return &volumev1beta2.IsVolumeFormattedResponse{Formatted: out.Formatted}, err
}

func (s volumeV1beta2) FormatVolume(ctx context.Context, in *volumev1beta2.FormatVolumeRequest) (*volumev1beta2.FormatVolumeResponse, error) {
	return empty[volumev1beta2.FormatVolumeResponse](s.volume.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: in.VolumeId}))
}

func (s volumeV1beta2) ResizeVolume(ctx context.Context, in *volumev1beta2.ResizeVolumeRequest) (*volumev1beta2.ResizeVolumeResponse, error) {
	return empty[volumev1beta2.ResizeVolumeResponse](s.volume.ResizeVolume(ctx, &volume.ResizeVolumeRequest{VolumeID: in.VolumeId, SizeBytes: in.Size}))
}

func (s volumeV1beta2) VolumeStats(ctx context.Context, in *volumev1beta2.VolumeStatsRequest) (*volumev1beta2.VolumeStatsResponse, error) {
	out, err := responseOf(s.volume.GetVolumeStats(ctx, &volume.GetVolumeStatsRequest{VolumeID: in.VolumeId}))
	return &volumev1beta2.VolumeStatsResponse{VolumeSize: out.TotalBytes, VolumeUsedSize: out.UsedBytes}, err
}

func (s volumeV1beta2) GetVolumeDiskNumber(ctx context.Context, in *volumev1beta2.VolumeDiskNumberRequest) (*volumev1beta2.VolumeDiskNumberResponse, error) {
	out, err := responseOf(s.volume.GetDiskNumberFromVolumeID(ctx, &volume.GetDiskNumberFromVolumeIDRequest{VolumeID: in.VolumeId}))
	return &volumev1beta2.VolumeDiskNumberResponse{DiskNumber: int64(out.DiskNumber)}, err
}

func (s volumeV1beta2) GetVolumeIDFromMount(ctx context.Context, in *volumev1beta2.VolumeIDFromMountRequest) (*volumev1beta2.VolumeIDFromMountResponse, error) {
	out, err := responseOf(s.volume.GetVolumeIDFromTargetPath(ctx, &volume.GetVolumeIDFromTargetPathRequest{TargetPath: in.Mount}))
	return &volumev1beta2.VolumeIDFromMountResponse{VolumeId: out.VolumeID}, err
}

func (s volumeV1beta2) WriteVolumeCache(ctx context.Context, in *volumev1beta2.WriteVolumeCacheRequest) (*volumev1beta2.WriteVolumeCacheResponse, error) {
	return empty[volumev1beta2.WriteVolumeCacheResponse](s.volume.WriteVolumeCache(ctx, &volume.WriteVolumeCacheRequest{VolumeID: in.VolumeId}))
}
