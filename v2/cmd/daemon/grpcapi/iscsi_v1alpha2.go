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
	if _, err := s.iscsi.AddTargetPortal(ctx, &iscsi.AddTargetPortalRequest{TargetPortal: toPortal(in.TargetPortal)}); err != nil {
		return nil, err
	}
	return &iscsiv1alpha2.AddTargetPortalResponse{}, nil
}

func (s iscsiV1alpha2) DiscoverTargetPortal(ctx context.Context, in *iscsiv1alpha2.DiscoverTargetPortalRequest) (*iscsiv1alpha2.DiscoverTargetPortalResponse, error) {
	out, err := s.iscsi.DiscoverTargetPortal(ctx, &iscsi.DiscoverTargetPortalRequest{TargetPortal: toPortal(in.TargetPortal)})
	if err != nil {
		return nil, err
	}
	return &iscsiv1alpha2.DiscoverTargetPortalResponse{Iqns: out.IQNs}, nil
}

func (s iscsiV1alpha2) RemoveTargetPortal(ctx context.Context, in *iscsiv1alpha2.RemoveTargetPortalRequest) (*iscsiv1alpha2.RemoveTargetPortalResponse, error) {
	if _, err := s.iscsi.RemoveTargetPortal(ctx, &iscsi.RemoveTargetPortalRequest{TargetPortal: toPortal(in.TargetPortal)}); err != nil {
		return nil, err
	}
	return &iscsiv1alpha2.RemoveTargetPortalResponse{}, nil
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
	_, err := s.iscsi.ConnectTarget(ctx, &iscsi.ConnectTargetRequest{
		TargetPortal: toPortal(in.TargetPortal),
		IQN:          in.Iqn,
		AuthType:     iscsi.AuthenticationType(in.AuthType), // numbered alike
		ChapUsername: in.ChapUsername,
		ChapSecret:   in.ChapSecret,
	})
	if err != nil {
		return nil, err
	}
	return &iscsiv1alpha2.ConnectTargetResponse{}, nil
}

func (s iscsiV1alpha2) DisconnectTarget(ctx context.Context, in *iscsiv1alpha2.DisconnectTargetRequest) (*iscsiv1alpha2.DisconnectTargetResponse, error) {
	if _, err := s.iscsi.DisconnectTarget(ctx, &iscsi.DisconnectTargetRequest{TargetPortal: toPortal(in.TargetPortal), IQN: in.Iqn}); err != nil {
		return nil, err
	}
	return &iscsiv1alpha2.DisconnectTargetResponse{}, nil
}

func (s iscsiV1alpha2) GetTargetDisks(ctx context.Context, in *iscsiv1alpha2.GetTargetDisksRequest) (*iscsiv1alpha2.GetTargetDisksResponse, error) {
	out, err := s.iscsi.GetTargetDisks(ctx, &iscsi.GetTargetDisksRequest{TargetPortal: toPortal(in.TargetPortal), IQN: in.Iqn})
	if err != nil {
		return nil, err
	}
	return &iscsiv1alpha2.GetTargetDisksResponse{DiskIDs: out.DiskIDs}, nil
}

func (s iscsiV1alpha2) SetMutualChapSecret(ctx context.Context, in *iscsiv1alpha2.SetMutualChapSecretRequest) (*iscsiv1alpha2.SetMutualChapSecretResponse, error) {
	if _, err := s.iscsi.SetMutualChapSecret(ctx, &iscsi.SetMutualChapSecretRequest{MutualChapSecret: in.MutualChapSecret}); err != nil {
		return nil, err
	}
	return &iscsiv1alpha2.SetMutualChapSecretResponse{}, nil
}

// toPortal keeps a missing portal missing: the library says what is wrong.
func toPortal(portal *iscsiv1alpha2.TargetPortal) *iscsi.TargetPortal {
	if portal == nil {
		return nil
	}
	return &iscsi.TargetPortal{TargetAddress: portal.TargetAddress, TargetPort: portal.TargetPort}
}
