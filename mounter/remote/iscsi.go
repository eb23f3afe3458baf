package remote

import (
	"context"

	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
)

type targets struct{ *Daemon }

var _ iscsi.Interface = targets{}

func (t targets) AddTargetPortal(ctx context.Context, in *iscsi.AddTargetPortalRequest) (*iscsi.AddTargetPortalResponse, error) {
	return ask[iscsi.AddTargetPortalResponse](ctx, t.targets, iscsiv1alpha2.NewIscsiClient, iscsiv1alpha2.IscsiClient.AddTargetPortal, in)
}

func (t targets) ConnectTarget(ctx context.Context, in *iscsi.ConnectTargetRequest) (*iscsi.ConnectTargetResponse, error) {
	return ask[iscsi.ConnectTargetResponse](ctx, t.targets, iscsiv1alpha2.NewIscsiClient, iscsiv1alpha2.IscsiClient.ConnectTarget, in)
}

func (t targets) DisconnectTarget(ctx context.Context, in *iscsi.DisconnectTargetRequest) (*iscsi.DisconnectTargetResponse, error) {
	return ask[iscsi.DisconnectTargetResponse](ctx, t.targets, iscsiv1alpha2.NewIscsiClient, iscsiv1alpha2.IscsiClient.DisconnectTarget, in)
}

func (t targets) DiscoverTargetPortal(ctx context.Context, in *iscsi.DiscoverTargetPortalRequest) (*iscsi.DiscoverTargetPortalResponse, error) {
	return ask[iscsi.DiscoverTargetPortalResponse](ctx, t.targets, iscsiv1alpha2.NewIscsiClient, iscsiv1alpha2.IscsiClient.DiscoverTargetPortal, in)
}

func (t targets) GetTargetDisks(ctx context.Context, in *iscsi.GetTargetDisksRequest) (*iscsi.GetTargetDisksResponse, error) {
	return ask[iscsi.GetTargetDisksResponse](ctx, t.targets, iscsiv1alpha2.NewIscsiClient, iscsiv1alpha2.IscsiClient.GetTargetDisks, in)
}

func (t targets) ListTargetPortals(ctx context.Context, in *iscsi.ListTargetPortalsRequest) (*iscsi.ListTargetPortalsResponse, error) {
	return ask[iscsi.ListTargetPortalsResponse](ctx, t.targets, iscsiv1alpha2.NewIscsiClient, iscsiv1alpha2.IscsiClient.ListTargetPortals, in)
}

func (t targets) RemoveTargetPortal(ctx context.Context, in *iscsi.RemoveTargetPortalRequest) (*iscsi.RemoveTargetPortalResponse, error) {
	return ask[iscsi.RemoveTargetPortalResponse](ctx, t.targets, iscsiv1alpha2.NewIscsiClient, iscsiv1alpha2.IscsiClient.RemoveTargetPortal, in)
}

func (t targets) SetMutualChapSecret(ctx context.Context, in *iscsi.SetMutualChapSecretRequest) (*iscsi.SetMutualChapSecretResponse, error) {
	return ask[iscsi.SetMutualChapSecretResponse](ctx, t.targets, iscsiv1alpha2.NewIscsiClient, iscsiv1alpha2.IscsiClient.SetMutualChapSecret, in)
}
