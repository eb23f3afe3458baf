package grpcapi

import (
	"context"

	"google.golang.org/protobuf/types/known/emptypb"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
)

type pathsV1 struct{ files filesystem.Extended }

var _ extensionv1.PathsServer = pathsV1{}

func newPathsV1(s Services) any { return pathsV1{s.Filesystem} }

func (s pathsV1) GetPathStats(ctx context.Context, in *extensionv1.Path) (*extensionv1.Space, error) {
	out, err := responseOf(s.files.GetPathStats(ctx, &filesystem.GetPathStatsRequest{Path: in.Path}))
	return &extensionv1.Space{TotalBytes: out.TotalBytes, AvailableBytes: out.AvailableBytes}, err
}

func (s pathsV1) SetRecord(ctx context.Context, in *extensionv1.Record) (*emptypb.Empty, error) {
	return empty[emptypb.Empty](s.files.SetRecord(ctx, &filesystem.SetRecordRequest{Path: in.Path, Record: in.Text}))
}

func (s pathsV1) GetRecord(ctx context.Context, in *extensionv1.Path) (*extensionv1.Record, error) {
	out, err := responseOf(s.files.GetRecord(ctx, &filesystem.GetRecordRequest{Path: in.Path}))
	return &extensionv1.Record{Path: in.Path, Text: out.Record, Problem: out.Problem}, err
}

func (s pathsV1) ListDirectory(ctx context.Context, in *extensionv1.Path) (*extensionv1.Directory, error) {
	found, err := s.files.ListDirectory(ctx, &filesystem.ListDirectoryRequest{Path: in.Path})
	if err != nil {
		return nil, err
	}
	out := &extensionv1.Directory{Truncated: found.Truncated}
	for _, e := range found.Entries {
		out.Entries = append(out.Entries, &extensionv1.Entry{Name: wireText(e.Name), Type: string(e.Type), Target: wireText(e.Target)})
	}
	return out, nil
}
