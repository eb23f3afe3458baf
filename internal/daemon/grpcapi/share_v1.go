package grpcapi

import (
	"context"

	sharev1 "github.com/kubernetes-csi/csi-proxy/client/extension/share/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
)

type shareV1 struct{ shares smb.Interface }

var _ sharev1.ShareMappingServer = shareV1{}

func newShareV1(s Services) any { return shareV1{s.SMB} }

func (s shareV1) NewSmbGlobalMapping(ctx context.Context, in *sharev1.NewSmbGlobalMappingRequest) (*sharev1.NewSmbGlobalMappingResponse, error) {
	_, err := s.shares.NewSMBGlobalMapping(ctx, &smb.NewSMBGlobalMappingRequest{
		RemotePath: in.RemotePath, LocalPath: in.LocalPath, Username: in.Username, Password: in.Password,
		Privacy: smb.Privacy(in.Privacy), RefuseOtherUser: in.RefuseOtherUser, // numbered alike
	})
	if err != nil {
		return nil, err
	}
	return &sharev1.NewSmbGlobalMappingResponse{}, nil
}
