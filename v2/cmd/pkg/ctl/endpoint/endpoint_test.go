package endpoint_test

import (
	"slices"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
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
