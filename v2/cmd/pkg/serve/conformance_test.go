package serve_test

import (
	"context"
	"fmt"
	"io/fs"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	fsv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	fsv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1alpha1"
	fsv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1beta1"
	fsv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1beta2"
	fsv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestConformance_Filesystem runs the suite through every version's own client.
func TestConformance_Filesystem(t *testing.T) {
	for _, version := range []struct {
		name      string
		newClient func(pipePath string) (any, error)
		lacks     []string
	}{
		{name: "v1alpha1", newClient: untyped(fsv1alpha1.NewClientWithPipePath), lacks: []string{"RmdirContents"}},
		{name: "v1beta1", newClient: untyped(fsv1beta1.NewClientWithPipePath), lacks: []string{"RmdirContents"}},
		{name: "v1beta2", newClient: untyped(fsv1beta2.NewClientWithPipePath), lacks: []string{"RmdirContents"}},
		{name: "v1", newClient: untyped(fsv1.NewClientWithPipePath), lacks: []string{"RmdirContents"}},
		{name: "v2alpha1", newClient: untyped(fsv2alpha1.NewClientWithPipePath)},
	} {
		t.Run(version.name, func(t *testing.T) {
			hosttest.Filesystem(t, func(t *testing.T) hosttest.FilesystemNode {
				t.Helper()
				node := newNode(t)
				api := dialRemote(t, version.newClient, run(t, node, "filesystem/"+version.name), "filesystem", version.name)
				return hosttest.FilesystemNode{
					API:         remoteFilesystem{api},
					Root:        `C:\var\lib\kubelet\pods`,
					WriteFile:   node.WriteFile,
					ReadFile:    node.ReadFile,
					MountVolume: func(path string) error { return node.MountFolder(path, dataVolume) },
					LoseVolume:  func() error { return node.SetVolumeState(dataVolume, winsim.Gone) },
					Lacks:       version.lacks,
				}
			})
		})
	}
}

// remoteFilesystem makes the group's Interface of any version's client.
type remoteFilesystem struct{ remote }

// standardErrors is what each code means to the suite.
var standardErrors = map[codes.Code]error{
	codes.InvalidArgument:    fs.ErrInvalid,
	codes.NotFound:           fs.ErrNotExist,
	codes.AlreadyExists:      fs.ErrExist,
	codes.PermissionDenied:   fs.ErrPermission,
	codes.FailedPrecondition: hosttest.ErrConflict,
	codes.Unavailable:        hosttest.ErrUnavailable,
	codes.Aborted:            hosttest.ErrBusy,
}

// ask makes a call and reads the one answer there can be.
func (r remoteFilesystem) ask(ctx context.Context, method string, values fields) (answer bool, err error) {
	out, err := r.call(ctx, method, values)
	if err != nil {
		return false, fmt.Errorf("%w: %w", standardErrors[status.Code(err)], err)
	}
	out.message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Name() == "error" {
			err = fmt.Errorf("the error field is set: %q", value.String())
			return false
		}
		answer = value.Bool()
		return true
	})
	return answer, err
}

func (r remoteFilesystem) CreateSymlink(ctx context.Context, in *filesystem.CreateSymlinkRequest) (*filesystem.CreateSymlinkResponse, error) {
	_, err := r.ask(ctx, "CreateSymlink", fields{"source_path": in.SourcePath, "target_path": in.TargetPath})
	return &filesystem.CreateSymlinkResponse{}, err
}

func (r remoteFilesystem) IsSymlink(ctx context.Context, in *filesystem.IsSymlinkRequest) (*filesystem.IsSymlinkResponse, error) {
	answer, err := r.ask(ctx, "IsSymlink", fields{"path": in.Path})
	return &filesystem.IsSymlinkResponse{IsSymlink: answer}, err
}

func (r remoteFilesystem) Mkdir(ctx context.Context, in *filesystem.MkdirRequest) (*filesystem.MkdirResponse, error) {
	_, err := r.ask(ctx, "Mkdir", fields{"path": in.Path})
	return &filesystem.MkdirResponse{}, err
}

func (r remoteFilesystem) PathExists(ctx context.Context, in *filesystem.PathExistsRequest) (*filesystem.PathExistsResponse, error) {
	answer, err := r.ask(ctx, "PathExists", fields{"path": in.Path})
	return &filesystem.PathExistsResponse{Exists: answer}, err
}

func (remoteFilesystem) PathValid(context.Context, *filesystem.PathValidRequest) (*filesystem.PathValidResponse, error) {
	panic("no version of the API has PathValid")
}

func (r remoteFilesystem) Rmdir(ctx context.Context, in *filesystem.RmdirRequest) (*filesystem.RmdirResponse, error) {
	_, err := r.ask(ctx, "Rmdir", fields{"path": in.Path, "force": in.Force})
	return &filesystem.RmdirResponse{}, err
}

func (r remoteFilesystem) RmdirContents(ctx context.Context, in *filesystem.RmdirContentsRequest) (*filesystem.RmdirContentsResponse, error) {
	_, err := r.ask(ctx, "RmdirContents", fields{"path": in.Path})
	return &filesystem.RmdirContentsResponse{}, err
}
