package serve_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestList: the group filesystem lists directories as far as its policy lets callers look, and enters
// nothing that it lists.
func TestList(t *testing.T) {
	node := newNode(t)
	for _, err := range []error{
		node.Mkdir(kubelet + `\dir\sub`), node.WriteFile(kubelet+`\dir\file`, "text"), node.MountFolder(kubelet+`\dir\mount`, dataVolume),
		node.WriteFile(kubelet+`\dir\mount\on the volume`, "text"), node.Symlink(kubelet+`\dir\link`, kubelet+`\dir\sub`),
		node.Symlink(kubelet+`\dir\out`, `C:\Windows`), node.Symlink(kubelet+`\dir\share`, `\\files\data`), node.Symlink(kubelet+`\dir\gone`, kubelet+`\nothing`),
		node.Mkdir(kubelet + `\empty`),
	} {
		must(t, err)
	}
	for i := range filesystem.MaxListed + 1 {
		must(t, node.Mkdir(fmt.Sprintf(`%s\many\%d`, kubelet, i)))
	}
	dir := run(t, node)
	list := extensionv1.NewPathsClient(dial(t, dir, grpcapi.Endpoint{Group: "filesystem", Version: "v1"})).ListDirectory
	got, err := list(t.Context(), &extensionv1.Path{Path: kubelet + `\dir`})
	var lines []string
	for _, e := range got.GetEntries() {
		lines = append(lines, fmt.Sprintf("%s: %s %s", e.GetType(), e.GetName(), e.GetTarget()))
	}
	want := []string{
		"file: file ", `link: gone ` + kubelet + `\nothing`, `link: link ` + kubelet + `\dir\sub`, "mount: mount " + dataVolume, `link: out C:\Windows`,
		`link: share \\files\data`, "directory: sub ",
	}
	if diff := cmp.Diff(want, lines); diff != "" || err != nil || got.GetTruncated() {
		t.Errorf("%v, truncated %v\n%s", err, got.GetTruncated(), diff)
	}
	for path, want := range map[string]codes.Code{
		``:                            codes.InvalidArgument,
		kubelet + `\..\..\Windows`:    codes.InvalidArgument,
		`\\files\data`:                codes.InvalidArgument,
		winsim.SystemVolume:           codes.InvalidArgument,
		`C:\`:                         codes.PermissionDenied,
		`C:\Windows`:                  codes.PermissionDenied,
		kubelet + `\dir\out\System32`: codes.PermissionDenied,
		kubelet + `\dir\share\x`:      codes.PermissionDenied,
		kubelet + `\nothing`:          codes.NotFound,
		kubelet + `\dir\file\x`:       codes.NotFound,
		kubelet + `\dir\file`:         codes.FailedPrecondition,
		kubelet + `\dir\out`:          codes.FailedPrecondition,
		kubelet + `\dir\share`:        codes.FailedPrecondition,
		kubelet + `\dir\mount`:        codes.FailedPrecondition,
		kubelet + `\empty`:            codes.OK,
		kubelet:                       codes.OK,
	} {
		if got, err := list(t.Context(), &extensionv1.Path{Path: path}); status.Code(err) != want || path == kubelet && len(got.GetEntries()) != 5 {
			t.Errorf("%q: %v, %v, want %v", path, got, err, want)
		}
	}
	many, err := list(t.Context(), &extensionv1.Path{Path: kubelet + `\many`})
	if err != nil || len(many.GetEntries()) != filesystem.MaxListed || !many.GetTruncated() {
		t.Errorf("%d entries, truncated %v, %v", len(many.GetEntries()), many.GetTruncated(), err)
	}
	_, err = list(t.Context(), &extensionv1.Path{Path: kubelet + `\` + strings.Repeat("x", 300)})
	if status.Code(err) != codes.NotFound && status.Code(err) != codes.InvalidArgument {
		t.Errorf("a long name: %v", err)
	}
}
