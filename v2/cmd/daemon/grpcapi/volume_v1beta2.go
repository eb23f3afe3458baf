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
	out, err := s.volume.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: number})
	if err != nil {
		return nil, err
	}
	return &volumev1beta2.ListVolumesOnDiskResponse{VolumeIds: out.VolumeIDs}, nil
}

func (s volumeV1beta2) MountVolume(ctx context.Context, in *volumev1beta2.MountVolumeRequest) (*volumev1beta2.MountVolumeResponse, error) {
	if _, err := s.volume.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: in.VolumeId, TargetPath: in.Path}); err != nil {
		return nil, err
	}
	return &volumev1beta2.MountVolumeResponse{}, nil
}

func (s volumeV1beta2) DismountVolume(ctx context.Context, in *volumev1beta2.DismountVolumeRequest) (*volumev1beta2.DismountVolumeResponse, error) {
	if _, err := s.volume.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeID: in.VolumeId, TargetPath: in.Path}); err != nil {
		return nil, err
	}
	return &volumev1beta2.DismountVolumeResponse{}, nil
}

func (s volumeV1beta2) IsVolumeFormatted(ctx context.Context, in *volumev1beta2.IsVolumeFormattedRequest) (*volumev1beta2.IsVolumeFormattedResponse, error) {
	out, err := s.volume.IsVolumeFormatted(ctx, &volume.IsVolumeFormattedRequest{VolumeID: in.VolumeId})
	if err != nil {
		return nil, err
	}
	return &volumev1beta2.IsVolumeFormattedResponse{Formatted: out.Formatted}, nil
}

func (s volumeV1beta2) FormatVolume(ctx context.Context, in *volumev1beta2.FormatVolumeRequest) (*volumev1beta2.FormatVolumeResponse, error) {
	if _, err := s.volume.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: in.VolumeId}); err != nil {
		return nil, err
	}
	return &volumev1beta2.FormatVolumeResponse{}, nil
}

func (s volumeV1beta2) ResizeVolume(ctx context.Context, in *volumev1beta2.ResizeVolumeRequest) (*volumev1beta2.ResizeVolumeResponse, error) {
	if _, err := s.volume.ResizeVolume(ctx, &volume.ResizeVolumeRequest{VolumeID: in.VolumeId, SizeBytes: in.Size}); err != nil {
		return nil, err
	}
	return &volumev1beta2.ResizeVolumeResponse{}, nil
}

func (s volumeV1beta2) VolumeStats(ctx context.Context, in *volumev1beta2.VolumeStatsRequest) (*volumev1beta2.VolumeStatsResponse, error) {
	out, err := s.volume.GetVolumeStats(ctx, &volume.GetVolumeStatsRequest{VolumeID: in.VolumeId})
	if err != nil {
		return nil, err
	}
	return &volumev1beta2.VolumeStatsResponse{VolumeSize: out.TotalBytes, VolumeUsedSize: out.UsedBytes}, nil
}

func (s volumeV1beta2) GetVolumeDiskNumber(ctx context.Context, in *volumev1beta2.VolumeDiskNumberRequest) (*volumev1beta2.VolumeDiskNumberResponse, error) {
	out, err := s.volume.GetDiskNumberFromVolumeID(ctx, &volume.GetDiskNumberFromVolumeIDRequest{VolumeID: in.VolumeId})
	if err != nil {
		return nil, err
	}
	return &volumev1beta2.VolumeDiskNumberResponse{DiskNumber: int64(out.DiskNumber)}, nil
}

func (s volumeV1beta2) GetVolumeIDFromMount(ctx context.Context, in *volumev1beta2.VolumeIDFromMountRequest) (*volumev1beta2.VolumeIDFromMountResponse, error) {
	out, err := s.volume.GetVolumeIDFromTargetPath(ctx, &volume.GetVolumeIDFromTargetPathRequest{TargetPath: in.Mount})
	if err != nil {
		return nil, err
	}
	return &volumev1beta2.VolumeIDFromMountResponse{VolumeId: out.VolumeID}, nil
}

func (s volumeV1beta2) WriteVolumeCache(ctx context.Context, in *volumev1beta2.WriteVolumeCacheRequest) (*volumev1beta2.WriteVolumeCacheResponse, error) {
	if _, err := s.volume.WriteVolumeCache(ctx, &volume.WriteVolumeCacheRequest{VolumeID: in.VolumeId}); err != nil {
		return nil, err
	}
	return &volumev1beta2.WriteVolumeCacheResponse{}, nil
}
