package grpcapi_test

import (
	"errors"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// served says, for every endpoint, the version whose handler answers it. It
// repeats the table of the package in the words of the published list.
var served = []struct{ name, service, handler string }{
	{"disk/v1alpha1", "v1alpha1.Disk", "v1alpha1"},
	{"disk/v1beta1", "v1beta1.Disk", "v1beta2"},
	{"disk/v1beta2", "v1beta2.Disk", "v1beta2"},
	{"disk/v1beta3", "v1beta3.Disk", "v1"},
	{"disk/v1", "v1.Disk", "v1"},
	{"filesystem/v1alpha1", "v1alpha1.Filesystem", "v1beta1"},
	{"filesystem/v1beta1", "v1beta1.Filesystem", "v1beta1"},
	{"filesystem/v1beta2", "v1beta2.Filesystem", "v2alpha1"},
	{"filesystem/v1", "v1.Filesystem", "v2alpha1"},
	{"filesystem/v2alpha1", "v2alpha1.Filesystem", "v2alpha1"},
	{"iscsi/v1alpha1", "v1alpha1.Iscsi", "v1alpha2"},
	{"iscsi/v1alpha2", "v1alpha2.Iscsi", "v1alpha2"},
	{"smb/v1alpha1", "v1alpha1.Smb", "v1"},
	{"smb/v1beta1", "v1beta1.Smb", "v1"},
	{"smb/v1beta2", "v1beta2.Smb", "v1"},
	{"smb/v1", "v1.Smb", "v1"},
	{"system/v1alpha1", "v1alpha1.System", "v1alpha1"},
	{"volume/v1alpha1", "v1alpha1.Volume", "v1beta2"},
	{"volume/v1beta1", "v1beta1.Volume", "v1beta2"},
	{"volume/v1beta2", "v1beta2.Volume", "v1beta2"},
	{"volume/v1beta3", "v1beta3.Volume", "v2alpha1"},
	{"volume/v1", "v1.Volume", "v2alpha1"},
	{"volume/v2alpha1", "v2alpha1.Volume", "v2alpha1"},
}

// registrar keeps what an endpoint registers.
type registrar struct {
	desc    *grpc.ServiceDesc
	handler any
}

func (r *registrar) RegisterService(desc *grpc.ServiceDesc, handler any) {
	if r.desc == nil { // extensions come later
		r.desc, r.handler = desc, handler
	}
}

// describe returns the description an endpoint gives to its server.
func describe(e grpcapi.Endpoint) *grpc.ServiceDesc {
	var r registrar
	e.Register(&r, grpcapi.Services{})
	return r.desc
}

// handlerVersion returns the version for which the endpoint's handler was
// written: the package of its generated server interface.
func handlerVersion(desc *grpc.ServiceDesc) string {
	return path.Base(reflect.TypeOf(desc.HandlerType).Elem().PkgPath())
}

func TestEndpoints(t *testing.T) {
	endpoints := grpcapi.Endpoints()
	if len(endpoints) != 23 {
		t.Errorf("there are %d endpoints, want 23", len(endpoints))
	}
	got := slices.Clone(served[:0])
	for _, e := range endpoints {
		got = append(got, struct{ name, service, handler string }{e.Name(), e.ServiceName(), handlerVersion(describe(e))})
		if want := e.Group + "/" + e.Version; e.Name() != want {
			t.Errorf("Name() = %q, want %q", e.Name(), want)
		}
	}
	if !slices.Equal(got, served) {
		t.Errorf("endpoints are\n%q, want\n%q", got, served)
	}
}

func TestEndpoints_CallerOwnsSlice(t *testing.T) {
	grpcapi.Endpoints()[0].Group = "scribbled"
	if got := grpcapi.Endpoints()[0].Group; got != "disk" {
		t.Errorf("the first group became %q", got)
	}
}

// Every method that was ever published is served under its own name. In
// particular no alias lost a method because the newer service lacks it.
func TestEndpoints_ServeEveryPublishedMethod(t *testing.T) {
	const root = "github.com/kubernetes-csi/csi-proxy/client/api/"
	methods := 0
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		name, ours := strings.CutPrefix(file.Path(), root)
		if !ours || file.Services().Len() == 0 {
			return true
		}
		desc := describe(endpoint(t, path.Dir(name)))
		service := file.Services().Get(0)
		if got, want := desc.ServiceName, string(service.FullName()); got != want {
			t.Errorf("%s: service is called %q, want %q", name, got, want)
		}
		if desc.Metadata != file.Path() {
			t.Errorf("%s: metadata is %q, want %q", name, desc.Metadata, file.Path())
		}
		var got, want []string
		for _, method := range desc.Methods {
			got = append(got, method.MethodName)
		}
		for i := range service.Methods().Len() {
			want = append(want, string(service.Methods().Get(i).Name()))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: methods are %q, want %q", name, got, want)
		}
		methods += len(want)
		return true
	})
	if methods != 139 {
		t.Errorf("%d methods were looked at, want the 139 that were published", methods)
	}
}

func TestSelect(t *testing.T) {
	var all []string
	for _, row := range served {
		all = append(all, row.name)
	}
	tests := []struct {
		name     string
		patterns []string
		want     []string
	}{
		{"no pattern", nil, all},
		{"empty list", []string{}, all},
		{"star", []string{"*"}, all},
		{"star and more", []string{"disk", "*"}, all},
		{"group", []string{"iscsi"}, []string{"iscsi/v1alpha1", "iscsi/v1alpha2"}},
		{"version", []string{"disk/v1"}, []string{"disk/v1"}},
		{"table order", []string{"volume/v1", "smb/v1", "disk/v1", "disk/v1alpha1"}, []string{"disk/v1alpha1", "disk/v1", "smb/v1", "volume/v1"}},
		{"duplicates", []string{"iscsi", "iscsi/v1alpha1", "iscsi"}, []string{"iscsi/v1alpha1", "iscsi/v1alpha2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			endpoints, err := grpcapi.Select(tt.patterns)
			require.NoError(t, err)
			var got []string
			for _, e := range endpoints {
				got = append(got, e.Name())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSelect_Unknown(t *testing.T) {
	for _, pattern := range []string{"", "tape", "Disk", "disk/", "disk/v9", "disk/V1", "disk/v1/", "/v1", "v1", "disk*", " disk"} {
		endpoints, err := grpcapi.Select([]string{"smb", pattern})
		if !errors.Is(err, winerr.Invalid) || endpoints != nil {
			t.Errorf("Select(%q) = %v, %v, want an error of kind %v", pattern, endpoints, err, winerr.Invalid)
			continue
		}
		for _, text := range []string{`"` + pattern + `"`, "disk/v1beta1", "volume/v2alpha1"} {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("Select(%q): error %q does not contain %s", pattern, err, text)
			}
		}
	}
}
