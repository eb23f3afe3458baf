package remote

import (
	"context"

	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
)

type shares struct {
	*Daemon
	api smbv1.SmbClient
}

var _ smb.Interface = shares{}

func (s shares) NewSMBGlobalMapping(ctx context.Context, in *smb.NewSMBGlobalMappingRequest) (*smb.NewSMBGlobalMappingResponse, error) {
	if in == nil || in.Privacy == smb.PrivacyDefault && !in.RefuseOtherUser {
		return ask[smb.NewSMBGlobalMappingResponse](ctx, s.api.NewSmbGlobalMapping, in)
	}
	request := &extensionv1.NewSmbGlobalMappingRequest{
		RemotePath: in.RemotePath, LocalPath: in.LocalPath, Username: in.Username, Password: in.Password, RefuseOtherUser: in.RefuseOtherUser,
	}
	if in.Privacy != smb.PrivacyDefault {
		private := in.Privacy != smb.PrivacyNotRequired
		request.Private = &private
	}
	_, err := extended(ctx, extensionv1.NewShareMappingClient(s.shares).NewSmbGlobalMapping, request,
		missing{"map share", in.RemotePath, "the options Privacy and RefuseOtherUser", omitOption})
	return &smb.NewSMBGlobalMappingResponse{}, err
}

// RemoveSMBGlobalMapping of a daemon that cannot except a link keeps the share until the link is gone.
func (s shares) RemoveSMBGlobalMapping(ctx context.Context, in *smb.RemoveSMBGlobalMappingRequest) (*smb.RemoveSMBGlobalMappingResponse, error) {
	if in != nil && in.ExceptLink != "" {
		_, err := extensionv1.NewShareMappingClient(s.shares).RemoveSmbGlobalMapping(ctx, &extensionv1.RemoveSmbGlobalMappingRequest{RemotePath: in.RemotePath, ExceptLink: in.ExceptLink})
		if !isUnsupported(err) {
			return &smb.RemoveSMBGlobalMappingResponse{}, err
		}
		in = &smb.RemoveSMBGlobalMappingRequest{RemotePath: in.RemotePath}
	}
	return ask[smb.RemoveSMBGlobalMappingResponse](ctx, s.api.RemoveSmbGlobalMapping, in)
}
