package grpcapi

import (
	"context"

	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
)

// smbV1 also answers v1beta2, v1beta1 and v1alpha1. The last two have an error
// text in responses, which stays empty: a call that fails has no response.
type smbV1 struct{ smb smb.Interface }

var _ smbv1.SmbServer = smbV1{}

func newSMBV1(s Services) any { return smbV1{s.SMB} }

func (s smbV1) NewSmbGlobalMapping(ctx context.Context, in *smbv1.NewSmbGlobalMappingRequest) (*smbv1.NewSmbGlobalMappingResponse, error) {
	return empty[smbv1.NewSmbGlobalMappingResponse](s.smb.NewSMBGlobalMapping(ctx, &smb.NewSMBGlobalMappingRequest{
		RemotePath: in.RemotePath,
		LocalPath:  in.LocalPath,
		Username:   in.Username,
		Password:   in.Password,
	}))
}

func (s smbV1) RemoveSmbGlobalMapping(ctx context.Context, in *smbv1.RemoveSmbGlobalMappingRequest) (*smbv1.RemoveSmbGlobalMappingResponse, error) {
	return empty[smbv1.RemoveSmbGlobalMappingResponse](s.smb.RemoveSMBGlobalMapping(ctx, &smb.RemoveSMBGlobalMappingRequest{RemotePath: in.RemotePath}))
}
