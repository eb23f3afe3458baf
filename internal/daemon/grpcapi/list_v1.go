package grpcapi

import (
	"context"

	listv1 "github.com/kubernetes-csi/csi-proxy/client/extension/list/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
)

type listV1 struct{ files filesystem.DirectoryLister }

var _ listv1.DirectoryListServer = listV1{}

func newListV1(s Services) any {
	if has, ok := s.Filesystem.(filesystem.DirectoryLister); ok {
		return listV1{has}
	}
	return nil
}

func (s listV1) ListDirectory(ctx context.Context, in *listv1.ListDirectoryRequest) (*listv1.ListDirectoryResponse, error) {
	found, err := s.files.ListDirectory(ctx, &filesystem.ListDirectoryRequest{Path: in.Path})
	if err != nil {
		return nil, err
	}
	out := &listv1.ListDirectoryResponse{Truncated: found.Truncated}
	for _, e := range found.Entries {
		out.Entries = append(out.Entries, &listv1.Entry{
			Name: wireText(e.Name), Type: listv1.Entry_Type(e.Type), Target: wireText(e.Target), // numbered alike
		})
	}
	return out, nil
}
