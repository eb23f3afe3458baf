package grpcapi

import (
	"context"

	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
)

type systemV1alpha1 struct{ system system.Interface }

var _ systemv1alpha1.SystemServer = systemV1alpha1{}

func newSystemV1alpha1(s Services) any { return systemV1alpha1{s.System} }

func (s systemV1alpha1) GetBIOSSerialNumber(ctx context.Context, _ *systemv1alpha1.GetBIOSSerialNumberRequest) (*systemv1alpha1.GetBIOSSerialNumberResponse, error) {
	out, err := responseOf(s.system.GetBIOSSerialNumber(ctx, &system.GetBIOSSerialNumberRequest{}))
	return &systemv1alpha1.GetBIOSSerialNumberResponse{SerialNumber: wireText(out.SerialNumber)}, err
}

func (s systemV1alpha1) StartService(ctx context.Context, in *systemv1alpha1.StartServiceRequest) (*systemv1alpha1.StartServiceResponse, error) {
	return empty[systemv1alpha1.StartServiceResponse](s.system.StartService(ctx, &system.StartServiceRequest{Name: in.Name}))
}

func (s systemV1alpha1) StopService(ctx context.Context, in *systemv1alpha1.StopServiceRequest) (*systemv1alpha1.StopServiceResponse, error) {
	return empty[systemv1alpha1.StopServiceResponse](s.system.StopService(ctx, &system.StopServiceRequest{Name: in.Name, Force: in.Force}))
}

func (s systemV1alpha1) GetService(ctx context.Context, in *systemv1alpha1.GetServiceRequest) (*systemv1alpha1.GetServiceResponse, error) {
	out, err := s.system.GetService(ctx, &system.GetServiceRequest{Name: in.Name})
	if err != nil {
		return nil, err
	}
	return &systemv1alpha1.GetServiceResponse{
		DisplayName: out.DisplayName,
		StartType:   systemv1alpha1.StartType(out.StartType),  // numbered alike
		Status:      systemv1alpha1.ServiceStatus(out.Status), // likewise
	}, nil
}
