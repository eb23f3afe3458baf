package api

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
)

var _ Extended = boundHost{}

// boundHost implements HostAPI: it is a host, and the context of its caller.
type boundHost struct {
	ctx  context.Context //nolint:containedctx // HostAPI's published methods take none, see WithContext
	host host
}

func bind(h host) boundHost {
	return boundHost{ctx: context.Background(), host: h} //nolint:forbidigo // the published HostAPI has no context; WithContext replaces this one
}

func (b boundHost) WithContext(ctx context.Context) HostAPI {
	b.ctx = ctx
	return b
}

func (b boundHost) OnlyServices(list *servicelist.List) HostAPI {
	b.host.list = list
	return b
}
