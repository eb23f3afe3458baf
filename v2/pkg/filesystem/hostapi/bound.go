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

var _ Extended = boundHost{}

func (b boundHost) WithContext(ctx context.Context) HostAPI {
	b.ctx = ctx
	return b
}

func (b boundHost) Within(p *policy.Policy) HostAPI {
	b.host.files = p.Reach(b.host.m)
	return b
}
