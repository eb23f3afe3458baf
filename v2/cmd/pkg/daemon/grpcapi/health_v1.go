package grpcapi

import (
	"context"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

type healthV1 struct{ volumes volume.Extended }

var _ extensionv1.VolumeHealthServer = healthV1{}

func newHealthV1(s Services) any { return healthV1{s.Volume} }

func (s healthV1) CheckVolume(ctx context.Context, in *extensionv1.Volume) (*extensionv1.Node, error) {
	health, err := s.volumes.Health(ctx, in.Id)
	if err != nil {
		return nil, err
	}
	v := node.Volume{ID: in.Id, State: extensionv1.VolumeFormatted, FileSystem: health.FileSystem, ReadOnly: &health.ReadOnly, Dirty: &health.Dirty, Damage: health.Damage}
	for _, text := range health.Unknown {
		v.Problems = append(v.Problems, node.Problem{Kind: node.Failure, Object: "health", Text: text})
	}
	found, online := &node.Description{}, true // as the volume answers
	for _, d := range health.Disks {
		v.Disks = append(v.Disks, d.Number)
		found.Disks = append(found.Disks, node.Disk{Number: &d.Number, Online: &online, Health: d.State, HealthReason: d.Reason})
	}
	found.Volumes = []node.Volume{v}
	return WireNode(found), nil
}
