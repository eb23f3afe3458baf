package endpoint_test

import (
	"context"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestCheck checks one endpoint in all states that exist on this system.
func TestCheck(t *testing.T) {
	name := endpoint.Name{Group: "disk", Version: "v1"}
	serve := func(t *testing.T, register func(*grpc.Server)) endpoint.Node {
		t.Helper()
		node, listener := listen(t, name)
		server := grpc.NewServer()
		register(server)
		done := make(chan error, 1)
		go func() { done <- server.Serve(listener) }()
		t.Cleanup(func() { server.Stop(); <-done })
		return node
	}
	for want, start := range map[endpoint.State]func(t *testing.T) endpoint.Node{
		endpoint.Missing: newNode,
		endpoint.Dead: func(t *testing.T) endpoint.Node {
			t.Helper()
			if runtime.GOOS == "windows" {
				t.Skip("a pipe does not outlive its server")
			}
			node := newNode(t)
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", node.Path(name))
			require.NoError(t, err)
			listener.(*net.UnixListener).SetUnlinkOnClose(false)
			listener.Close()
			return node
		},
		endpoint.Serving: func(t *testing.T) endpoint.Node {
			t.Helper()
			return serve(t, func(s *grpc.Server) { healthv1.RegisterHealthServer(s, health.NewServer()) })
		},
		endpoint.NotServing: func(t *testing.T) endpoint.Node {
			t.Helper()
			h := health.NewServer()
			h.Shutdown()
			return serve(t, func(s *grpc.Server) { healthv1.RegisterHealthServer(s, h) })
		},
		endpoint.NoHealth: func(t *testing.T) endpoint.Node {
			t.Helper()
			return serve(t, func(*grpc.Server) {})
		},
		endpoint.Silent: func(t *testing.T) endpoint.Node {
			t.Helper()
			node, _ := listen(t, name) // connections stay in its queue
			return node
		},
	} {
		t.Run(string(want), func(t *testing.T) {
			node := start(t)
			ctx := t.Context()
			if want == endpoint.Silent { // takes until the timeout
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
			}
			h := node.Check(ctx, name)
			if h.State != want || h.Name != name || h.State.Answers() != (h.State == endpoint.Serving || h.State == endpoint.NoHealth) {
				t.Errorf("got %+v, want %s", h, want)
			}
			if knowsServers && h.State.Answers() && h.PID != os.Getpid() {
				t.Errorf("got process %d, want %d", h.PID, os.Getpid())
			}
		})
	}
}

// knowsServers is whether this system knows whose an endpoint is.
const knowsServers = runtime.GOOS == "linux" || runtime.GOOS == "windows"

// newNode is a node without endpoints.
func newNode(t *testing.T) endpoint.Node {
	t.Helper()
	return endpoint.Node{Dir: serve.SocketDir(t)}
}

func listen(t *testing.T, name endpoint.Name) (endpoint.Node, net.Listener) {
	t.Helper()
	node := newNode(t)
	listener, err := pipe.Listen(t.Context(), node.Path(name), pipe.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	return node, listener
}
