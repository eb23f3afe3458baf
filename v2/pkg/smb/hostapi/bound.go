package api

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
)

var _ Extended = boundHost{}

// boundHost implements HostAPI: a host, and the context of its calls.
type boundHost struct {
	host host
	ctx  context.Context //nolint:containedctx // HostAPI's published methods take none, see WithContext
}

func (b boundHost) WithContext(ctx context.Context) HostAPI {
	b.ctx = ctx
	return b
}

func (b boundHost) Within(p *policy.Policy) HostAPI {
	b.host.limits = p
	return b
}

func (b boundHost) WithPrivacy(required bool) HostAPI {
	b.host.privacy = required
	return b
}

func (b boundHost) WithSameUser(required bool) HostAPI {
	b.host.sameUser = required
	return b
}

func (b boundHost) NewSMBGlobalMapping(remotePath, username, password string) error {
	return b.host.mapShare(b.ctx, remotePath, "", username, password)
}

func (b boundHost) RemoveSMBGlobalMapping(remotePath string) error {
	return b.host.unmap(b.ctx, remotePath, "")
}

func (b boundHost) RemoveSMBGlobalMappingExcept(remotePath, localPath string) error {
	return b.host.unmap(b.ctx, remotePath, localPath)
}

func (b boundHost) MapSMBShare(remotePath, localPath, username, password string) error {
	return b.host.mapShare(b.ctx, remotePath, localPath, username, password)
}

func (b boundHost) LinksGone(path string) { b.host.linksGone(b.ctx, path) }

func (b boundHost) MappingFacts(remotePath string) MappingFacts {
	return b.host.mappingFacts(remotePath)
}
