package grpcapi

import (
	"context"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

type healthV1 struct{ volumes volume.Extended }

var _ extensionv1.VolumeHealthServer = healthV1{}

func newHealthV1(s Services) any { return healthV1{s.Volume} }

func (s healthV1) CheckVolume(ctx context.Context, in *extensionv1.Volume) (*extensionv1.VolumeCondition, error) {
	health, err := s.volumes.Health(ctx, in.Id)
	if err != nil {
		return nil, err
	}
	out := &extensionv1.VolumeCondition{
		Volume: &extensionv1.Volume{
			Id: in.Id, FileSystem: wireText(health.FileSystem), ReadOnly: &health.ReadOnly, Dirty: &health.Dirty, Damage: string(health.Damage),
		},
		Problems: lineTexts(health.Problems()), Unknown: lineTexts(health.Unknown),
	}
	for _, d := range health.Disks {
		out.Volume.Disks = append(out.Volume.Disks, d.Number)
		out.Disks = append(out.Disks, &extensionv1.Disk{Number: &d.Number, Health: d.State, HealthReason: d.Reason})
	}
	return out, nil
}
