package winsim_test

import (
	"reflect"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestLibrary_ResponsesBesideErrors: like the original, volume, smb and PathValid return an empty
// response with an error. Callers that log the error and read the response must not panic.
func TestLibrary_ResponsesBesideErrors(t *testing.T) {
	node := newNode(t, withDataVolume())
	files, err := filesystem.New(fsapi.NewOn(node))
	mustAll(t, err)
	volumes, err := volume.New(volumeapi.NewOn(node))
	mustAll(t, err)
	shares, err := smb.New(smbapi.NewOn(node), files)
	mustAll(t, err)
	_, err = node.Inject(winsim.Fault{Error: uint32(winerr.IODevice)})
	mustAll(t, err)

	check := func(method reflect.Value, name string, request reflect.Value) {
		t.Helper()
		out := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), request})
		if out[1].IsNil() {
			t.Errorf("%s(%+v) succeeds", name, request)
		}
		if out[0].IsNil() {
			t.Errorf("%s(%+v) returns no response with %v", name, request, out[1])
		}
	}
	values := map[string]any{
		"VolumeID": dataVolume, "TargetPath": `C:\var\lib\kubelet\pods\x`, "Path": `C:\x`, "RemotePath": `\\files\data`,
		"DiskNumber": uint32(0), "Username": "csi", "Password": "csi-Pa55",
	}
	for _, group := range []struct {
		of      reflect.Type
		methods reflect.Value
		only    string
	}{
		{reflect.TypeFor[volume.Interface](), reflect.ValueOf(volumes), ""},
		{reflect.TypeFor[smb.Interface](), reflect.ValueOf(shares), ""},
		{reflect.TypeFor[filesystem.Interface](), reflect.ValueOf(files), "PathValid"},
	} {
		for i := range group.of.NumMethod() {
			described := group.of.Method(i)
			if group.only != "" && described.Name != group.only {
				continue
			}
			method := group.methods.MethodByName(described.Name)
			request := reflect.New(method.Type().In(1).Elem())
			check(method, described.Name, reflect.Zero(method.Type().In(1)))
			for name, value := range values {
				if field := request.Elem().FieldByName(name); field.IsValid() {
					field.Set(reflect.ValueOf(value).Convert(field.Type()))
				}
			}
			check(method, described.Name, request) // Windows fails
		}
	}
}

// TestFilesystem_PathValidOfADrive: the original takes c: for the drive.
func TestFilesystem_PathValidOfADrive(t *testing.T) {
	files, err := filesystem.New(fsapi.NewOn(newNode(t, withDataVolume())))
	mustAll(t, err)
	for path, want := range map[string]bool{`c:`: true, `C:`: true, `c:\`: true, `C:\\var\\lib`: true, `Q:`: false} {
		got, err := files.PathValid(t.Context(), &filesystem.PathValidRequest{Path: path})
		if err != nil || got.Valid != want {
			t.Errorf("PathValid(%s) is %+v, %v, want %t", path, got, err, want)
		}
	}
	for _, path := range []string{`1:`, `::`, `c`, ``, `c:x`} {
		if got, err := files.PathValid(t.Context(), &filesystem.PathValidRequest{Path: path}); err == nil || got == nil || got.Valid {
			t.Errorf("PathValid(%q) is %+v, %v", path, got, err)
		}
	}
}
