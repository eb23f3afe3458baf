package endpoint_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/grpcapi"
)

func TestAll_IsWhatTheServerHas(t *testing.T) {
	var want []string
	for _, e := range grpcapi.Endpoints() {
		want = append(want, e.Name())
	}
	var got []string
	for _, name := range endpoint.All() {
		got = append(got, name.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNewest(t *testing.T) {
	for group, want := range map[string]string{"disk": "v1", "filesystem": "v2alpha1", "iscsi": "v1alpha2", "none": ""} {
		if got := endpoint.Newest(group); got != want {
			t.Errorf("%s: got %q, want %q", group, got, want)
		}
	}
}

func TestPath(t *testing.T) {
	name := endpoint.Name{Group: "disk", Version: "v1"}
	path := endpoint.Node{Dir: "sockets"}.Path(name)
	if filepath.Dir(path) != "sockets" || !strings.Contains(filepath.Base(path), "csi-proxy-disk-v1") {
		t.Errorf("got %q", path)
	}
	if got := (endpoint.Node{}).Path(name); filepath.Base(got) != filepath.Base(path) {
		t.Errorf("got %q by default, and %q with a directory", got, path)
	}
}
