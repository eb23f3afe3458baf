//go:build windows && wine

package daemon

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/kubernetes-csi/csi-proxy/client"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
)

// TestConformance_Filesystem runs the suite on drive C:, through the newest version, which has all calls.
// Where there are links, it runs all cases through the others, too. Otherwise the emulated node has to do.
func TestConformance_Filesystem(t *testing.T) {
	start(t)
	noLinks := whyNoLinks()
	versions := []string{"v2alpha1"}
	if noLinks == "" {
		versions = []string{"v1alpha1", "v1beta1", "v1beta2", "v1", "v2alpha1"}
	}
	longest := longestPath(t)
	cases := 0
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			api := newFiles(t, version)
			var lacks []string
			if version != "v2alpha1" {
				lacks = []string{"RmdirContents"}
			}
			hosttest.Filesystem(t, func(t *testing.T) hosttest.FilesystemNode {
				t.Helper()
				cases++
				root := fmt.Sprintf(`%s\conformance\%d`, kubelet, cases)
				require.NoError(t, os.MkdirAll(root, 0o700))
				node := hosttest.FilesystemNode{API: api, Root: root, WriteFile: writeFile, ReadFile: readFile, NoLinks: noLinks, LongestPath: longest, Lacks: lacks}
				if *volume != "" && noLinks == "" {
					node.MountVolume, node.LoseVolume = mountVolume, loseVolume
				}
				return node
			})
		})
	}
}

// longestPath tries how long a path can be. Wine has the limits of the system below it.
func longestPath(t *testing.T) int {
	t.Helper()
	const name = `\xxxxxxxxx`
	path := kubelet + `\longest`
	defer os.RemoveAll(path)
	for {
		if err := os.MkdirAll(path+strings.Repeat(name, len(path)/len(name)), 0o700); err != nil {
			return len(path) // half of it, and a tenth less, is not worth a search
		}
		if path += strings.Repeat(name, len(path)/len(name)); len(path) > 30_000 {
			return 0
		}
	}
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

// files makes the group's Interface of any version's service. They differ in names of methods only.
type files struct {
	conn    *grpc.ClientConn
	service string
}

func newFiles(t *testing.T, version string) files {
	t.Helper()
	v, err := apiversion.NewVersion(version)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	conn, err := client.Connect(ctx, "filesystem", v, client.WithWait())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return files{conn, version + ".Filesystem"}
}

// ask makes a call, by the first name that this version has, and returns the one answer there can be.
func (f files) ask(ctx context.Context, fields map[string]any, names ...string) (answer bool, err error) {
	descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(f.service))
	if err != nil {
		return false, err
	}
	var method protoreflect.MethodDescriptor
	for _, name := range names {
		if method = descriptor.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(name)); method != nil {
			break
		}
	}
	if method == nil {
		return false, fmt.Errorf("%s has no method %s", f.service, names[0])
	}
	request, response := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
	for name, value := range fields {
		request.Set(method.Input().Fields().ByName(protoreflect.Name(name)), protoreflect.ValueOf(value))
	}
	if err := f.conn.Invoke(ctx, "/"+f.service+"/"+string(method.Name()), request, response); err != nil {
		return false, standard(err)
	}
	response.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Kind() == protoreflect.BoolKind {
			answer = value.Bool()
		} else {
			err = fmt.Errorf("%s is set: %v", field.Name(), value)
		}
		return true
	})
	return answer, err
}

func (f files) CreateSymlink(ctx context.Context, in *filesystem.CreateSymlinkRequest) (*filesystem.CreateSymlinkResponse, error) {
	_, err := f.ask(ctx, map[string]any{"source_path": in.SourcePath, "target_path": in.TargetPath}, "CreateSymlink", "LinkPath")
	return &filesystem.CreateSymlinkResponse{}, err
}

func (f files) IsSymlink(ctx context.Context, in *filesystem.IsSymlinkRequest) (*filesystem.IsSymlinkResponse, error) {
	answer, err := f.ask(ctx, map[string]any{"path": in.Path}, "IsSymlink", "IsMountPoint")
	return &filesystem.IsSymlinkResponse{IsSymlink: answer}, err
}

func (f files) Mkdir(ctx context.Context, in *filesystem.MkdirRequest) (*filesystem.MkdirResponse, error) {
	_, err := f.ask(ctx, map[string]any{"path": in.Path}, "Mkdir")
	return &filesystem.MkdirResponse{}, err
}

func (f files) PathExists(ctx context.Context, in *filesystem.PathExistsRequest) (*filesystem.PathExistsResponse, error) {
	answer, err := f.ask(ctx, map[string]any{"path": in.Path}, "PathExists")
	return &filesystem.PathExistsResponse{Exists: answer}, err
}

func (files) PathValid(context.Context, *filesystem.PathValidRequest) (*filesystem.PathValidResponse, error) {
	panic("no version of the API has PathValid")
}

func (f files) Rmdir(ctx context.Context, in *filesystem.RmdirRequest) (*filesystem.RmdirResponse, error) {
	_, err := f.ask(ctx, map[string]any{"path": in.Path, "force": in.Force}, "Rmdir")
	return &filesystem.RmdirResponse{}, err
}

func (f files) RmdirContents(ctx context.Context, in *filesystem.RmdirContentsRequest) (*filesystem.RmdirContentsResponse, error) {
	_, err := f.ask(ctx, map[string]any{"path": in.Path}, "RmdirContents")
	return &filesystem.RmdirContentsResponse{}, err
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
