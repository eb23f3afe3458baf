package serve_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestExtensions_HostileFields is TestHostileFields for the extensions that drivers call.
func TestExtensions_HostileFields(t *testing.T) {
	dir := run(t, newNode(t))
	fields := map[protoreflect.Name][]protoreflect.Name{ // of methods that refuse the others
		"GetDiskReadOnly": {"number"},
		"SetDiskReadOnly": {"number", "read_only", "online"},
		"PartitionDisk":   {"number"},
		"SetDiskState":    {"number", "online"},
		"FormatVolume":    {"id", "cluster_size_bytes", "label", "root_access"},

		"WriteVolumeCache": {"id"}, // mount_paths is a list
	}
	services := extensionv1.File_github_com_kubernetes_csi_csi_proxy_client_extension_v1_api_proto.Services()
	for name, group := range map[protoreflect.Name]string{
		"DiskReadOnly": "disk", "DiskChange": "disk", "Paths": "filesystem", "ShareMapping": "smb", "VolumeFormat": "volume", "VolumeFlush": "volume",
	} {
		conn := dial(t, dir, grpcapi.Endpoint{Group: group, Version: "v1"})
		service := services.ByName(name)
		for i := range service.Methods().Len() {
			method := service.Methods().Get(i)
			name := fmt.Sprintf("/%s/%s", service.FullName(), method.Name())
			for what, c := range hostile(method.Input(), fields[method.Name()]...) {
				err := conn.Invoke(t.Context(), name, c.request, dynamicpb.NewMessage(method.Output()))
				if !c.expects(status.Code(err)) {
					t.Errorf("%s with %s: %.300v", name, what, err)
				}
			}
		}
	}
}

// TestExtensions_OneGroup: each extension is on the endpoints of one group, of every version, and on no other.
func TestExtensions_OneGroup(t *testing.T) {
	groups := map[protoreflect.Name]string{
		"Inspector": "system", "DiskReadOnly": "disk", "DiskChange": "disk", "Paths": "filesystem", "Healer": "filesystem", "ShareMapping": "smb",
		"VolumeFormat": "volume", "VolumeFlush": "volume", "VolumeHealth": "volume",
	}
	dir := run(t, newNode(t))
	services := extensionv1.File_github_com_kubernetes_csi_csi_proxy_client_extension_v1_api_proto.Services()
	for _, endpoint := range grpcapi.Endpoints() {
		conn := dial(t, dir, endpoint)
		for i := range services.Len() {
			service, method := services.Get(i), services.Get(i).Methods().Get(0)
			err := conn.Invoke(t.Context(), fmt.Sprintf("/%s/%s", service.FullName(), method.Name()), dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output()))
			if served := status.Code(err) != codes.Unimplemented; served != (endpoint.Group == groups[service.Name()]) {
				t.Errorf("%s on %s: %v", service.Name(), endpoint.Name(), err)
			}
		}
	}
}

// blankVolume partitions a new disk over the API and returns its number and volume.
func blankVolume(t *testing.T, node *winsim.Node, dir string) (number uint32, volume string) {
	t.Helper()
	number, err := node.AttachDisk(winsim.Disk{Size: winsim.GiB})
	must(t, err)
	disks := diskv1.NewDiskClient(dial(t, dir, grpcapi.Endpoint{Group: "disk", Version: "v1"}))
	if _, err := disks.PartitionDisk(t.Context(), &diskv1.PartitionDiskRequest{DiskNumber: number}); err != nil {
		t.Fatal(err)
	}
	volumes := volumev1.NewVolumeClient(dial(t, dir, grpcapi.Endpoint{Group: "volume", Version: "v1"}))
	found, err := volumes.ListVolumesOnDisk(t.Context(), &volumev1.ListVolumesOnDiskRequest{DiskNumber: number})
	if err != nil || len(found.GetVolumeIds()) != 1 {
		t.Fatal(found, err)
	}
	return number, found.GetVolumeIds()[0]
}

// TestFormatExtension: a request formats with its options, and a repetition changes nothing, with
// whatever options. Options that are wrong leave the volume blank.
func TestFormatExtension(t *testing.T) {
	node := newNode(t)
	dir := run(t, node)
	number, volume := blankVolume(t, node, dir)
	format := extensionv1.NewVolumeFormatClient(dial(t, dir, grpcapi.Endpoint{Group: "volume", Version: "v1"})).FormatVolume
	blank, err := node.DiskFingerprint(number)
	must(t, err)
	for name, request := range map[string]*extensionv1.Volume{
		"no volume":           {Label: "pods"},
		"a path below one":    {Id: volume + `..\x`},
		"a device":            {Id: `\\.\PhysicalDrive0`},
		"clusters of 3 bytes": {Id: volume, ClusterSizeBytes: 3},
		"too large clusters":  {Id: volume, ClusterSizeBytes: 4 << 20},
		"a long label":        {Id: volume, Label: strings.Repeat("x", 33)},
		"a label of two":      {Id: volume, Label: "a\nb"},
		"no access list":      {Id: volume, RootAccess: "everyone"},
		"another system":      {Id: volume, FileSystem: "ext4"},
		"no access for us":    {Id: volume, RootAccess: "D:P(A;OICI;FA;;;BU)"},
	} {
		if _, err := format(t.Context(), request); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v, want InvalidArgument", name, err)
		}
	}
	if got, err := node.DiskFingerprint(number); err != nil || got != blank {
		t.Fatalf("a wrong request has changed the disk: %v", err)
	}
	if _, err := format(t.Context(), &extensionv1.Volume{Id: volume, ClusterSizeBytes: 64 << 10, Label: "pods", RootAccess: "users-modify"}); err != nil {
		t.Fatal(err)
	}
	must(t, node.WriteFile(volume+`file`, "precious"))
	formatted, err := node.DiskFingerprint(number)
	must(t, err)
	for _, request := range []*extensionv1.Volume{
		{Id: volume, ClusterSizeBytes: 64 << 10, Label: "pods", RootAccess: "users-modify"},
		{Id: volume, ClusterSizeBytes: 4 << 10, Label: "other"},
		{Id: volume},
	} {
		if _, err := format(t.Context(), request); err != nil {
			t.Errorf("a repetition with %v: %v", request, err)
		}
	}
	if got, err := node.DiskFingerprint(number); err != nil || got != formatted {
		t.Errorf("a repetition has changed the disk: %v", err)
	}
	info, err := node.DiskInfo(number)
	must(t, err)
	if p := info.Partitions[len(info.Partitions)-1].Volume; p.Label != "pods" || p.ClusterSize != 64*winsim.KiB {
		t.Errorf("the volume is %+v", p)
	}
	if err := node.WriteFileAsUser(volume+`user`, "text"); err != nil {
		t.Errorf("the root access has no effect: %v", err)
	}
	if _, err := format(t.Context(), &extensionv1.Volume{Id: winsim.SystemVolume}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("the volume of Windows: %v", err)
	}
}

// TestShareExtension: a request has its own privacy and rule for users, and can be repeated. Wrong
// ones map nothing. The password is in no log and no answer.
func TestShareExtension(t *testing.T) {
	const link, password = `C:\var\lib\kubelet\share`, "csi-Pa55"
	log := captureLog(t)
	model := winsim.Default()
	model.SMBServers[0].NoEncryption = true
	model.SMBServers[0].Accounts = append(model.SMBServers[0].Accounts, winsim.SMBAccount{User: "other", Password: password})
	node, err := winsim.New(model)
	must(t, err)
	dir := run(t, node)
	var answers strings.Builder
	mapShare := func(conn *grpc.ClientConn, request *extensionv1.NewSmbGlobalMappingRequest) codes.Code {
		_, err := extensionv1.NewShareMappingClient(conn).NewSmbGlobalMapping(t.Context(), request)
		fmt.Fprintf(&answers, "%+v\n", err)
		return status.Code(err)
	}
	conn := dial(t, dir, grpcapi.Endpoint{Group: "smb", Version: "v1"})
	request := func(change func(*extensionv1.NewSmbGlobalMappingRequest)) *extensionv1.NewSmbGlobalMappingRequest {
		r := &extensionv1.NewSmbGlobalMappingRequest{RemotePath: `\\files\data`, LocalPath: link, Username: "csi", Password: password, Private: new(false)}
		change(r)
		return r
	}
	for name, c := range map[string]struct {
		change func(*extensionv1.NewSmbGlobalMappingRequest)
		want   codes.Code
	}{
		"a local path":            {func(r *extensionv1.NewSmbGlobalMappingRequest) { r.RemotePath = `C:\Windows` }, codes.InvalidArgument},
		"a device":                {func(r *extensionv1.NewSmbGlobalMappingRequest) { r.RemotePath = `\\.\pipe\x` }, codes.InvalidArgument},
		"a relative link":         {func(r *extensionv1.NewSmbGlobalMappingRequest) { r.LocalPath = `share` }, codes.InvalidArgument},
		"a link outside":          {func(r *extensionv1.NewSmbGlobalMappingRequest) { r.LocalPath = `C:\Windows\share` }, codes.PermissionDenied},
		"a NUL in the password":   {func(r *extensionv1.NewSmbGlobalMappingRequest) { r.Password += "\x00" }, codes.InvalidArgument},
		"a server without":        {func(r *extensionv1.NewSmbGlobalMappingRequest) { r.Private = new(true) }, codes.FailedPrecondition},
		"the default is required": {func(r *extensionv1.NewSmbGlobalMappingRequest) { r.Private = nil }, codes.FailedPrecondition},
	} {
		if code := mapShare(conn, request(c.change)); code != c.want {
			t.Errorf("%s: %v, want %v", name, code, c.want)
		}
	}
	if mappings, err := node.SMBMappings(t.Context()); err != nil || len(mappings) > 0 || node.Exists(link) {
		t.Errorf("wrong requests left %v, %v", mappings, err)
	}
	for range 2 {
		if code := mapShare(conn, request(func(*extensionv1.NewSmbGlobalMappingRequest) {})); code != codes.OK {
			t.Errorf("the mapping: %v", code)
		}
	}
	other := request(func(r *extensionv1.NewSmbGlobalMappingRequest) {
		r.LocalPath, r.Username, r.RefuseOtherUser = link+"2", "other", true
	})
	if code := mapShare(conn, other); code != codes.FailedPrecondition || node.Exists(link+"2") {
		t.Errorf("another user: %v, want FailedPrecondition and no link", code)
	}
	if err := node.WriteFile(link+`\file`, "text"); err != nil {
		t.Error(err)
	}
	if _, err := smbv1.NewSmbClient(conn).RemoveSmbGlobalMapping(t.Context(), &smbv1.RemoveSmbGlobalMappingRequest{RemotePath: `\\files\data`}); err != nil {
		t.Error(err)
	}
	text := log() + answers.String()
	if !strings.Contains(text, "NewSmbGlobalMapping") || !strings.Contains(text, "***") || strings.Contains(text, password) {
		t.Errorf("the log lacks the calls or has the password:\n%.2000s", text)
	}
}
