package grpcapi

import (
	"context"

	"google.golang.org/protobuf/types/known/emptypb"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

type formatV1 struct{ volumes volume.Interface }

var _ extensionv1.VolumeFormatServer = formatV1{}

func newFormatV1(s Services) any { return formatV1{s.Volume} }

func (s formatV1) FormatVolume(ctx context.Context, in *extensionv1.Volume) (*emptypb.Empty, error) {
	if err := onlyFields("format volume", in, "id", "file_system", "cluster_size_bytes", "label", "root_access"); err != nil {
		return nil, err
	}
	return empty[emptypb.Empty](s.volumes.FormatVolume(ctx, &volume.FormatVolumeRequest{
		VolumeID: in.Id, FileSystem: in.FileSystem, AllocationUnitSize: in.ClusterSizeBytes, Label: in.Label, RootAccess: in.RootAccess,
	}))
}
