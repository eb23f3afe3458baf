package grpcapi

import (
	"context"

	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
)

// iscsiV1alpha2 also answers v1alpha1.
type iscsiV1alpha2 struct{ iscsi iscsi.Interface }

var _ iscsiv1alpha2.IscsiServer = iscsiV1alpha2{}

func newISCSIV1alpha2(s Services) any { return iscsiV1alpha2{s.ISCSI} }

func (s iscsiV1alpha2) AddTargetPortal(ctx context.Context, in *iscsiv1alpha2.AddTargetPortalRequest) (*iscsiv1alpha2.AddTargetPortalResponse, error) {
	return empty[iscsiv1alpha2.AddTargetPortalResponse](s.iscsi.AddTargetPortal(ctx, &iscsi.AddTargetPortalRequest{TargetPortal: toPortal(in.TargetPortal)}))
}

func (s iscsiV1alpha2) DiscoverTargetPortal(ctx context.Context, in *iscsiv1alpha2.DiscoverTargetPortalRequest) (*iscsiv1alpha2.DiscoverTargetPortalResponse, error) {
	out, err := responseOf(s.iscsi.DiscoverTargetPortal(ctx, &iscsi.DiscoverTargetPortalRequest{TargetPortal: toPortal(in.TargetPortal)}))
	return &iscsiv1alpha2.DiscoverTargetPortalResponse{Iqns: out.IQNs}, err
}

func (s iscsiV1alpha2) RemoveTargetPortal(ctx context.Context, in *iscsiv1alpha2.RemoveTargetPortalRequest) (*iscsiv1alpha2.RemoveTargetPortalResponse, error) {
	return empty[iscsiv1alpha2.RemoveTargetPortalResponse](s.iscsi.RemoveTargetPortal(ctx, &iscsi.RemoveTargetPortalRequest{TargetPortal: toPortal(in.TargetPortal)}))
}

func (s iscsiV1alpha2) ListTargetPortals(ctx context.Context, _ *iscsiv1alpha2.ListTargetPortalsRequest) (*iscsiv1alpha2.ListTargetPortalsResponse, error) {
	out, err := s.iscsi.ListTargetPortals(ctx, &iscsi.ListTargetPortalsRequest{})
	if err != nil {
		return nil, err
	}
	portals := make([]*iscsiv1alpha2.TargetPortal, len(out.TargetPortals))
	for i, portal := range out.TargetPortals {
		portals[i] = &iscsiv1alpha2.TargetPortal{TargetAddress: portal.TargetAddress, TargetPort: portal.TargetPort}
	}
	return &iscsiv1alpha2.ListTargetPortalsResponse{TargetPortals: portals}, nil
}

func (s iscsiV1alpha2) ConnectTarget(ctx context.Context, in *iscsiv1alpha2.ConnectTargetRequest) (*iscsiv1alpha2.ConnectTargetResponse, error) {
	return empty[iscsiv1alpha2.ConnectTargetResponse](s.iscsi.ConnectTarget(ctx, &iscsi.ConnectTargetRequest{
		TargetPortal: toPortal(in.TargetPortal),
		IQN:          in.Iqn,
		AuthType:     iscsi.AuthenticationType(in.AuthType), // numbered alike
		ChapUsername: in.ChapUsername,
		ChapSecret:   in.ChapSecret,
	}))
}

func (s iscsiV1alpha2) DisconnectTarget(ctx context.Context, in *iscsiv1alpha2.DisconnectTargetRequest) (*iscsiv1alpha2.DisconnectTargetResponse, error) {
	return empty[iscsiv1alpha2.DisconnectTargetResponse](s.iscsi.DisconnectTarget(ctx, &iscsi.DisconnectTargetRequest{TargetPortal: toPortal(in.TargetPortal), IQN: in.Iqn}))
}

func (s iscsiV1alpha2) GetTargetDisks(ctx context.Context, in *iscsiv1alpha2.GetTargetDisksRequest) (*iscsiv1alpha2.GetTargetDisksResponse, error) {
	out, err := responseOf(s.iscsi.GetTargetDisks(ctx, &iscsi.GetTargetDisksRequest{TargetPortal: toPortal(in.TargetPortal), IQN: in.Iqn}))
	return &iscsiv1alpha2.GetTargetDisksResponse{DiskIDs: out.DiskIDs}, err
}

func (s iscsiV1alpha2) SetMutualChapSecret(ctx context.Context, in *iscsiv1alpha2.SetMutualChapSecretRequest) (*iscsiv1alpha2.SetMutualChapSecretResponse, error) {
	return empty[iscsiv1alpha2.SetMutualChapSecretResponse](s.iscsi.SetMutualChapSecret(ctx, &iscsi.SetMutualChapSecretRequest{MutualChapSecret: in.MutualChapSecret}))
}

// toPortal keeps a missing portal missing: the library says what is wrong.
func toPortal(portal *iscsiv1alpha2.TargetPortal) *iscsi.TargetPortal {
	if portal == nil {
		return nil
	}
	return &iscsi.TargetPortal{TargetAddress: portal.TargetAddress, TargetPort: portal.TargetPort}
}
