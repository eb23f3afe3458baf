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
	b.host.limits = p
	return b
}

func (b boundHost) MountVolume(volumeID, targetPath string) error {
	return b.host.atFolder(b.ctx, opMount, volumeID, targetPath, policy.Mount, b.host.mount)
}

func (b boundHost) UnmountVolume(volumeID, targetPath string) error {
	return b.host.atFolder(b.ctx, opUnmount, volumeID, targetPath, policy.Unmount, b.host.unmount)
}

func (b boundHost) FormatVolume(volumeID string) error {
	return b.host.formatVolume(b.ctx, volumeID, FormatOptions{})
}

func (b boundHost) FormatVolumeWithOptions(volumeID string, options FormatOptions) error {
	return b.host.formatVolume(b.ctx, volumeID, options)
}
