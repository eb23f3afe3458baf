package grpcapi

import (
	"context"

	sharev1 "github.com/kubernetes-csi/csi-proxy/client/extension/share/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
)

// shareGroup is the group whose endpoints also map shares with options.
const shareGroup = "smb"

type shareV1 struct{ shares smb.Interface }

var _ sharev1.ShareMappingServer = shareV1{}

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
