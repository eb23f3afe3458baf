package grpcapi_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

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
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

// clients holds, by endpoint, the constructor of its generated client.
var clients = map[string]func(grpc.ClientConnInterface) any{
	"disk/v1alpha1":       client(diskv1alpha1.NewDiskClient),
	"disk/v1beta1":        client(diskv1beta1.NewDiskClient),
	"disk/v1beta2":        client(diskv1beta2.NewDiskClient),
	"disk/v1beta3":        client(diskv1beta3.NewDiskClient),
	"disk/v1":             client(diskv1.NewDiskClient),
	"filesystem/v1alpha1": client(filesystemv1alpha1.NewFilesystemClient),
	"filesystem/v1beta1":  client(filesystemv1beta1.NewFilesystemClient),
	"filesystem/v1beta2":  client(filesystemv1beta2.NewFilesystemClient),
	"filesystem/v1":       client(filesystemv1.NewFilesystemClient),
	"filesystem/v2alpha1": client(filesystemv2alpha1.NewFilesystemClient),
	"iscsi/v1alpha1":      client(iscsiv1alpha1.NewIscsiClient),
	"iscsi/v1alpha2":      client(iscsiv1alpha2.NewIscsiClient),
	"smb/v1alpha1":        client(smbv1alpha1.NewSmbClient),
	"smb/v1beta1":         client(smbv1beta1.NewSmbClient),
	"smb/v1beta2":         client(smbv1beta2.NewSmbClient),
	"smb/v1":              client(smbv1.NewSmbClient),
	"system/v1alpha1":     client(systemv1alpha1.NewSystemClient),
	"volume/v1alpha1":     client(volumev1alpha1.NewVolumeClient),
	"volume/v1beta1":      client(volumev1beta1.NewVolumeClient),
	"volume/v1beta2":      client(volumev1beta2.NewVolumeClient),
	"volume/v1beta3":      client(volumev1beta3.NewVolumeClient),
	"volume/v1":           client(volumev1.NewVolumeClient),
	"volume/v2alpha1":     client(volumev2alpha1.NewVolumeClient),
}

func client[C any](construct func(grpc.ClientConnInterface) C) func(grpc.ClientConnInterface) any {
	return func(conn grpc.ClientConnInterface) any { return construct(conn) }
}

// remote calls methods of a generated client by name.
type remote struct{ client reflect.Value }

func newRemote(t *testing.T, e grpcapi.Endpoint, s grpcapi.Services) remote {
	t.Helper()
	return remote{reflect.ValueOf(clients[e.Name()](dial(t, e, s, grpc.UnaryInterceptor(withStatus))))}
}

// methods returns the names of the client's methods.
func (r remote) methods() []string {
	var all []string
	for method := range r.client.Type().Methods() {
		all = append(all, method.Name)
	}
	return all
}

// request returns a new request of a method, read from prototext.
func (r remote) request(t *testing.T, method, text string) proto.Message {
	t.Helper()
	return message(t, r.client.MethodByName(method).Type().In(1), text)
}

// response returns a new response of a method, read from prototext.
func (r remote) response(t *testing.T, method, text string) proto.Message {
	t.Helper()
	return message(t, r.client.MethodByName(method).Type().Out(0), text)
}

func message(t *testing.T, pointer reflect.Type, text string) proto.Message {
	t.Helper()
	m := reflect.New(pointer.Elem()).Interface().(proto.Message)
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		t.Fatalf("%s: %v", pointer, err)
	}
	return m
}

func (r remote) call(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
	out := r.client.MethodByName(method).Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(request)})
	err, _ := reflect.TypeAssert[error](out[1])
	return out[0].Interface().(proto.Message), err
}

// translation is one call: what the client sends, what the library must then get,
// and what the client must receive given the answers of the fakes.
type translation struct {
	method   string
	request  string // prototext
	library  any
	response string // prototext
}

// translations holds the calls of every handler, by the endpoint for which it was
// written. Its aliases must do the same with what methods they have.
var translations = map[string][]translation{
	"disk/v1": {
		{"ListDiskLocations", ``, &disk.ListDiskLocationsRequest{}, `
			disk_locations {key: 0 value {Adapter: "1" Bus: "2" Target: "3" LUNID: "4"}}
			disk_locations {key: 7 value {Adapter: "5"}}`},
		{"PartitionDisk", `disk_number: 4294967295`, &disk.PartitionDiskRequest{DiskNumber: 4294967295}, ``},
		{"Rescan", ``, &disk.RescanRequest{}, ``},
		{"ListDiskIDs", ``, &disk.ListDiskIDsRequest{}, `
			diskIDs {key: 0 value {page83: "Google  pvc-1" serial_number: "S0"}}
			diskIDs {key: 2 value {serial_number: "S\uFFFD2"}}
			diskIDs {key: 4294967295 value {}}`},
		{"GetDiskStats", `disk_number: 7`, &disk.GetDiskStatsRequest{DiskNumber: 7}, `total_bytes: 1099511627776`},
		{"SetDiskState", `disk_number: 7 is_online: true`, &disk.SetDiskStateRequest{DiskNumber: 7, IsOnline: true}, ``},
		{"SetDiskState", `disk_number: 7`, &disk.SetDiskStateRequest{DiskNumber: 7}, ``},
		{"GetDiskState", `disk_number: 7`, &disk.GetDiskStateRequest{DiskNumber: 7}, `is_online: true`},
	},
	"disk/v1beta2": {
		{"ListDiskLocations", ``, &disk.ListDiskLocationsRequest{}, `
			disk_locations {key: "0" value {Adapter: "1" Bus: "2" Target: "3" LUNID: "4"}}
			disk_locations {key: "7" value {Adapter: "5"}}`},
		{"PartitionDisk", `diskID: "4294967295"`, &disk.PartitionDiskRequest{DiskNumber: 4294967295}, ``},
		{"Rescan", ``, &disk.RescanRequest{}, ``},
		{"ListDiskIDs", ``, &disk.ListDiskIDsRequest{}, `
			diskIDs {key: "0" value {
				identifiers {key: "page83" value: "Google  pvc-1"}
				identifiers {key: "serialNumber" value: "S0"}
			}}
			diskIDs {key: "2" value {identifiers {key: "page83" value: ""} identifiers {key: "serialNumber" value: "S\uFFFD2"}}}
			diskIDs {key: "4294967295" value {identifiers {key: "page83" value: ""} identifiers {key: "serialNumber" value: ""}}}`},
		{"DiskStats", `diskID: "7"`, &disk.GetDiskStatsRequest{DiskNumber: 7}, `diskSize: 1099511627776`},
		{"SetAttachState", `diskID: "7" isOnline: true`, &disk.SetDiskStateRequest{DiskNumber: 7, IsOnline: true}, ``},
		{"SetAttachState", `diskID: "0"`, &disk.SetDiskStateRequest{}, ``},
		{"GetAttachState", `diskID: "7"`, &disk.GetDiskStateRequest{DiskNumber: 7}, `isOnline: true`},
	},
	"disk/v1alpha1": {
		{"ListDiskLocations", ``, &disk.ListDiskLocationsRequest{}, `
			disk_locations {key: "0" value {Adapter: "1" Bus: "2" Target: "3" LUNID: "4"}}
			disk_locations {key: "7" value {Adapter: "5"}}`},
		{"PartitionDisk", `diskID: "7"`, &disk.PartitionDiskRequest{DiskNumber: 7}, ``},
		{"Rescan", ``, &disk.RescanRequest{}, ``},
		{"GetDiskNumberByName", `disk_name: "pvc-1"`, &disk.ListDiskIDsRequest{}, `disk_number: "0"`},
	},
	"filesystem/v2alpha1": {
		{"PathExists", `path: "C:\\x"`, &filesystem.PathExistsRequest{Path: `C:\x`}, `exists: true`},
		{"Mkdir", `path: "C:\\x"`, &filesystem.MkdirRequest{Path: `C:\x`}, ``},
		{"Rmdir", `path: "C:\\x"`, &filesystem.RmdirRequest{Path: `C:\x`}, ``},
		{"Rmdir", `path: "C:\\x" force: true`, &filesystem.RmdirRequest{Path: `C:\x`, Force: true}, ``},
		{"RmdirContents", `path: "C:\\x"`, &filesystem.RmdirContentsRequest{Path: `C:\x`}, ``},
		{"CreateSymlink", `source_path: "C:\\s" target_path: "C:\\t"`, &filesystem.CreateSymlinkRequest{SourcePath: `C:\s`, TargetPath: `C:\t`}, ``},
		{"IsSymlink", `path: "C:\\x"`, &filesystem.IsSymlinkRequest{Path: `C:\x`}, `is_symlink: true`},
	},
	"filesystem/v1beta1": {
		{"PathExists", `path: "C:\\x" context: POD`, &filesystem.PathExistsRequest{Path: `C:\x`}, `exists: true`},
		{"Mkdir", `path: "C:\\x" context: PLUGIN`, &filesystem.MkdirRequest{Path: `C:\x`}, ``},
		{"Rmdir", `path: "C:\\x" context: POD`, &filesystem.RmdirRequest{Path: `C:\x`}, ``},
		{"Rmdir", `path: "C:\\x" force: true`, &filesystem.RmdirRequest{Path: `C:\x`, Force: true}, ``},
		{"LinkPath", `source_path: "C:\\s" target_path: "C:\\t"`, &filesystem.CreateSymlinkRequest{SourcePath: `C:\s`, TargetPath: `C:\t`}, ``},
		{"IsMountPoint", `path: "C:\\x"`, &filesystem.IsSymlinkRequest{Path: `C:\x`}, `is_mount_point: true`},
	},
	"iscsi/v1alpha2": {
		{
			"AddTargetPortal", `target_portal {target_address: "a" target_port: 7}`,
			&iscsi.AddTargetPortalRequest{TargetPortal: &iscsi.TargetPortal{TargetAddress: "a", TargetPort: 7}}, ``,
		},
		{"AddTargetPortal", ``, &iscsi.AddTargetPortalRequest{}, ``},
		{
			"DiscoverTargetPortal", `target_portal {target_address: "a" target_port: 7}`,
			&iscsi.DiscoverTargetPortalRequest{TargetPortal: &iscsi.TargetPortal{TargetAddress: "a", TargetPort: 7}}, `iqns: "iqn.a" iqns: "iqn.b"`,
		},
		{"DiscoverTargetPortal", ``, &iscsi.DiscoverTargetPortalRequest{}, `iqns: "iqn.a" iqns: "iqn.b"`},
		{
			"RemoveTargetPortal", `target_portal {target_address: "a" target_port: 7}`,
			&iscsi.RemoveTargetPortalRequest{TargetPortal: &iscsi.TargetPortal{TargetAddress: "a", TargetPort: 7}}, ``,
		},
		{"RemoveTargetPortal", ``, &iscsi.RemoveTargetPortalRequest{}, ``},
		{"ListTargetPortals", ``, &iscsi.ListTargetPortalsRequest{}, `
			target_portals {target_address: "10.0.0.1" target_port: 3260}
			target_portals {target_address: "::1" target_port: 7}`},
		{
			"ConnectTarget", `target_portal {target_address: "a"} iqn: "iqn.a" auth_type: MUTUAL_CHAP chap_username: "me" chap_secret: "xyzzy"`,
			&iscsi.ConnectTargetRequest{
				TargetPortal: &iscsi.TargetPortal{TargetAddress: "a"}, IQN: "iqn.a",
				AuthType: iscsi.MUTUAL_CHAP, ChapUsername: "me", ChapSecret: "xyzzy",
			}, ``,
		},
		{"ConnectTarget", `auth_type: ONE_WAY_CHAP`, &iscsi.ConnectTargetRequest{AuthType: iscsi.ONE_WAY_CHAP}, ``},
		{
			"DisconnectTarget", `target_portal {target_address: "a"} iqn: "iqn.a"`,
			&iscsi.DisconnectTargetRequest{TargetPortal: &iscsi.TargetPortal{TargetAddress: "a"}, IQN: "iqn.a"}, ``,
		},
		{"DisconnectTarget", ``, &iscsi.DisconnectTargetRequest{}, ``},
		{
			"GetTargetDisks", `target_portal {target_address: "a"} iqn: "iqn.a"`,
			&iscsi.GetTargetDisksRequest{TargetPortal: &iscsi.TargetPortal{TargetAddress: "a"}, IQN: "iqn.a"}, `diskIDs: "4" diskIDs: "5"`,
		},
		{"GetTargetDisks", ``, &iscsi.GetTargetDisksRequest{}, `diskIDs: "4" diskIDs: "5"`},
		{"SetMutualChapSecret", `MutualChapSecret: "xyzzy"`, &iscsi.SetMutualChapSecretRequest{MutualChapSecret: "xyzzy"}, ``},
	},
	"smb/v1": {
		{
			"NewSmbGlobalMapping", `remote_path: "\\\\s\\h" local_path: "C:\\x" username: "me" password: "xyzzy"`,
			&smb.NewSMBGlobalMappingRequest{RemotePath: `\\s\h`, LocalPath: `C:\x`, Username: "me", Password: "xyzzy"}, ``,
		},
		{"RemoveSmbGlobalMapping", `remote_path: "\\\\s\\h"`, &smb.RemoveSMBGlobalMappingRequest{RemotePath: `\\s\h`}, ``},
	},
	"system/v1alpha1": {
		{"GetBIOSSerialNumber", ``, &system.GetBIOSSerialNumberRequest{}, `serial_number: "VMware-42\uFFFD"`},
		{"StartService", `name: "MSiSCSI"`, &system.StartServiceRequest{Name: "MSiSCSI"}, ``},
		{"StopService", `name: "MSiSCSI"`, &system.StopServiceRequest{Name: "MSiSCSI"}, ``},
		{"StopService", `name: "MSiSCSI" force: true`, &system.StopServiceRequest{Name: "MSiSCSI", Force: true}, ``},
		{"GetService", `name: "MSiSCSI"`, &system.GetServiceRequest{Name: "MSiSCSI"}, `display_name: "iSCSI" start_type: DISABLED status: PAUSED`},
	},
	"volume/v2alpha1": {
		{
			"ListVolumesOnDisk", `disk_number: 7 partition_number: 2`,
			&volume.ListVolumesOnDiskRequest{DiskNumber: 7, PartitionNumber: 2}, `volume_ids: "V1" volume_ids: "V2"`,
		},
		{"MountVolume", `volume_id: "V1" target_path: "C:\\x"`, &volume.MountVolumeRequest{VolumeID: "V1", TargetPath: `C:\x`}, ``},
		{"UnmountVolume", `volume_id: "V1" target_path: "C:\\x"`, &volume.UnmountVolumeRequest{VolumeID: "V1", TargetPath: `C:\x`}, ``},
		{"IsVolumeFormatted", `volume_id: "V1"`, &volume.IsVolumeFormattedRequest{VolumeID: "V1"}, `formatted: true`},
		{"FormatVolume", `volume_id: "V1"`, &volume.FormatVolumeRequest{VolumeID: "V1"}, ``},
		{"ResizeVolume", `volume_id: "V1" size_bytes: 1099511627776`, &volume.ResizeVolumeRequest{VolumeID: "V1", SizeBytes: 1 << 40}, ``},
		{"GetVolumeStats", `volume_id: "V1"`, &volume.GetVolumeStatsRequest{VolumeID: "V1"}, `total_bytes: 1099511627776 used_bytes: 8589934592`},
		{"GetDiskNumberFromVolumeID", `volume_id: "V1"`, &volume.GetDiskNumberFromVolumeIDRequest{VolumeID: "V1"}, `disk_number: 4294967295`},
		{"GetVolumeIDFromTargetPath", `target_path: "C:\\x"`, &volume.GetVolumeIDFromTargetPathRequest{TargetPath: `C:\x`}, `volume_id: "V1"`},
		{"GetClosestVolumeIDFromTargetPath", `target_path: "C:\\x"`, &volume.GetClosestVolumeIDFromTargetPathRequest{TargetPath: `C:\x`}, `volume_id: "V2"`},
		{"WriteVolumeCache", `volume_id: "V1"`, &volume.WriteVolumeCacheRequest{VolumeID: "V1"}, ``},
	},
	"volume/v1beta2": {
		{"ListVolumesOnDisk", `disk_id: "7"`, &volume.ListVolumesOnDiskRequest{DiskNumber: 7}, `volume_ids: "V1" volume_ids: "V2"`},
		{"MountVolume", `volume_id: "V1" path: "C:\\x"`, &volume.MountVolumeRequest{VolumeID: "V1", TargetPath: `C:\x`}, ``},
		{"DismountVolume", `volume_id: "V1" path: "C:\\x"`, &volume.UnmountVolumeRequest{VolumeID: "V1", TargetPath: `C:\x`}, ``},
		{"IsVolumeFormatted", `volume_id: "V1"`, &volume.IsVolumeFormattedRequest{VolumeID: "V1"}, `formatted: true`},
		{"FormatVolume", `volume_id: "V1"`, &volume.FormatVolumeRequest{VolumeID: "V1"}, ``},
		{"ResizeVolume", `volume_id: "V1" size: 1099511627776`, &volume.ResizeVolumeRequest{VolumeID: "V1", SizeBytes: 1 << 40}, ``},
		{"VolumeStats", `volume_id: "V1"`, &volume.GetVolumeStatsRequest{VolumeID: "V1"}, `volumeSize: 1099511627776 volumeUsedSize: 8589934592`},
		{"GetVolumeDiskNumber", `volume_id: "V1"`, &volume.GetDiskNumberFromVolumeIDRequest{VolumeID: "V1"}, `diskNumber: 4294967295`},
		{"GetVolumeIDFromMount", `mount: "C:\\x"`, &volume.GetVolumeIDFromTargetPathRequest{TargetPath: `C:\x`}, `volume_id: "V1"`},
		{"WriteVolumeCache", `volume_id: "V1"`, &volume.WriteVolumeCacheRequest{VolumeID: "V1"}, ``},
	},
}

func TestHandlers_Translate(t *testing.T) {
	called := 0
	for _, e := range grpcapi.Endpoints() {
		t.Run(e.Name(), func(t *testing.T) {
			var library recorder
			r := newRemote(t, e, library.services())
			table := translations[e.Group+"/"+handlerVersion(describe(e))]
			for _, method := range r.methods() {
				tested := false
				for _, tt := range table {
					if tt.method != method {
						continue
					}
					tested = true
					response, err := r.call(t.Context(), method, r.request(t, method, tt.request))
					if err != nil {
						t.Errorf("%s {%s}: %v", method, tt.request, err)
						continue
					}
					if diff := cmp.Diff(tt.library, library.take()); diff != "" {
						t.Errorf("%s {%s}: the library's request (-want +got):\n%s", method, tt.request, diff)
					}
					if diff := cmp.Diff(r.response(t, method, tt.response), response, protocmp.Transform()); diff != "" {
						t.Errorf("%s {%s}: the client's response (-want +got):\n%s", method, tt.request, diff)
					}
				}
				if !tested {
					t.Errorf("%s has no line in the table", method)
				}
				called++
			}
		})
	}
	if called != 139 {
		t.Errorf("%d methods were called, want the 139 that were published", called)
	}
}

func TestHandlers_PassErrorsOn(t *testing.T) {
	for _, e := range grpcapi.Endpoints() {
		t.Run(e.Name(), func(t *testing.T) {
			var library recorder
			library.failWith(winerr.New(winerr.InUse, "use", "it", "it is in use"))
			r := newRemote(t, e, library.services())
			for _, tt := range translations[e.Group+"/"+handlerVersion(describe(e))] {
				if _, has := r.client.Type().MethodByName(tt.method); !has {
					continue // a method only the handler's own version has
				}
				_, err := r.call(t.Context(), tt.method, r.request(t, tt.method, tt.request))
				if s := status.Convert(err); s.Code() != codes.FailedPrecondition || s.Message() != "use it: it is in use" {
					t.Errorf("%s: %v, want code %v and the library's text", tt.method, err, codes.FailedPrecondition)
				}
			}
		})
	}
}

// Some of these texts were once cut down to 32 bits and reached another disk.
func TestHandlers_DiskNumbersAsText(t *testing.T) {
	fields := map[string]string{ // by method
		"PartitionDisk":     "diskID",
		"DiskStats":         "diskID",
		"SetAttachState":    "diskID",
		"GetAttachState":    "diskID",
		"ListVolumesOnDisk": "disk_id",
	}
	long := strings.Repeat("9", 1000)
	wrong := []string{"4294967296", "4294967297", "18446744073709551616", "-1", "+1", "", " 1", "1 ", "1\n", "0x1", "1_0", "1e3", "1.0", "１", "one", long}
	right := map[string]uint32{"0": 0, "1": 1, "007": 7, "4294967295": 4294967295}
	tested := 0
	for _, name := range []string{"disk/v1alpha1", "disk/v1beta1", "disk/v1beta2", "volume/v1alpha1", "volume/v1beta1", "volume/v1beta2"} {
		t.Run(name, func(t *testing.T) {
			var library recorder
			r := newRemote(t, endpoint(t, name), library.services())
			for _, method := range r.methods() {
				field, carries := fields[method]
				if !carries {
					continue
				}
				tested++
				for _, text := range wrong {
					_, err := r.call(t.Context(), method, r.request(t, method, fmt.Sprintf("%s: %q", field, text)))
					s := status.Convert(err)
					if s.Code() != codes.InvalidArgument {
						t.Errorf("%s %q: %v, want code %v", method, text, err, codes.InvalidArgument)
					}
					if want := fmt.Sprintf("%q", text[:min(len(text), 64)]); !strings.Contains(s.Message(), want) || len(s.Message()) > 200 {
						t.Errorf("%s %q: text %q, want a short one that contains %s", method, text, s.Message(), want)
					}
					if got := library.take(); got != nil {
						t.Errorf("%s %q reached the library as %v", method, text, got)
					}
				}
				for text, want := range right {
					if _, err := r.call(t.Context(), method, r.request(t, method, fmt.Sprintf("%s: %q", field, text))); err != nil {
						t.Errorf("%s %q: %v", method, text, err)
						continue
					}
					if got := reflect.ValueOf(library.take()).Elem().FieldByName("DiskNumber").Interface(); got != want {
						t.Errorf("%s %q reached the library as disk %v", method, text, got)
					}
				}
			}
		})
	}
	if tested != 10 {
		t.Errorf("%d methods were tested, want 10", tested)
	}
}

// diskList is a library that knows only the ids of disks.
type diskList struct {
	disk.Extended
	ids map[uint32]*disk.DiskIDs
}

func (d diskList) ListDiskIDs(context.Context, *disk.ListDiskIDsRequest) (*disk.ListDiskIDsResponse, error) {
	return &disk.ListDiskIDsResponse{DiskIDs: d.ids}, nil
}

func TestDiskV1alpha1_GetDiskNumberByName(t *testing.T) {
	disks := diskList{ids: map[uint32]*disk.DiskIDs{
		0: {},
		1: {Page83: "Google  pvc-1", SerialNumber: "pvc-3"},
		2: {Page83: "pvc-1", SerialNumber: "S2"},
		3: {Page83: "Google  pvc-3"},
		4: {Page83: "6000c29", SerialNumber: "vol1_00000001."},
		5: {Page83: "Acme twin"},
		6: {Page83: "Acme twin", SerialNumber: "twin"},
		7: {Page83: "Acme tail "},
	}}
	tests := []struct {
		name string
		disk string
		want string
		code codes.Code
	}{
		{"page 83", "6000c29", "4", codes.OK},
		{"page 83 whole, not only its last word", "pvc-1", "2", codes.OK},
		{"page 83 with vendor", "Google  pvc-1", "1", codes.OK},
		{"last word of page 83 before serial number", "pvc-3", "3", codes.OK},
		{"serial number", "vol1_00000001.", "4", codes.OK},
		{"last word of page 83 with a blank after it", "tail", "7", codes.OK},
		{"first word of page 83", "Google", "", codes.NotFound},
		{"other case", "PVC-1", "", codes.NotFound},
		{"nothing", "pvc-9", "", codes.NotFound},
		{"two disks", "twin", "", codes.InvalidArgument},
		{"empty name", "", "", codes.InvalidArgument},
	}
	client := diskv1alpha1.NewDiskClient(dial(t, endpoint(t, "disk/v1alpha1"),
		grpcapi.Services{Disk: disks}, grpc.UnaryInterceptor(withStatus)))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := client.GetDiskNumberByName(t.Context(), &diskv1alpha1.GetDiskNumberByNameRequest{DiskName: tt.disk})
			if status.Code(err) != tt.code || got.GetDiskNumber() != tt.want {
				t.Errorf("disk %q, %v, want %q with code %v", got.GetDiskNumber(), err, tt.want, tt.code)
			}
		})
	}
}
