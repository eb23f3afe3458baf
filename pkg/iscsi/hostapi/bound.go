package api

import "context"

var (
	_ HostAPI       = boundHost{}
	_ ContextBinder = boundHost{}
)

// boundHost implements HostAPI: it is a host, and the context of its caller.
type boundHost struct {
	ctx  context.Context //nolint:containedctx // HostAPI's published methods take none, see WithContext
	host *host
}

func bind(h *host) boundHost {
	return boundHost{ctx: context.Background(), host: h} //nolint:forbidigo // the published HostAPI has no context; WithContext replaces this one
}

// WithContext implements ContextBinder.
func (b boundHost) WithContext(ctx context.Context) HostAPI {
	b.ctx = ctx
	return b
}

// AddTargetPortal implements HostAPI.
func (b boundHost) AddTargetPortal(portal *TargetPortal) error {
	return b.host.addTargetPortal(b.ctx, portal)
}

// DiscoverTargetPortal implements HostAPI.
func (b boundHost) DiscoverTargetPortal(portal *TargetPortal) ([]string, error) {
	return b.host.discoverTargetPortal(b.ctx, portal)
}

// ListTargetPortals implements HostAPI.
func (b boundHost) ListTargetPortals() ([]TargetPortal, error) {
	return b.host.listTargetPortals(b.ctx)
}

// RemoveTargetPortal implements HostAPI.
func (b boundHost) RemoveTargetPortal(portal *TargetPortal) error {
	return b.host.removeTargetPortal(b.ctx, portal)
}

// ConnectTarget implements HostAPI.
func (b boundHost) ConnectTarget(portal *TargetPortal, iqn, authType, chapUser, chapSecret string) error {
	return b.host.connectTarget(b.ctx, portal, iqn, authType, chapUser, chapSecret)
}

// DisconnectTarget implements HostAPI.
func (b boundHost) DisconnectTarget(portal *TargetPortal, iqn string) error {
	return b.host.disconnectTarget(b.ctx, portal, iqn)
}

// GetTargetDisks implements HostAPI.
func (b boundHost) GetTargetDisks(portal *TargetPortal, iqn string) ([]string, error) {
	return b.host.targetDisks(b.ctx, portal, iqn)
}

// SetMutualChapSecret implements HostAPI.
func (b boundHost) SetMutualChapSecret(mutualChapSecret string) error {
	return b.host.setMutualChapSecret(b.ctx, mutualChapSecret)
}
