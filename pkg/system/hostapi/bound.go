package api

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
)

var (
	_ HostAPI        = boundHost{}
	_ ContextBinder  = boundHost{}
	_ ServiceLimiter = boundHost{}
)

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

func (b boundHost) GetBIOSSerialNumber() (string, error) { return b.host.serialNumber(b.ctx) }

func (b boundHost) GetService(name string) (*ServiceInfo, error) {
	return b.host.service(b.ctx, name)
}

func (b boundHost) StartService(name string) error { return b.host.startService(b.ctx, name) }

func (b boundHost) StopService(name string, force bool) error {
	return b.host.stopService(b.ctx, name, force)
}
