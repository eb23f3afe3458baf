package remote

import (
	"context"

	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
)

type targets struct {
	*Daemon
	api iscsiv1alpha2.IscsiClient
}

var _ iscsi.Interface = targets{}

func (t targets) AddTargetPortal(ctx context.Context, in *iscsi.AddTargetPortalRequest) (*iscsi.AddTargetPortalResponse, error) {
	return ask[iscsi.AddTargetPortalResponse](ctx, t.api.AddTargetPortal, in)
}

func (t targets) ConnectTarget(ctx context.Context, in *iscsi.ConnectTargetRequest) (*iscsi.ConnectTargetResponse, error) {
	return ask[iscsi.ConnectTargetResponse](ctx, t.api.ConnectTarget, in)
}

func (t targets) DisconnectTarget(ctx context.Context, in *iscsi.DisconnectTargetRequest) (*iscsi.DisconnectTargetResponse, error) {
	return ask[iscsi.DisconnectTargetResponse](ctx, t.api.DisconnectTarget, in)
}

func (t targets) DiscoverTargetPortal(ctx context.Context, in *iscsi.DiscoverTargetPortalRequest) (*iscsi.DiscoverTargetPortalResponse, error) {
	return ask[iscsi.DiscoverTargetPortalResponse](ctx, t.api.DiscoverTargetPortal, in)
}

func (t targets) GetTargetDisks(ctx context.Context, in *iscsi.GetTargetDisksRequest) (*iscsi.GetTargetDisksResponse, error) {
	return ask[iscsi.GetTargetDisksResponse](ctx, t.api.GetTargetDisks, in)
}

func (t targets) ListTargetPortals(ctx context.Context, in *iscsi.ListTargetPortalsRequest) (*iscsi.ListTargetPortalsResponse, error) {
	return ask[iscsi.ListTargetPortalsResponse](ctx, t.api.ListTargetPortals, in)
}

func (t targets) RemoveTargetPortal(ctx context.Context, in *iscsi.RemoveTargetPortalRequest) (*iscsi.RemoveTargetPortalResponse, error) {
	return ask[iscsi.RemoveTargetPortalResponse](ctx, t.api.RemoveTargetPortal, in)
}

func (t targets) SetMutualChapSecret(ctx context.Context, in *iscsi.SetMutualChapSecretRequest) (*iscsi.SetMutualChapSecretResponse, error) {
	return ask[iscsi.SetMutualChapSecretResponse](ctx, t.api.SetMutualChapSecret, in)
}
