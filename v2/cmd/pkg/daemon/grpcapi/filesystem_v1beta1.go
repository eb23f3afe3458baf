package grpcapi

import (
	"context"

	filesystemv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
)

// filesystemV1beta1 has a path context in requests, an error text in responses,
// and calls links mount points. It also answers v1alpha1.
//
// The context, plugin or pod, once chose the directory a path had to be in. The
// daemon's policy knows all directories it allows and looks only at the path, so
// the context is ignored. The error text never reached a client: gRPC sends a
// status instead of a response when a call fails. It stays empty.
type filesystemV1beta1 struct{ filesystem filesystem.Interface }

var _ filesystemv1beta1.FilesystemServer = filesystemV1beta1{}

func newFilesystemV1beta1(s Services) any { return filesystemV1beta1{s.Filesystem} }

func (s filesystemV1beta1) PathExists(ctx context.Context, in *filesystemv1beta1.PathExistsRequest) (*filesystemv1beta1.PathExistsResponse, error) {
	out, err := responseOf(s.filesystem.PathExists(ctx, &filesystem.PathExistsRequest{Path: in.Path}))
	return &filesystemv1beta1.PathExistsResponse{Exists: out.Exists}, err
}

func (s filesystemV1beta1) Mkdir(ctx context.Context, in *filesystemv1beta1.MkdirRequest) (*filesystemv1beta1.MkdirResponse, error) {
	return empty[filesystemv1beta1.MkdirResponse](s.filesystem.Mkdir(ctx, &filesystem.MkdirRequest{Path: in.Path}))
}

func (s filesystemV1beta1) Rmdir(ctx context.Context, in *filesystemv1beta1.RmdirRequest) (*filesystemv1beta1.RmdirResponse, error) {
	return empty[filesystemv1beta1.RmdirResponse](s.filesystem.Rmdir(ctx, &filesystem.RmdirRequest{Path: in.Path, Force: in.Force}))
}

func (s filesystemV1beta1) LinkPath(ctx context.Context, in *filesystemv1beta1.LinkPathRequest) (*filesystemv1beta1.LinkPathResponse, error) {
	return empty[filesystemv1beta1.LinkPathResponse](s.filesystem.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: in.SourcePath, TargetPath: in.TargetPath}))
}

func (s filesystemV1beta1) IsMountPoint(ctx context.Context, in *filesystemv1beta1.IsMountPointRequest) (*filesystemv1beta1.IsMountPointResponse, error) {
	out, err := responseOf(s.filesystem.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: in.Path}))
	return &filesystemv1beta1.IsMountPointResponse{IsMountPoint: out.IsSymlink}, err
}
