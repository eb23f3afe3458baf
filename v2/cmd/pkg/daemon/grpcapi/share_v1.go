package grpcapi

import (
	"context"

	"google.golang.org/protobuf/types/known/emptypb"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
)

type shareV1 struct{ shares smb.Interface }

var _ extensionv1.ShareMappingServer = shareV1{}

func newShareV1(s Services) any { return shareV1{s.SMB} }

func (s shareV1) NewSmbGlobalMapping(ctx context.Context, in *extensionv1.NewSmbGlobalMappingRequest) (*emptypb.Empty, error) {
	request := &smb.NewSMBGlobalMappingRequest{
		RemotePath: in.RemotePath, LocalPath: in.LocalPath, Username: in.Username, Password: in.Password, RefuseOtherUser: in.RefuseOtherUser,
	}
	switch {
	case in.Private == nil:
	case *in.Private:
		request.Privacy = smb.PrivacyRequired
	default:
		request.Privacy = smb.PrivacyNotRequired
	}
	return empty[emptypb.Empty](s.shares.NewSMBGlobalMapping(ctx, request))
}

func (s shareV1) RemoveSmbGlobalMapping(ctx context.Context, in *extensionv1.RemoveSmbGlobalMappingRequest) (*emptypb.Empty, error) {
	return empty[emptypb.Empty](s.shares.RemoveSMBGlobalMapping(ctx, &smb.RemoveSMBGlobalMappingRequest{RemotePath: in.RemotePath, ExceptLink: in.ExceptLink}))
}
