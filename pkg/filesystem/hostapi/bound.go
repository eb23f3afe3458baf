package api

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
)

// boundHost implements HostAPI: a host, and the context of its calls.
type boundHost struct {
	host host
	ctx  context.Context //nolint:containedctx // HostAPI's published methods take none, see WithContext
}

var (
	_ HostAPI       = boundHost{}
	_ ContextBinder = boundHost{}
	_ Limiter       = boundHost{}
	_ SpaceMeasurer = boundHost{}

	_ DirectoryLister = boundHost{}
	_ LinkReader      = boundHost{}
)

func (b boundHost) WithContext(ctx context.Context) HostAPI {
	b.ctx = ctx
	return b
}

func (b boundHost) Within(p *policy.Policy) HostAPI {
	b.host.files = p.Reach(b.host.m)
	return b
}

func (b boundHost) PathExists(path string) (bool, error) { return b.host.pathExists(b.ctx, path) }

func (b boundHost) PathValid(path string) (bool, error) { return b.host.pathValid(b.ctx, path) }

func (b boundHost) PathStats(path string) (totalBytes, availableBytes int64, err error) {
	return b.host.pathStats(b.ctx, path)
}

func (b boundHost) ListDirectory(path string, limit int) ([]DirectoryEntry, bool, error) {
	return b.host.list(b.ctx, path, limit)
}

func (b boundHost) ReadLink(path string) string { return b.host.readLink(b.ctx, path) }

func (b boundHost) Mkdir(path string) error { return b.host.mkdir(b.ctx, path) }

func (b boundHost) Rmdir(path string, force bool) error { return b.host.rmdir(b.ctx, path, force) }

func (b boundHost) RmdirContents(path string) error { return b.host.rmdirContents(b.ctx, path) }

func (b boundHost) CreateSymlink(oldname, newname string) error {
	return b.host.createSymlink(b.ctx, oldname, newname)
}

func (b boundHost) IsSymlink(path string) (bool, error) { return b.host.isSymlink(b.ctx, path) }
