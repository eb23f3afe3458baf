package grpcapi

import (
	"context"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

// healthKeeper is what a volume.Volume has besides volume.Interface.
type healthKeeper interface {
	Health(ctx context.Context, volumeID string) (volume.Health, error)
	Scan(ctx context.Context, volumeID string) (volume.Health, error)
	Repair(ctx context.Context, volumeID string, options volume.RepairOptions) (volume.Health, error)
}

type healthV1 struct{ volumes healthKeeper }

var _ extensionv1.VolumeHealthServer = healthV1{}

func newHealthV1(s Services) any {
	if has, ok := s.Volume.(healthKeeper); ok {
		return healthV1{has}
	}
	return nil
}

func (s healthV1) CheckVolume(ctx context.Context, in *extensionv1.CheckVolumeRequest) (*extensionv1.VolumeCondition, error) {
	const op = "check volume"
	options := volume.RepairOptions{Offline: in.Action == extensionv1.ActionRepairOffline, Dismount: in.Dismount}
	var is volume.Health
	var err error
	switch in.Action {
	case extensionv1.ActionNone:
		is, err = s.volumes.Health(ctx, in.VolumeId)
	case extensionv1.ActionScan:
		is, err = s.volumes.Scan(ctx, in.VolumeId)
	case extensionv1.ActionRepair, extensionv1.ActionRepairOffline:
		is, err = s.volumes.Repair(ctx, in.VolumeId, options)
	default:
		return nil, winerr.New(winerr.Invalid, op, "", "the action %s is not scan, repair or repair-offline", quote(in.Action))
	}
	if err != nil {
		return nil, err
	}
	out := &extensionv1.VolumeCondition{
		Volume: &extensionv1.Volume{
			Id: in.VolumeId, FileSystem: wireText(is.FileSystem), ReadOnly: &is.ReadOnly, Dirty: &is.Dirty, Damage: string(is.Damage),
		},
		Running: is.Running, Problems: lineTexts(is.Problems()), Unknown: lineTexts(is.Unknown),
	}
	if !is.Since.IsZero() {
		out.RunningSinceUnix = is.Since.Unix()
	}
	for _, d := range is.Disks {
		out.Volume.Disks = append(out.Volume.Disks, d.Number)
		out.Disks = append(out.Disks, &extensionv1.Disk{Number: &d.Number, Health: d.State, HealthReason: d.Reason})
	}
	return out, nil
}
