// Package grpcapi serves the published gRPC APIs on top of the library: six
// groups in 23 versions, each on its own endpoint.
//
// Most versions are the same bytes under another service name. So there are only ten
// handlers, one for each wire format of a group, in files named after their version. The
// other 13 versions are aliases (alias.go): they have their own name and methods, and a
// newer version's handler answers them. A test compares the messages of both, field by
// field.
//
// The table in Endpoints lists everything. To add a version, add its line: an alias if
// the test agrees, otherwise a handler in a new file.
//
// Handlers only translate: request in, one call of the library, response out. They return
// the library's errors unchanged; the server's edge turns them into gRPC errors with
// Status. Everything here is safe for concurrent use if the Services are.
//
// Besides the published APIs there are extensions, services of our own; the table extensions lists them.
package grpcapi

import (
	"slices"
	"strings"

	"google.golang.org/grpc"

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
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

// Endpoints returns every group and version there is: groups by name, the
// versions of each from the oldest to the newest. The caller owns the slice.
func Endpoints() []Endpoint {
	return []Endpoint{
		{"disk", "v1alpha1", &diskv1alpha1.Disk_ServiceDesc, newDiskV1alpha1},
		{"disk", "v1beta1", alias(&diskv1beta2.Disk_ServiceDesc, &diskv1beta1.Disk_ServiceDesc), newDiskV1beta2},
		{"disk", "v1beta2", &diskv1beta2.Disk_ServiceDesc, newDiskV1beta2},
		{"disk", "v1beta3", alias(&diskv1.Disk_ServiceDesc, &diskv1beta3.Disk_ServiceDesc), newDiskV1},
		{"disk", "v1", &diskv1.Disk_ServiceDesc, newDiskV1},

		{"filesystem", "v1alpha1", alias(&filesystemv1beta1.Filesystem_ServiceDesc, &filesystemv1alpha1.Filesystem_ServiceDesc), newFilesystemV1beta1},
		{"filesystem", "v1beta1", &filesystemv1beta1.Filesystem_ServiceDesc, newFilesystemV1beta1},
		{"filesystem", "v1beta2", alias(&filesystemv2alpha1.Filesystem_ServiceDesc, &filesystemv1beta2.Filesystem_ServiceDesc), newFilesystemV2alpha1},
		{"filesystem", "v1", alias(&filesystemv2alpha1.Filesystem_ServiceDesc, &filesystemv1.Filesystem_ServiceDesc), newFilesystemV2alpha1},
		{"filesystem", "v2alpha1", &filesystemv2alpha1.Filesystem_ServiceDesc, newFilesystemV2alpha1},

		{"iscsi", "v1alpha1", alias(&iscsiv1alpha2.Iscsi_ServiceDesc, &iscsiv1alpha1.Iscsi_ServiceDesc), newISCSIV1alpha2},
		{"iscsi", "v1alpha2", &iscsiv1alpha2.Iscsi_ServiceDesc, newISCSIV1alpha2},

		{"smb", "v1alpha1", alias(&smbv1.Smb_ServiceDesc, &smbv1alpha1.Smb_ServiceDesc), newSMBV1},
		{"smb", "v1beta1", alias(&smbv1.Smb_ServiceDesc, &smbv1beta1.Smb_ServiceDesc), newSMBV1},
		{"smb", "v1beta2", alias(&smbv1.Smb_ServiceDesc, &smbv1beta2.Smb_ServiceDesc), newSMBV1},
		{"smb", "v1", &smbv1.Smb_ServiceDesc, newSMBV1},

		{"system", "v1alpha1", &systemv1alpha1.System_ServiceDesc, newSystemV1alpha1},

		{"volume", "v1alpha1", alias(&volumev1beta2.Volume_ServiceDesc, &volumev1alpha1.Volume_ServiceDesc), newVolumeV1beta2},
		{"volume", "v1beta1", alias(&volumev1beta2.Volume_ServiceDesc, &volumev1beta1.Volume_ServiceDesc), newVolumeV1beta2},
		{"volume", "v1beta2", &volumev1beta2.Volume_ServiceDesc, newVolumeV1beta2},
		{"volume", "v1beta3", alias(&volumev2alpha1.Volume_ServiceDesc, &volumev1beta3.Volume_ServiceDesc), newVolumeV2alpha1},
		{"volume", "v1", alias(&volumev2alpha1.Volume_ServiceDesc, &volumev1.Volume_ServiceDesc), newVolumeV2alpha1},
		{"volume", "v2alpha1", &volumev2alpha1.Volume_ServiceDesc, newVolumeV2alpha1},
	}
}

// Services are the parts of the library that the handlers call.
type Services struct {
	// Inspector describes the node; nil if that is not allowed. See Describes.
	Inspector Inspector
	// Annotate adds to a description what the daemon has learned before; may be nil.
	Annotate func(*extensionv1.Node)
	// Healer finds and removes stale mounts; nil if there is none.
	Healer Healer

	Disk       disk.Extended
	Filesystem filesystem.Extended
	ISCSI      iscsi.Interface
	SMB        smb.Interface
	System     system.Interface
	Volume     volume.Extended
}

// Endpoint is one version of one group, with its own server and pipe or socket.
type Endpoint struct {
	Group   string // "disk"
	Version string // "v1"

	desc *grpc.ServiceDesc
	// newHandler returns the handler for desc.
	newHandler func(Services) any
}

// Private returns an endpoint of a service that is not published and not part of a group. The
// group and version name its pipe or socket.
func Private(group, version string, desc *grpc.ServiceDesc, handler any) Endpoint {
	return Endpoint{group, version, desc, func(Services) any { return handler }}
}

// Name returns group and version as they are written in flags and logs, such as
// "disk/v1".
func (e Endpoint) Name() string { return e.Group + "/" + e.Version }

// ServiceName returns the full name of the gRPC service, such as "v1.Disk".
func (e Endpoint) ServiceName() string { return e.desc.ServiceName }

// extensions are the services of our own: the inspector, which only reads, and what the published
// methods of a group cannot do.
var extensions = []struct {
	group string // whose endpoints have it: an endpoint of its own would be one more pipe to guard
	desc  *grpc.ServiceDesc
	// newHandler returns the handler for desc, or nil if the services do not have what it needs.
	newHandler func(Services) any
}{
	{inspectorGroup, &extensionv1.Inspector_ServiceDesc, newInspectorV1},
	{"disk", &extensionv1.DiskReadOnly_ServiceDesc, newReadOnlyV1},
	{"disk", &extensionv1.DiskChange_ServiceDesc, newDiskChangeV1},
	{"volume", &extensionv1.VolumeFormat_ServiceDesc, newFormatV1},
	{"volume", &extensionv1.VolumeHealth_ServiceDesc, newHealthV1},
	{"volume", &extensionv1.VolumeFlush_ServiceDesc, newFlushV1},
	{"smb", &extensionv1.ShareMapping_ServiceDesc, newShareV1},
	{"filesystem", &extensionv1.Paths_ServiceDesc, newPathsV1},
	{HealGroup, &extensionv1.Healer_ServiceDesc, newHealV1},
}

// Register adds the endpoint's service to a gRPC server, and the extensions beside its group. Their
// handlers call the services of s, which must have the endpoint's group.
func (e Endpoint) Register(r grpc.ServiceRegistrar, s Services) {
	r.RegisterService(e.desc, e.newHandler(s))
	for _, extension := range extensions {
		if extension.group != e.Group {
			continue
		}
		if handler := extension.newHandler(s); handler != nil {
			r.RegisterService(extension.desc, handler)
		}
	}
}

// Select returns the endpoints that at least one pattern names, each once and in
// the order of Endpoints. A pattern is a group ("disk", all its versions), a
// group and version ("disk/v1") or "*". No pattern at all means all endpoints.
//
// A pattern that names nothing is an error: it is a typing error on the command line,
// which would otherwise show up as a missing pipe.
func Select(patterns []string) ([]Endpoint, error) {
	all := Endpoints()
	if len(patterns) == 0 {
		return all, nil
	}
	for _, pattern := range patterns {
		if !slices.ContainsFunc(all, func(e Endpoint) bool { return e.matches(pattern) }) {
			return nil, winerr.New(winerr.Invalid, "select API groups", quote(pattern),
				"unknown group or version; known are %s", names(all))
		}
	}
	return slices.DeleteFunc(all, func(e Endpoint) bool { return !slices.ContainsFunc(patterns, e.matches) }), nil
}

func (e Endpoint) matches(pattern string) bool {
	return pattern == "*" || pattern == e.Group || pattern == e.Name()
}

func names(endpoints []Endpoint) string {
	all := make([]string, len(endpoints))
	for i, e := range endpoints {
		all[i] = e.Name()
	}
	return strings.Join(all, ", ")
}
