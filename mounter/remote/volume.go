package remote

import (
	"context"
	"strings"

	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

type volumes struct {
	*Daemon
	api volumev2alpha1.VolumeClient
}

var _ volume.Extended = volumes{}

func (v volumes) FormatVolume(ctx context.Context, in *volume.FormatVolumeRequest) (*volume.FormatVolumeResponse, error) {
	if in == nil || *in == (volume.FormatVolumeRequest{VolumeID: in.VolumeID}) { // NTFS, unless the daemon's flag says otherwise
		return ask[volume.FormatVolumeResponse](ctx, v.api.FormatVolume, in)
	}
	_, err := extended(ctx, extensionv1.NewVolumeFormatClient(v.vols).FormatVolume, &extensionv1.Volume{
		Id: in.VolumeID, FileSystem: in.FileSystem, ClusterSizeBytes: in.AllocationUnitSize, Label: in.Label, RootAccess: in.RootAccess,
	}, missing{"format volume", in.VolumeID, "the format options", omitOption})
	onlyNTFS := strings.EqualFold(in.FileSystem, "ntfs") && *in == volume.FormatVolumeRequest{VolumeID: in.VolumeID, FileSystem: in.FileSystem}
	if isUnsupported(err) && onlyNTFS { // all that an older daemon makes
		return v.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: in.VolumeID})
	}
	return &volume.FormatVolumeResponse{}, err
}

func (v volumes) GetClosestVolumeIDFromTargetPath(ctx context.Context, in *volume.GetClosestVolumeIDFromTargetPathRequest) (*volume.GetClosestVolumeIDFromTargetPathResponse, error) {
	return ask[volume.GetClosestVolumeIDFromTargetPathResponse](ctx, v.api.GetClosestVolumeIDFromTargetPath, in)
}

func (v volumes) GetDiskNumberFromVolumeID(ctx context.Context, in *volume.GetDiskNumberFromVolumeIDRequest) (*volume.GetDiskNumberFromVolumeIDResponse, error) {
	return ask[volume.GetDiskNumberFromVolumeIDResponse](ctx, v.api.GetDiskNumberFromVolumeID, in)
}

func (v volumes) GetVolumeIDFromTargetPath(ctx context.Context, in *volume.GetVolumeIDFromTargetPathRequest) (*volume.GetVolumeIDFromTargetPathResponse, error) {
	return ask[volume.GetVolumeIDFromTargetPathResponse](ctx, v.api.GetVolumeIDFromTargetPath, in)
}

func (v volumes) GetVolumeStats(ctx context.Context, in *volume.GetVolumeStatsRequest) (*volume.GetVolumeStatsResponse, error) {
	return ask[volume.GetVolumeStatsResponse](ctx, v.api.GetVolumeStats, in)
}

func (v volumes) IsVolumeFormatted(ctx context.Context, in *volume.IsVolumeFormattedRequest) (*volume.IsVolumeFormattedResponse, error) {
	return ask[volume.IsVolumeFormattedResponse](ctx, v.api.IsVolumeFormatted, in)
}

func (v volumes) ListVolumesOnDisk(ctx context.Context, in *volume.ListVolumesOnDiskRequest) (*volume.ListVolumesOnDiskResponse, error) {
	return ask[volume.ListVolumesOnDiskResponse](ctx, v.api.ListVolumesOnDisk, in)
}

func (v volumes) MountVolume(ctx context.Context, in *volume.MountVolumeRequest) (*volume.MountVolumeResponse, error) {
	return ask[volume.MountVolumeResponse](ctx, v.api.MountVolume, in)
}

func (v volumes) ResizeVolume(ctx context.Context, in *volume.ResizeVolumeRequest) (*volume.ResizeVolumeResponse, error) {
	return ask[volume.ResizeVolumeResponse](ctx, v.api.ResizeVolume, in)
}

func (v volumes) UnmountVolume(ctx context.Context, in *volume.UnmountVolumeRequest) (*volume.UnmountVolumeResponse, error) {
	return ask[volume.UnmountVolumeResponse](ctx, v.api.UnmountVolume, in)
}

// WriteVolumeCache of an older daemon waits for a volume that is unmounted next as for any other.
func (v volumes) WriteVolumeCache(ctx context.Context, in *volume.WriteVolumeCacheRequest) (*volume.WriteVolumeCacheResponse, error) {
	if in != nil && in.TargetPath != "" {
		response, err := extensionv1.NewVolumeFlushClient(v.vols).WriteVolumeCache(ctx, &extensionv1.Volume{Id: in.VolumeID, MountPaths: []string{in.TargetPath}})
		if !isUnsupported(err) {
			var out volume.WriteVolumeCacheResponse
			for _, p := range response.GetProblems() {
				out.Loss = p.Text
			}
			return &out, err
		}
		in = &volume.WriteVolumeCacheRequest{VolumeID: in.VolumeID}
	}
	return ask[volume.WriteVolumeCacheResponse](ctx, v.api.WriteVolumeCache, in)
}

func (v volumes) Health(ctx context.Context, id string) (volume.Health, error) {
	found, err := extended(ctx, extensionv1.NewVolumeHealthClient(v.vols).CheckVolume, &extensionv1.Volume{Id: id},
		missing{"get health of volume", id, "a service for it", ""})
	if err != nil {
		return volume.Health{}, err
	}
	var health volume.Health
	for _, checked := range found.Volumes {
		health.FileSystem, health.ReadOnly, health.Dirty, health.Damage = checked.FileSystem, checked.GetReadOnly(), checked.GetDirty(), volumeapi.Damage(checked.Damage)
		for _, p := range checked.Problems {
			health.Unknown = append(health.Unknown, p.Text)
		}
	}
	for _, d := range found.Disks {
		health.Disks = append(health.Disks, volumeapi.DiskHealth{Number: d.GetNumber(), State: d.Health, Reason: d.HealthReason})
	}
	return health, nil
}
