package life_test

import (
	"context"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	kit "github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/test/drivers/ported/life"
)

type identity struct {
	csi.UnimplementedIdentityServer
}

func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// nodeService is the smallest node service on the kit. The serial number of a disk begins with the
// volume's id.
type nodeService struct {
	csi.UnimplementedNodeServer
	*kit.Mounter
}

func (s nodeService) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: "node-1"}, nil
}

func (s nodeService) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	_, err := s.Stage(ctx, kit.StageRequest{Path: r.StagingTargetPath, Source: kit.Disk{SerialPrefix: r.VolumeId}})
	return &csi.NodeStageVolumeResponse{}, err
}

func (s nodeService) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	return &csi.NodePublishVolumeResponse{}, s.Publish(ctx, r.StagingTargetPath, r.TargetPath)
}

func (s nodeService) NodeExpandVolume(ctx context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	_, err := s.Expand(ctx, r.VolumePath, r.CapacityRange.RequiredBytes)
	return &csi.NodeExpandVolumeResponse{}, err
}

func (s nodeService) NodeGetVolumeStats(ctx context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	usage, err := s.Stats(ctx, r.VolumePath)
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: usage.TotalBytes}}}, err
}

func (s nodeService) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	return &csi.NodeUnpublishVolumeResponse{}, s.Unpublish(ctx, r.TargetPath)
}

func (s nodeService) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, s.Unstage(ctx, kit.UnstageRequest{Path: r.StagingTargetPath, Offline: true})
}

func Test(t *testing.T) {
	life.Test(t, life.Driver{
		Model:   winsim.EBSNVMe(),
		Disk:    1,
		Volume:  life.Volume{ID: "vol0123456789abcdef0"},
		Missing: life.Volume{ID: "vol0999"},
		Offline: true,
		Serve: func(_ *winsim.Node, m *kit.Mounter) (csi.IdentityServer, csi.NodeServer) {
			return identity{}, nodeService{Mounter: m}
		},
	})
}
