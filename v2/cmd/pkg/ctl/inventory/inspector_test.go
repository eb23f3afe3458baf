package inventory_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// describer is an inspector with a fixed answer.
type describer func(ctx context.Context) error

func (d describer) DescribeNode(ctx context.Context, _ *extensionv1.DescribeNodeRequest) (*extensionv1.Node, error) {
	return nil, d(ctx)
}

func (d describer) FindDisk(ctx context.Context, _ *extensionv1.FindDiskRequest) (*extensionv1.Disk, error) {
	return nil, d(ctx)
}

// withInspector serves the disks and volumes of a node with this inspector.
func withOther(t *testing.T, d describer) inventory.Source {
	t.Helper()
	dir := serve.SocketDir(t)
	serve.StartWith(t, newNode(t, "healthy"), serve.Config{Config: daemon.Config{SocketDir: dir, APIGroups: []string{"disk", "volume", "filesystem"}}})
	path := endpoint.Node{Dir: dir}.Path(endpoint.Name{Group: "system", Version: "v1alpha1"})
	listener, err := pipe.Listen(t.Context(), path, pipe.Config{})
	require.NoError(t, err)
	server := grpc.NewServer()
	extensionv1.RegisterInspectorServer(server, d)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return source(t, dir)
}

// inspectorTime is what a caller has. A quarter of it is left for the API, which a busy machine needs.
const inspectorTime = 16 * time.Second

// inspectorProblem returns the problem about an inspector that fails while the API works.
func inspectorProblem(t *testing.T, s inventory.Source) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), inspectorTime)
	defer cancel()
	node, err := s.Node(ctx, nil)
	require.NoError(t, err)
	if len(node.Disks) != 2 {
		t.Errorf("%d disks", len(node.Disks))
	}
	for _, p := range node.Problems {
		if p.Kind == problem.Unseen {
			text, _, _ := strings.Cut(p.Text, ": disks that do not answer, ")
			return text
		}
	}
	t.Errorf("problems %+v", node.Problems)
	return ""
}

// TestNode_InspectorRefuses: if the inspector fails, the API is asked.
func TestNode_InspectorRefuses(t *testing.T) {
	for code, want := range map[codes.Code]string{
		codes.ResourceExhausted: "the inspector failed: crowded (ResourceExhausted)",
		codes.Internal:          "the inspector failed: crowded (Internal)",
		// The server knows the deadline and may report it first.
		codes.DeadlineExceeded: "the inspector did not answer in time",
		codes.Canceled:         "the inspector did not answer in time",
	} {
		t.Run(code.String(), func(t *testing.T) {
			s := withOther(t, func(context.Context) error { return status.Error(code, "crowded") })
			if got := inspectorProblem(t, s); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestNode_InspectorHangs: the inspector gets only a part of the time; the rest is for the API.
func TestNode_InspectorHangs(t *testing.T) {
	t.Parallel()
	limits := make(chan time.Duration, 1)
	s := withOther(t, func(ctx context.Context) error {
		deadline, ok := ctx.Deadline()
		if !ok {
			return errors.New("there is no limit")
		}
		limits <- time.Until(deadline)
		<-ctx.Done()
		return ctx.Err()
	})
	if got, want := inspectorProblem(t, s), "the inspector did not answer in time"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if limit := <-limits; limit > inspectorTime*3/4 {
		t.Errorf("it had %s of %s", limit, inspectorTime)
	}
}
