package server_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/server"
)

// TestFailures: the last failed calls are remembered until one like them succeeds, without secrets, and not too many.
func TestFailures(t *testing.T) {
	const mount = "/v1.Volume/MountVolume"
	var f server.Failures
	now := time.Unix(1000, 0)
	request := func(n int) any { return &volumev1.MountVolumeRequest{VolumeId: fmt.Sprint("v", n), TargetPath: `C:\k`} }
	expect := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, c := range f.List(now) {
			got = append(got, fmt.Sprint(c.Method, " ", c.Request, ": ", c.Code, " ", c.Error, " ", c.Times))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	note := func(method string, request any, err error) { server.Note(&f, t.Context(), now, method, request, err) }
	note(mount, request(1), status.Error(codes.NotFound, "no such volume\nin two lines"))
	note(mount, request(1), status.Error(codes.Internal, "it fails"))
	note(mount, request(2), nil)
	note(mount, request(2), status.Error(codes.Canceled, "the driver gave up"))
	ctl := metadata.NewIncomingContext(t.Context(), metadata.Pairs("user-agent", extensionv1.Operator+" grpc-go/1.85.0"))
	server.Note(&f, ctl, now, "/v1alpha1.System/GetService", &systemv1alpha1.GetServiceRequest{Name: "MSiSCSI"}, errors.New("doctor asks whether there is one"))
	note("/v1.Smb/NewSmbGlobalMapping", &smbv1.NewSmbGlobalMappingRequest{RemotePath: `\\a\b`, Username: "u", Password: "hunter2"}, errors.New("no"))
	expect("two fail", `v1.Smb/NewSmbGlobalMapping remote_path=\\a\b username=u password=***: Unknown no 1`, `v1.Volume/MountVolume volume_id=v1 target_path=C:\k: Internal it fails 2`)
	note("/v1.Smb/NewSmbGlobalMapping", &smbv1.NewSmbGlobalMappingRequest{RemotePath: `\\a\b`, Username: "u", Password: "right"}, nil)
	note(mount, request(1), nil)
	expect("both succeed")
	for i := range 1000 {
		note(mount, request(i), errors.New(strings.Repeat("long", 1000)))
	}
	if calls := f.List(now); len(calls) != 64 || len(calls[0].Error) > 520 || !strings.Contains(calls[0].Request, "v999") {
		t.Errorf("%d calls, %d bytes, the last is %s", len(calls), len(calls[0].Error), calls[0].Request)
	}
	now = now.Add(time.Hour + time.Second)
	expect("an hour later")
}
