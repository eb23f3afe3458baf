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
	out, err := s.volume.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: in.DiskNumber, PartitionNumber: in.PartitionNumber})
	if err != nil {
		return nil, err
	}
	return &volumev2alpha1.ListVolumesOnDiskResponse{VolumeIds: out.VolumeIDs}, nil
}

func (s volumeV2alpha1) MountVolume(ctx context.Context, in *volumev2alpha1.MountVolumeRequest) (*volumev2alpha1.MountVolumeResponse, error) {
	if _, err := s.volume.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: in.VolumeId, TargetPath: in.TargetPath}); err != nil {
		return nil, err
	}
	return &volumev2alpha1.MountVolumeResponse{}, nil
}

func (s volumeV2alpha1) UnmountVolume(ctx context.Context, in *volumev2alpha1.UnmountVolumeRequest) (*volumev2alpha1.UnmountVolumeResponse, error) {
	if _, err := s.volume.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeID: in.VolumeId, TargetPath: in.TargetPath}); err != nil {
		return nil, err
	}
	return &volumev2alpha1.UnmountVolumeResponse{}, nil
}

func (s volumeV2alpha1) IsVolumeFormatted(ctx context.Context, in *volumev2alpha1.IsVolumeFormattedRequest) (*volumev2alpha1.IsVolumeFormattedResponse, error) {
	out, err := s.volume.IsVolumeFormatted(ctx, &volume.IsVolumeFormattedRequest{VolumeID: in.VolumeId})
	if err != nil {
		return nil, err
	}
	return &volumev2alpha1.IsVolumeFormattedResponse{Formatted: out.Formatted}, nil
}

func (s volumeV2alpha1) FormatVolume(ctx context.Context, in *volumev2alpha1.FormatVolumeRequest) (*volumev2alpha1.FormatVolumeResponse, error) {
	if _, err := s.volume.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: in.VolumeId}); err != nil {
		return nil, err
	}
	return &volumev2alpha1.FormatVolumeResponse{}, nil
}

func (s volumeV2alpha1) ResizeVolume(ctx context.Context, in *volumev2alpha1.ResizeVolumeRequest) (*volumev2alpha1.ResizeVolumeResponse, error) {
	if _, err := s.volume.ResizeVolume(ctx, &volume.ResizeVolumeRequest{VolumeID: in.VolumeId, SizeBytes: in.SizeBytes}); err != nil {
		return nil, err
	}
	return &volumev2alpha1.ResizeVolumeResponse{}, nil
}

func (s volumeV2alpha1) GetVolumeStats(ctx context.Context, in *volumev2alpha1.GetVolumeStatsRequest) (*volumev2alpha1.GetVolumeStatsResponse, error) {
	out, err := s.volume.GetVolumeStats(ctx, &volume.GetVolumeStatsRequest{VolumeID: in.VolumeId})
	if err != nil {
		return nil, err
	}
	return &volumev2alpha1.GetVolumeStatsResponse{TotalBytes: out.TotalBytes, UsedBytes: out.UsedBytes}, nil
}

func (s volumeV2alpha1) GetDiskNumberFromVolumeID(ctx context.Context, in *volumev2alpha1.GetDiskNumberFromVolumeIDRequest) (*volumev2alpha1.GetDiskNumberFromVolumeIDResponse, error) {
	out, err := s.volume.GetDiskNumberFromVolumeID(ctx, &volume.GetDiskNumberFromVolumeIDRequest{VolumeID: in.VolumeId})
	if err != nil {
		return nil, err
	}
	return &volumev2alpha1.GetDiskNumberFromVolumeIDResponse{DiskNumber: out.DiskNumber}, nil
}

func (s volumeV2alpha1) GetVolumeIDFromTargetPath(ctx context.Context, in *volumev2alpha1.GetVolumeIDFromTargetPathRequest) (*volumev2alpha1.GetVolumeIDFromTargetPathResponse, error) {
	out, err := s.volume.GetVolumeIDFromTargetPath(ctx, &volume.GetVolumeIDFromTargetPathRequest{TargetPath: in.TargetPath})
	if err != nil {
		return nil, err
	}
	return &volumev2alpha1.GetVolumeIDFromTargetPathResponse{VolumeId: out.VolumeID}, nil
}

func (s volumeV2alpha1) GetClosestVolumeIDFromTargetPath(ctx context.Context, in *volumev2alpha1.GetClosestVolumeIDFromTargetPathRequest) (*volumev2alpha1.GetClosestVolumeIDFromTargetPathResponse, error) {
	out, err := s.volume.GetClosestVolumeIDFromTargetPath(ctx, &volume.GetClosestVolumeIDFromTargetPathRequest{TargetPath: in.TargetPath})
	if err != nil {
		return nil, err
	}
	return &volumev2alpha1.GetClosestVolumeIDFromTargetPathResponse{VolumeId: out.VolumeID}, nil
}

func (s volumeV2alpha1) WriteVolumeCache(ctx context.Context, in *volumev2alpha1.WriteVolumeCacheRequest) (*volumev2alpha1.WriteVolumeCacheResponse, error) {
	if _, err := s.volume.WriteVolumeCache(ctx, &volume.WriteVolumeCacheRequest{VolumeID: in.VolumeId}); err != nil {
		return nil, err
	}
	return &volumev2alpha1.WriteVolumeCacheResponse{}, nil
}
