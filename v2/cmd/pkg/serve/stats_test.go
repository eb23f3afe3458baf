package serve_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestStats: a share is measured by a link to it, and a volume by every path that leads to it, with
// the numbers of the published GetVolumeStats.
func TestStats(t *testing.T) {
	const kubelet = `C:\var\lib\kubelet\`
	node := newNode(t)
	dir := run(t, node)
	shares := smbv1.NewSmbClient(dial(t, dir, grpcapi.Endpoint{Group: "smb", Version: "v1"}))
	_, err := shares.NewSmbGlobalMapping(t.Context(), &smbv1.NewSmbGlobalMappingRequest{
		RemotePath: `\\files\data`, LocalPath: kubelet + `share`, Username: "csi", Password: "csi-Pa55",
	})
	must(t, err)
	volumes := volumev1.NewVolumeClient(dial(t, dir, grpcapi.Endpoint{Group: "volume", Version: "v1"}))
	if _, err := volumes.MountVolume(t.Context(), &volumev1.MountVolumeRequest{VolumeId: dataVolume, TargetPath: kubelet + `staged`}); err != nil {
		t.Fatal(err)
	}
	want, err := volumes.GetVolumeStats(t.Context(), &volumev1.GetVolumeStatsRequest{VolumeId: dataVolume})
	must(t, err)
	for _, err := range []error{
		node.Symlink(kubelet+`pod`, kubelet+`staged`), node.Symlink(kubelet+`out`, `C:\Windows`), node.Symlink(kubelet+`system`, winsim.SystemVolume),
		node.Mkdir(kubelet + `staged\dir`), node.WriteFile(kubelet+`file`, "text"), node.Symlink(kubelet+`staged\steal`, `\\files\data`),
		node.Symlink(kubelet+`gone`, kubelet+`nothing`),
	} {
		must(t, err)
	}
	measure := extensionv1.NewPathsClient(dial(t, dir, grpcapi.Endpoint{Group: "filesystem", Version: "v1"})).GetPathStats
	for _, path := range []string{`staged`, `pod`, `pod\dir`} {
		got, err := measure(t.Context(), &extensionv1.Path{Path: kubelet + path})
		if err != nil || got.GetTotalBytes() != want.GetTotalBytes() || got.GetAvailableBytes() != want.GetTotalBytes()-want.GetUsedBytes() {
			t.Errorf("%s has %v, %v, want %v", path, got, err, want)
		}
	}
	before, err := measure(t.Context(), &extensionv1.Path{Path: kubelet + `share`})
	if err != nil || before.GetTotalBytes() == 0 || before.GetAvailableBytes() == 0 {
		t.Fatalf("the share has %v, %v", before, err)
	}
	must(t, node.WriteFile(kubelet+`share\file`, strings.Repeat("x", 1<<20)))
	after, err := measure(t.Context(), &extensionv1.Path{Path: kubelet + `share`})
	if err != nil || after.GetAvailableBytes() != before.GetAvailableBytes()-1<<20 {
		t.Errorf("with another MiB the share has %v, %v; it had %v", after, err, before)
	}
	must(t, node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Down = true }))
	for path, want := range map[string]codes.Code{
		``:                                codes.InvalidArgument,
		`kubelet`:                         codes.InvalidArgument,
		"C:\\var\\lib\\kubelet\\a\x00b":   codes.InvalidArgument,
		kubelet + `..\..\Windows`:         codes.InvalidArgument,
		`\\files\data`:                    codes.InvalidArgument, // a caller must not choose a server
		`\\?\GLOBALROOT\Device\Harddisk0`: codes.InvalidArgument,
		winsim.SystemVolume:               codes.InvalidArgument,
		`C:\Windows`:                      codes.PermissionDenied,
		kubelet + `out`:                   codes.PermissionDenied,
		kubelet + `system`:                codes.PermissionDenied,
		kubelet + `staged\steal`:          codes.PermissionDenied, // a pod must not choose one either
		kubelet + `nothing`:               codes.NotFound,
		kubelet + `gone`:                  codes.NotFound,
		kubelet + `share`:                 codes.Unavailable,
	} {
		_, err := measure(t.Context(), &extensionv1.Path{Path: path})
		if status.Code(err) != want {
			t.Errorf("%q: %v, want %v", path, err, want)
		}
	}
	if _, err := measure(t.Context(), &extensionv1.Path{Path: kubelet + `file`}); err == nil || status.Code(err) == codes.Internal {
		t.Errorf("a file: %v", err)
	}
}
