package policy

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
)

// Filesystem limits a filesystem group to the working directories.
func (p *Policy) Filesystem(inner filesystem.Interface) filesystem.Interface {
	return limitedFilesystem{inner: inner, policy: p}
}

type limitedFilesystem struct {
	inner  filesystem.Interface
	policy *Policy
}

func (f limitedFilesystem) CreateSymlink(ctx context.Context, r *filesystem.CreateSymlinkRequest) (*filesystem.CreateSymlinkResponse, error) {
	if err := f.policy.Inside("create link to", r.SourcePath); err != nil {
		return nil, err
	}
	if err := f.policy.Inside("create link", r.TargetPath); err != nil {
		return nil, err
	}
	return f.inner.CreateSymlink(ctx, r)
}

func (f limitedFilesystem) IsSymlink(ctx context.Context, r *filesystem.IsSymlinkRequest) (*filesystem.IsSymlinkResponse, error) {
	if err := f.policy.Inside("inspect link", r.Path); err != nil {
		return nil, err
	}
	return f.inner.IsSymlink(ctx, r)
}

func (f limitedFilesystem) Mkdir(ctx context.Context, r *filesystem.MkdirRequest) (*filesystem.MkdirResponse, error) {
	if err := f.policy.Inside("create directory", r.Path); err != nil {
		return nil, err
	}
	return f.inner.Mkdir(ctx, r)
}

func (f limitedFilesystem) PathExists(ctx context.Context, r *filesystem.PathExistsRequest) (*filesystem.PathExistsResponse, error) {
	if err := f.policy.Inside("look up", r.Path); err != nil {
		return nil, err
	}
	return f.inner.PathExists(ctx, r)
}

// PathValid is of the library only: no version of the gRPC API has it.
func (f limitedFilesystem) PathValid(context.Context, *filesystem.PathValidRequest) (*filesystem.PathValidResponse, error) {
	return nil, winerr.New(winerr.Unsupported, "look up", "", "the daemon does not offer PathValid")
}

func (f limitedFilesystem) Rmdir(ctx context.Context, r *filesystem.RmdirRequest) (*filesystem.RmdirResponse, error) {
	if err := f.policy.Below("remove", r.Path); err != nil {
		return nil, err
	}
	return f.inner.Rmdir(ctx, r)
}

func (f limitedFilesystem) RmdirContents(ctx context.Context, r *filesystem.RmdirContentsRequest) (*filesystem.RmdirContentsResponse, error) {
	if err := f.policy.Below("remove contents of", r.Path); err != nil {
		return nil, err
	}
	return f.inner.RmdirContents(ctx, r)
}
