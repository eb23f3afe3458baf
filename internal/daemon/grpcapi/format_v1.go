package grpcapi

import (
	"context"

	formatv1 "github.com/kubernetes-csi/csi-proxy/client/extension/format/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

type formatV1 struct{ volumes volume.Interface }

var _ formatv1.VolumeFormatServer = formatV1{}

func newFormatV1(s Services) any { return formatV1{s.Volume} }

func (s formatV1) FormatVolume(ctx context.Context, in *formatv1.FormatVolumeRequest) (*formatv1.FormatVolumeResponse, error) {
	_, err := s.volumes.FormatVolume(ctx, &volume.FormatVolumeRequest{
		VolumeID: in.VolumeId, AllocationUnitSize: in.AllocationUnitSize, Label: in.Label, RootAccess: in.RootAccess,
	})
	if err != nil {
		return nil, err
	}
	return &formatv1.FormatVolumeResponse{}, nil
}
