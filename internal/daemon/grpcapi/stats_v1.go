package grpcapi

import (
	"context"

	statsv1 "github.com/kubernetes-csi/csi-proxy/client/extension/stats/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
)

type statsV1 struct{ files filesystem.PathMeasurer }

var _ statsv1.PathStatsServer = statsV1{}

func newStatsV1(s Services) any {
	if has, ok := s.Filesystem.(filesystem.PathMeasurer); ok {
		return statsV1{has}
	}
	return nil
}

func (s statsV1) GetPathStats(ctx context.Context, in *statsv1.GetPathStatsRequest) (*statsv1.GetPathStatsResponse, error) {
	out, err := s.files.GetPathStats(ctx, &filesystem.GetPathStatsRequest{Path: in.Path})
	if err != nil {
		return nil, err
	}
	return &statsv1.GetPathStatsResponse{TotalBytes: out.TotalBytes, UsedBytes: out.UsedBytes, AvailableBytes: out.AvailableBytes}, nil
}
