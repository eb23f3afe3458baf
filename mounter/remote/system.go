package remote

import (
	"context"

	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
)

type services struct {
	*Daemon
	api systemv1alpha1.SystemClient
}

var _ system.Interface = services{}

func (s services) GetBIOSSerialNumber(ctx context.Context, in *system.GetBIOSSerialNumberRequest) (*system.GetBIOSSerialNumberResponse, error) {
	return ask[system.GetBIOSSerialNumberResponse](ctx, s.api.GetBIOSSerialNumber, in)
}

func (s services) GetService(ctx context.Context, in *system.GetServiceRequest) (*system.GetServiceResponse, error) {
	return ask[system.GetServiceResponse](ctx, s.api.GetService, in)
}

func (s services) StartService(ctx context.Context, in *system.StartServiceRequest) (*system.StartServiceResponse, error) {
	return ask[system.StartServiceResponse](ctx, s.api.StartService, in)
}

func (s services) StopService(ctx context.Context, in *system.StopServiceRequest) (*system.StopServiceResponse, error) {
	return ask[system.StopServiceResponse](ctx, s.api.StopService, in)
}
