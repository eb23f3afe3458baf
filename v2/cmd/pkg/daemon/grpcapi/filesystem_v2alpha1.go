package grpcapi

import (
	"context"

	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
)

// filesystemV2alpha1 also answers v1 and v1beta2.
type filesystemV2alpha1 struct{ filesystem filesystem.Interface }

var _ filesystemv2alpha1.FilesystemServer = filesystemV2alpha1{}

func newFilesystemV2alpha1(s Services) any { return filesystemV2alpha1{s.Filesystem} }

func (s filesystemV2alpha1) PathExists(ctx context.Context, in *filesystemv2alpha1.PathExistsRequest) (*filesystemv2alpha1.PathExistsResponse, error) {
	out, err := responseOf(s.filesystem.PathExists(ctx, &filesystem.PathExistsRequest{Path: in.Path}))
	return &filesystemv2alpha1.PathExistsResponse{Exists: out.Exists}, err
}

func (s filesystemV2alpha1) Mkdir(ctx context.Context, in *filesystemv2alpha1.MkdirRequest) (*filesystemv2alpha1.MkdirResponse, error) {
	return empty[filesystemv2alpha1.MkdirResponse](s.filesystem.Mkdir(ctx, &filesystem.MkdirRequest{Path: in.Path}))
}

func (s filesystemV2alpha1) Rmdir(ctx context.Context, in *filesystemv2alpha1.RmdirRequest) (*filesystemv2alpha1.RmdirResponse, error) {
	return empty[filesystemv2alpha1.RmdirResponse](s.filesystem.Rmdir(ctx, &filesystem.RmdirRequest{Path: in.Path, Force: in.Force}))
}

func (s filesystemV2alpha1) RmdirContents(ctx context.Context, in *filesystemv2alpha1.RmdirContentsRequest) (*filesystemv2alpha1.RmdirContentsResponse, error) {
	return empty[filesystemv2alpha1.RmdirContentsResponse](s.filesystem.RmdirContents(ctx, &filesystem.RmdirContentsRequest{Path: in.Path}))
}

func (s filesystemV2alpha1) CreateSymlink(ctx context.Context, in *filesystemv2alpha1.CreateSymlinkRequest) (*filesystemv2alpha1.CreateSymlinkResponse, error) {
	return empty[filesystemv2alpha1.CreateSymlinkResponse](s.filesystem.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: in.SourcePath, TargetPath: in.TargetPath}))
}

func (s filesystemV2alpha1) IsSymlink(ctx context.Context, in *filesystemv2alpha1.IsSymlinkRequest) (*filesystemv2alpha1.IsSymlinkResponse, error) {
	out, err := responseOf(s.filesystem.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: in.Path}))
	return &filesystemv2alpha1.IsSymlinkResponse{IsSymlink: out.IsSymlink}, err
}
