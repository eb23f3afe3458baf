package server_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// BenchmarkUnary compares a PathExists through the whole daemon, policy and emulated node
// included, with the same message through a bare grpc-go server that only answers. Both
// listen on Unix sockets and are called in turns within the run, so that what else the
// machine does hits both; on a busy machine the ratio, server throughput over echo
// throughput, still scatters. The echo has grpc-go's defaults.
func BenchmarkUnary(b *testing.B) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	ours := dialBench(b, startDaemon(b, dir))
	bare := dialBench(b, startEcho(b, dir))
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			measure(b, ours, filesystemv1.Filesystem_PathExists_FullMethodName, callers) // warm up
			measure(b, bare, echoMethod, callers)
			b.ResetTimer()
			var onOurs, onBare time.Duration
			calls := 0
			for calls < b.N {
				onOurs += measure(b, ours, filesystemv1.Filesystem_PathExists_FullMethodName, callers)
				onBare += measure(b, bare, echoMethod, callers)
				calls += block
			}
			perSecond := func(d time.Duration) float64 { return float64(calls) / d.Seconds() }
			b.ReportMetric(perSecond(onOurs), "server/s")
			b.ReportMetric(perSecond(onBare), "echo/s")
			b.ReportMetric(perSecond(onOurs)/perSecond(onBare), "ratio")
			b.ReportMetric(0, "ns/op") // it would be the sum of both
		})
	}
}

// block is how many calls are made in one turn.
const block = 64 * 16

// measure makes a block of calls from a number of callers that share one connection.
func measure(b *testing.B, conn *grpc.ClientConn, method string, callers int) time.Duration {
	b.Helper()
	start := time.Now()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range block / callers {
				request, response := &filesystemv1.PathExistsRequest{Path: `C:\var\lib\kubelet\pods`}, &filesystemv1.PathExistsResponse{}
				if err := conn.Invoke(b.Context(), method, request, response); err != nil || !response.Exists {
					b.Errorf("%s: %v, %v", method, response, err)
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

func dialBench(b *testing.B, path string) *grpc.ClientConn {
	b.Helper()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}

func startDaemon(b *testing.B, dir string) (path string) {
	b.Helper()
	node, err := winsim.New(winsim.Default())
	if err != nil {
		b.Fatal(err)
	}
	hosts := daemon.LocalHosts()
	hosts.Filesystem = node.Filesystem()
	ctx, cancel := context.WithCancel(b.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- daemon.Serve(ctx, daemon.Config{
			Hosts:       hosts,
			WorkingDirs: []string{`C:\var\lib\kubelet`},
			APIGroups:   []string{"filesystem/v1"},
			SocketDir:   dir,
			Ready:       func() { close(ready) },
		})
	}()
	b.Cleanup(func() { cancel(); <-done })
	select {
	case <-ready:
	case err := <-done:
		b.Fatal(err)
	}
	return filepath.Join(dir, "csi-proxy-filesystem-v1.sock")
}

const echoMethod = "/bench.Echo/PathExists"

// startEcho serves the same messages with nothing around them and nothing behind.
func startEcho(b *testing.B, dir string) (path string) {
	b.Helper()
	path = filepath.Join(dir, "echo.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Echo",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "PathExists",
			Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				request := &filesystemv1.PathExistsRequest{}
				if err := decode(request); err != nil {
					return nil, err
				}
				return &filesystemv1.PathExistsResponse{Exists: true}, nil
			},
		}},
	}, nil)
	go func() { _ = s.Serve(listener) }()
	b.Cleanup(s.Stop)
	return path
}
