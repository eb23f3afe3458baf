package policy

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

// Volume limits the paths of a volume group to the working directories. Calls that name
// only volumes and disks pass: which of those a driver may touch is not for paths to tell.
func (p *Policy) Volume(inner volume.Interface) volume.Interface {
	return limitedVolume{Interface: inner, policy: p}
}

type limitedVolume struct {
	volume.Interface
	policy *Policy
}

func (v limitedVolume) MountVolume(ctx context.Context, r *volume.MountVolumeRequest) (*volume.MountVolumeResponse, error) {
	if err := v.policy.Below("mount volume at", r.TargetPath); err != nil {
		return nil, err
	}
	return v.Interface.MountVolume(ctx, r)
}

func (v limitedVolume) UnmountVolume(ctx context.Context, r *volume.UnmountVolumeRequest) (*volume.UnmountVolumeResponse, error) {
	if err := v.policy.Below("unmount volume from", r.TargetPath); err != nil {
		return nil, err
	}
	return v.Interface.UnmountVolume(ctx, r)
}

func (v limitedVolume) GetVolumeIDFromTargetPath(ctx context.Context, r *volume.GetVolumeIDFromTargetPathRequest) (*volume.GetVolumeIDFromTargetPathResponse, error) {
	if err := v.policy.Inside("get volume mounted at", r.TargetPath); err != nil {
		return nil, err
	}
	return v.Interface.GetVolumeIDFromTargetPath(ctx, r)
}

func (v limitedVolume) GetClosestVolumeIDFromTargetPath(ctx context.Context, r *volume.GetClosestVolumeIDFromTargetPathRequest) (*volume.GetClosestVolumeIDFromTargetPathResponse, error) {
	if err := v.policy.Inside("get closest volume of", r.TargetPath); err != nil {
		return nil, err
	}
	return v.Interface.GetClosestVolumeIDFromTargetPath(ctx, r)
}
