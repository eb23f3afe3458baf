//go:build windows && wine

package daemon

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	fsv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
)

// TestConformance_Filesystem runs the suite on drive C:, through the newest version, which
// has all calls. That the others mean the same is tested on the emulated node.
func TestConformance_Filesystem(t *testing.T) {
	start(t)
	c, err := fsv2alpha1.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	api := files{c}
	noLinks := whyNoLinks(t, api)
	longest := 0
	if noLinks != "" {
		longest = 4000 // it is Wine, which has the limits of the system below it
	}
	cases := 0
	hosttest.Filesystem(t, func(t *testing.T) hosttest.FilesystemNode {
		t.Helper()
		cases++
		root := fmt.Sprintf(`%s\conformance\%d`, kubelet, cases)
		if err := os.MkdirAll(root, 0o700); err != nil {
			t.Fatal(err)
		}
		return hosttest.FilesystemNode{API: api, Root: root, WriteFile: writeFile, ReadFile: readFile, NoLinks: noLinks, LongestPath: longest}
	})
}

// whyNoLinks tries to make a link. Only a file system that does not know them is an excuse.
func whyNoLinks(t *testing.T, api filesystem.Interface) string {
	t.Helper()
	source, link := kubelet+`\try\source`, kubelet+`\try\link`
	if _, err := api.Mkdir(t.Context(), &filesystem.MkdirRequest{Path: source}); err != nil {
		t.Fatal(err)
	}
	_, err := api.CreateSymlink(t.Context(), &filesystem.CreateSymlinkRequest{SourcePath: source, TargetPath: link})
	if status.Code(err) == codes.Unimplemented {
		return "this machine can make no links: " + err.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	return ""
}

func writeFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

func readFile(path string) (string, error) {
	content, err := os.ReadFile(path)
	return string(content), err
}

// standardErrors is what each code means to the suite.
var standardErrors = map[codes.Code]error{
	codes.InvalidArgument:    fs.ErrInvalid,
	codes.NotFound:           fs.ErrNotExist,
	codes.AlreadyExists:      fs.ErrExist,
	codes.PermissionDenied:   fs.ErrPermission,
	codes.FailedPrecondition: hosttest.ErrConflict,
}

func standard(err error) error {
	if err == nil {
		return nil
	}
	if kind := standardErrors[status.Code(err)]; kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

// files makes the group's Interface of the client.
type files struct{ client *fsv2alpha1.Client }

func (f files) CreateSymlink(ctx context.Context, in *filesystem.CreateSymlinkRequest) (*filesystem.CreateSymlinkResponse, error) {
	_, err := f.client.CreateSymlink(ctx, &filesystemv2alpha1.CreateSymlinkRequest{SourcePath: in.SourcePath, TargetPath: in.TargetPath})
	return &filesystem.CreateSymlinkResponse{}, standard(err)
}

func (f files) IsSymlink(ctx context.Context, in *filesystem.IsSymlinkRequest) (*filesystem.IsSymlinkResponse, error) {
	out, err := f.client.IsSymlink(ctx, &filesystemv2alpha1.IsSymlinkRequest{Path: in.Path})
	return &filesystem.IsSymlinkResponse{IsSymlink: out.GetIsSymlink()}, standard(err)
}

func (f files) Mkdir(ctx context.Context, in *filesystem.MkdirRequest) (*filesystem.MkdirResponse, error) {
	_, err := f.client.Mkdir(ctx, &filesystemv2alpha1.MkdirRequest{Path: in.Path})
	return &filesystem.MkdirResponse{}, standard(err)
}

func (f files) PathExists(ctx context.Context, in *filesystem.PathExistsRequest) (*filesystem.PathExistsResponse, error) {
	out, err := f.client.PathExists(ctx, &filesystemv2alpha1.PathExistsRequest{Path: in.Path})
	return &filesystem.PathExistsResponse{Exists: out.GetExists()}, standard(err)
}

func (files) PathValid(context.Context, *filesystem.PathValidRequest) (*filesystem.PathValidResponse, error) {
	panic("no version of the API has PathValid")
}

func (f files) Rmdir(ctx context.Context, in *filesystem.RmdirRequest) (*filesystem.RmdirResponse, error) {
	_, err := f.client.Rmdir(ctx, &filesystemv2alpha1.RmdirRequest{Path: in.Path, Force: in.Force})
	return &filesystem.RmdirResponse{}, standard(err)
}

func (f files) RmdirContents(ctx context.Context, in *filesystem.RmdirContentsRequest) (*filesystem.RmdirContentsResponse, error) {
	_, err := f.client.RmdirContents(ctx, &filesystemv2alpha1.RmdirContentsRequest{Path: in.Path})
	return &filesystem.RmdirContentsResponse{}, standard(err)
}

// TestFilesystem_Outside: clients cannot reach the rest of the drive.
func TestFilesystem_Outside(t *testing.T) {
	start(t)
	c := connect(t)
	for path, want := range map[string]codes.Code{
		`C:\windows\x`:                   codes.PermissionDenied,
		`C:\var\lib`:                     codes.PermissionDenied,
		`C:\var\lib\kubelet2`:            codes.PermissionDenied,
		`C:\var\lib\kubelet\..\kubelet2`: codes.InvalidArgument,
		`\\.\pipe\x`:                     codes.InvalidArgument,
	} {
		if _, err := c.Mkdir(t.Context(), &filesystemv1.MkdirRequest{Path: path}); status.Code(err) != want {
			t.Errorf("mkdir %s: %v, want %v", path, err, want)
		}
		if _, err := c.Rmdir(t.Context(), &filesystemv1.RmdirRequest{Path: path, Force: true}); status.Code(err) != want {
			t.Errorf("rmdir %s: %v, want %v", path, err, want)
		}
	}
}
