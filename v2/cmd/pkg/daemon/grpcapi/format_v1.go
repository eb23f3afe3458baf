package grpcapi

import (
	"context"

	"google.golang.org/protobuf/types/known/emptypb"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
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

type flushV1 struct{ volumes volume.Interface }

var _ extensionv1.VolumeFlushServer = flushV1{}

func newFlushV1(s Services) any { return flushV1{s.Volume} }

func (s flushV1) WriteVolumeCache(ctx context.Context, in *extensionv1.Volume) (*extensionv1.Volume, error) {
	const op = "write cache of volume"
	if err := onlyFields(op, in, "id", "mount_paths"); err != nil {
		return nil, err
	}
	if len(in.MountPaths) != 1 {
		return nil, winerr.New(winerr.Invalid, op, in.Id, "the request must have one path in mount_paths, not %d", len(in.MountPaths))
	}
	response, err := responseOf(s.volumes.WriteVolumeCache(ctx, &volume.WriteVolumeCacheRequest{VolumeID: in.Id, TargetPath: in.MountPaths[0]}))
	out := &extensionv1.Volume{Id: in.Id}
	if response.Loss != "" {
		out.Problems = wireProblems([]node.Problem{{Kind: node.Failure, Object: "cache", Text: response.Loss}})
	}
	return out, err
}
