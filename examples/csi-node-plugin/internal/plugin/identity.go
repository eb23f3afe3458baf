package plugin

import (
	"context"
	"errors"
	"io/fs"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// identityServer says who the plugin is and whether it can work.
type identityServer struct {
	csi.UnimplementedIdentityServer
	config Config
}

func (s *identityServer) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: s.config.Name, VendorVersion: s.config.Version}, nil
}

func (s *identityServer) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	response := &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{
		Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{
			Type: csi.PluginCapability_VolumeExpansion_ONLINE,
		}},
	}}}
	if s.config.Controller {
		response.Capabilities = append(response.Capabilities, &csi.PluginCapability{
			Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{
				Type: csi.PluginCapability_Service_CONTROLLER_SERVICE,
			}},
		})
	}
	return response, nil
}

// Probe fails while the node's storage cannot be reached: the daemon does not answer, or the
// kubelet's directory is missing.
func (s *identityServer) Probe(ctx context.Context, _ *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	_, err := s.config.Mounter.WithContext(ctx).IsLikelyNotMountPoint(s.config.KubeletPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, status.Errorf(codes.FailedPrecondition, "%s does not exist; is it the kubelet's directory?", s.config.KubeletPath)
	case err != nil:
		return nil, status.Errorf(codes.FailedPrecondition, "the node's storage cannot be reached: %s", failure.Message(err))
	}
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}
