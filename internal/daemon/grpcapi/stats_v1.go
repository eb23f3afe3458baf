package grpcapi

import (
	"context"

	"google.golang.org/grpc"

	statsv1 "github.com/kubernetes-csi/csi-proxy/client/extension/stats/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
)

// statsGroup is the group whose endpoints also measure volumes and shares by path.
const statsGroup = "filesystem"

// registerStats adds the service if the files have it.
func registerStats(r grpc.ServiceRegistrar, files filesystem.Interface) {
	if has, ok := files.(filesystem.PathMeasurer); ok {
		statsv1.RegisterPathStatsServer(r, statsV1{has})
	}
}

type statsV1 struct{ files filesystem.PathMeasurer }

var _ statsv1.PathStatsServer = statsV1{}

func (s statsV1) GetPathStats(ctx context.Context, in *statsv1.GetPathStatsRequest) (*statsv1.GetPathStatsResponse, error) {
	out, err := s.files.GetPathStats(ctx, &filesystem.GetPathStatsRequest{Path: in.Path})
	if err != nil {
		return nil, err
	}
	return &statsv1.GetPathStatsResponse{TotalBytes: out.TotalBytes, UsedBytes: out.UsedBytes, AvailableBytes: out.AvailableBytes}, nil
}
