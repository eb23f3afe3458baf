package call

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	diskv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"
	diskv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta1"
	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta2"
	diskv1beta3 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta3"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	filesystemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	filesystemv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta1"
	filesystemv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta2"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	iscsiv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	smbv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1alpha1"
	smbv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta1"
	smbv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta2"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	volumev1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1alpha1"
	volumev1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta1"
	volumev1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta2"
	volumev1beta3 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta3"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
)

// files are the API definitions of all versions. The references also link their messages.
var files = []protoreflect.FileDescriptor{
	diskv1alpha1.File_github_com_kubernetes_csi_csi_proxy_client_api_disk_v1alpha1_api_proto,
	diskv1beta1.File_github_com_kubernetes_csi_csi_proxy_client_api_disk_v1beta1_api_proto,
	diskv1beta2.File_github_com_kubernetes_csi_csi_proxy_client_api_disk_v1beta2_api_proto,
	diskv1beta3.File_github_com_kubernetes_csi_csi_proxy_client_api_disk_v1beta3_api_proto,
	diskv1.File_github_com_kubernetes_csi_csi_proxy_client_api_disk_v1_api_proto,
	filesystemv1alpha1.File_github_com_kubernetes_csi_csi_proxy_client_api_filesystem_v1alpha1_api_proto,
	filesystemv1beta1.File_github_com_kubernetes_csi_csi_proxy_client_api_filesystem_v1beta1_api_proto,
	filesystemv1beta2.File_github_com_kubernetes_csi_csi_proxy_client_api_filesystem_v1beta2_api_proto,
	filesystemv1.File_github_com_kubernetes_csi_csi_proxy_client_api_filesystem_v1_api_proto,
	filesystemv2alpha1.File_github_com_kubernetes_csi_csi_proxy_client_api_filesystem_v2alpha1_api_proto,
	iscsiv1alpha1.File_github_com_kubernetes_csi_csi_proxy_client_api_iscsi_v1alpha1_api_proto,
	iscsiv1alpha2.File_github_com_kubernetes_csi_csi_proxy_client_api_iscsi_v1alpha2_api_proto,
	smbv1alpha1.File_github_com_kubernetes_csi_csi_proxy_client_api_smb_v1alpha1_api_proto,
	smbv1beta1.File_github_com_kubernetes_csi_csi_proxy_client_api_smb_v1beta1_api_proto,
	smbv1beta2.File_github_com_kubernetes_csi_csi_proxy_client_api_smb_v1beta2_api_proto,
	smbv1.File_github_com_kubernetes_csi_csi_proxy_client_api_smb_v1_api_proto,
	systemv1alpha1.File_github_com_kubernetes_csi_csi_proxy_client_api_system_v1alpha1_api_proto,
	volumev1alpha1.File_github_com_kubernetes_csi_csi_proxy_client_api_volume_v1alpha1_api_proto,
	volumev1beta1.File_github_com_kubernetes_csi_csi_proxy_client_api_volume_v1beta1_api_proto,
	volumev1beta2.File_github_com_kubernetes_csi_csi_proxy_client_api_volume_v1beta2_api_proto,
	volumev1beta3.File_github_com_kubernetes_csi_csi_proxy_client_api_volume_v1beta3_api_proto,
	volumev1.File_github_com_kubernetes_csi_csi_proxy_client_api_volume_v1_api_proto,
	volumev2alpha1.File_github_com_kubernetes_csi_csi_proxy_client_api_volume_v2alpha1_api_proto,
}
