//go:build unix

package command_test

import (
	"google.golang.org/grpc"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
)

// newestServices are the groups in the versions that commands are written for.
var newestServices = []grpc.ServiceDesc{
	diskv1.Disk_ServiceDesc,
	filesystemv2alpha1.Filesystem_ServiceDesc,
	iscsiv1alpha2.Iscsi_ServiceDesc,
	smbv1.Smb_ServiceDesc,
	systemv1alpha1.System_ServiceDesc,
	volumev2alpha1.Volume_ServiceDesc,
}
