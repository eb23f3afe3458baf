package grpcapi_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	iscsiv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// A server answers one version only: its pipe is named after it.
func TestAlias_NewerNameIsUnknown(t *testing.T) {
	conn := dial(t, endpoint(t, "disk/v1beta3"), new(recorder).services())
	_, err := diskv1.NewDiskClient(conn).Rescan(t.Context(), &diskv1.RescanRequest{})
	if got := status.Code(err); got != codes.Unimplemented {
		t.Errorf("v1 on the endpoint of v1beta3: %v, want code %v", err, codes.Unimplemented)
	}
}

func TestAlias_NewerMethodIsUnknown(t *testing.T) {
	tests := map[string]struct {
		method   string
		in, out  any
		endpoint string
	}{
		"filesystem": {"/v1.Filesystem/RmdirContents", &filesystemv2alpha1.RmdirContentsRequest{}, &filesystemv2alpha1.RmdirContentsResponse{}, "filesystem/v1"},
		"iscsi":      {"/v1alpha1.Iscsi/SetMutualChapSecret", &iscsiv1alpha2.SetMutualChapSecretRequest{}, &iscsiv1alpha2.SetMutualChapSecretResponse{}, "iscsi/v1alpha1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var library recorder
			conn := dial(t, endpoint(t, tt.endpoint), library.services())
			err := conn.Invoke(t.Context(), tt.method, tt.in, tt.out)
			if got := status.Code(err); got != codes.Unimplemented {
				t.Errorf("%s: %v, want code %v", tt.method, err, codes.Unimplemented)
			}
			if got := library.take(); got != nil {
				t.Errorf("the library got %v", got)
			}
		})
	}
}

// methodLog is an interceptor that notes its calls.
type methodLog struct {
	mu      sync.Mutex
	methods []string
	infos   []*grpc.UnaryServerInfo
}

func (l *methodLog) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	l.mu.Lock()
	l.methods = append(l.methods, info.FullMethod)
	l.infos = append(l.infos, info)
	l.mu.Unlock()
	return next(ctx, request)
}

func TestAlias_InterceptorSeesCalledName(t *testing.T) {
	var log methodLog
	conn := dial(t, endpoint(t, "filesystem/v1"), new(recorder).services(), grpc.ChainUnaryInterceptor(log.intercept, withStatus))
	client := filesystemv1.NewFilesystemClient(conn)
	if _, err := client.Mkdir(t.Context(), &filesystemv1.MkdirRequest{Path: `C:\x`}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.IsSymlink(t.Context(), &filesystemv1.IsSymlinkRequest{Path: `C:\x`}); err != nil {
		t.Fatal(err)
	}
	want := []string{"/v1.Filesystem/Mkdir", "/v1.Filesystem/IsSymlink"}
	if diff := cmp.Diff(want, log.methods); diff != "" {
		t.Errorf("full methods (-want +got):\n%s", diff)
	}
	for _, info := range log.infos {
		if info.Server == nil {
			t.Errorf("%s: the interceptor got no server", info.FullMethod)
		}
	}
}

// Calls share the alias's description but no state.
func TestAlias_ConcurrentCalls(t *testing.T) {
	var log methodLog
	conn := dial(t, endpoint(t, "iscsi/v1alpha1"), new(recorder).services(), grpc.UnaryInterceptor(log.intercept))
	client := iscsiv1alpha1.NewIscsiClient(conn)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := client.ListTargetPortals(t.Context(), &iscsiv1alpha1.ListTargetPortalsRequest{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, method := range log.methods {
		if want := "/v1alpha1.Iscsi/ListTargetPortals"; method != want {
			t.Errorf("an interceptor saw %q, want %q", method, want)
		}
	}
}

// What an alias adds to a call: the same handler without transport, as an alias
// and under its own name.
func BenchmarkAlias(b *testing.B) {
	for _, name := range []string{"filesystem/v1", "filesystem/v2alpha1"} {
		b.Run(name, func(b *testing.B) {
			found, err := grpcapi.Select([]string{name})
			require.NoError(b, err)
			var r registrar
			found[0].Register(&r, new(recorder).services())
			method := r.desc.Methods[0]
			b.ReportAllocs()
			for b.Loop() {
				if _, err := method.Handler(r.handler, b.Context(), func(any) error { return nil }, withStatus); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
