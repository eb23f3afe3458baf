package server_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/echo"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const systemVolume = `\\?\Volume{0c51a9e0-0000-0000-0000-100000000000}\`

// cheapest is the call of each group that does least, and the health check, which does nothing.
// Their time is the time that the server adds.
var cheapest = []struct {
	endpoint, method  string
	request, response proto.Message
}{
	{"disk-v1", healthv1.Health_Check_FullMethodName, &healthv1.HealthCheckRequest{}, &healthv1.HealthCheckResponse{}},
	{"disk-v1", diskv1.Disk_GetDiskState_FullMethodName, &diskv1.GetDiskStateRequest{DiskNumber: 1}, &diskv1.GetDiskStateResponse{}},
	{"filesystem-v1", filesystemv1.Filesystem_PathExists_FullMethodName, &filesystemv1.PathExistsRequest{Path: `C:\var\lib\kubelet\pods`}, &filesystemv1.PathExistsResponse{}},
	{"iscsi-v1alpha2", iscsiv1alpha2.Iscsi_ListTargetPortals_FullMethodName, &iscsiv1alpha2.ListTargetPortalsRequest{}, &iscsiv1alpha2.ListTargetPortalsResponse{}},
	{"smb-v1", smbv1.Smb_RemoveSmbGlobalMapping_FullMethodName, &smbv1.RemoveSmbGlobalMappingRequest{RemotePath: `\\files\none`}, &smbv1.RemoveSmbGlobalMappingResponse{}},
	{"system-v1alpha1", systemv1alpha1.System_GetBIOSSerialNumber_FullMethodName, &systemv1alpha1.GetBIOSSerialNumberRequest{}, &systemv1alpha1.GetBIOSSerialNumberResponse{}},
	{"volume-v1", volumev1.Volume_GetVolumeStats_FullMethodName, &volumev1.GetVolumeStatsRequest{VolumeId: systemVolume}, &volumev1.GetVolumeStatsResponse{}},
}

// BenchmarkRPC compares the cheapest call of each group through the whole daemon, policy and
// emulated node included, with the same messages through a bare grpc-go server. Both listen on Unix
// sockets and take turns, so that other load on the machine hits both of them. The ratio is the median
// over the turns. Allocations are those of both sides of a call.
func BenchmarkRPC(b *testing.B) {
	dir := socketDir(b)
	startDaemon(b, dir)
	for _, c := range cheapest {
		ours := filepath.Join(dir, "csi-proxy-"+c.endpoint+".sock")
		answer := c.response
		conn := dial(b, ours)
		if err := conn.Invoke(b.Context(), c.method, c.request, answer); err != nil {
			b.Fatalf("%s: %v", c.method, err)
		}
		echoPath := startEcho(b, dir, filepath.Base(c.method), c.request, answer)
		for _, connections := range []string{"shared", "own"} {
			for _, callers := range []int{1, 8, 64} {
				if connections == "own" && callers == 1 {
					continue // the same as shared
				}
				b.Run(fmt.Sprintf("call=%s/connections=%s/callers=%d", filepath.Base(c.method), connections, callers), func(b *testing.B) {
					dialled := 1
					if connections == "own" {
						dialled = callers
					}
					server := grpcTurn(b, ours, c.method, c.request, answer, callers, dialled)
					bare := grpcTurn(b, echoPath, echo.Method, c.request, answer, callers, dialled)
					compare(b, server, bare)
				})
			}
		}
	}
}

// turn makes a block of calls and returns their duration and their number of allocations.
type turn func() (time.Duration, uint64)

// block is how many calls are made in one turn.
const block = 64 * 8

// compare runs the turns until the time is over, and reports them.
func compare(b *testing.B, server, bare turn) {
	b.Helper()
	server() // to warm up
	bare()
	var onServer, onEcho, ratios, serverAllocs, echoAllocs []float64
	for b.Loop() {
		serverTook, serverAllocated := server()
		echoTook, echoAllocated := bare()
		onServer, onEcho = append(onServer, block/serverTook.Seconds()), append(onEcho, block/echoTook.Seconds())
		ratios = append(ratios, echoTook.Seconds()/serverTook.Seconds())
		serverAllocs, echoAllocs = append(serverAllocs, float64(serverAllocated)/block), append(echoAllocs, float64(echoAllocated)/block)
	}
	b.ReportMetric(0, "ns/op") // hidden: it is the sum of all turns
	b.ReportMetric(median(onServer), "server/s")
	b.ReportMetric(median(onEcho), "echo/s")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(serverAllocs), "server-allocs")
	b.ReportMetric(median(echoAllocs), "echo-allocs")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// timed runs a block of calls, spread over callers.
func timed(callers int, call func(caller int)) (time.Duration, uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for range block / callers {
				call(caller)
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return took, after.Mallocs - before.Mallocs
}

// grpcTurn is the turn of callers that share a number of connections.
func grpcTurn(b *testing.B, path, method string, request, answer proto.Message, callers, connections int) turn {
	b.Helper()
	conns := make([]*grpc.ClientConn, connections)
	for i := range conns {
		conns[i] = dial(b, path)
	}
	return func() (time.Duration, uint64) {
		return timed(callers, func(caller int) {
			response := answer.ProtoReflect().New().Interface()
			if err := conns[caller%connections].Invoke(b.Context(), method, request, response); err != nil {
				b.Errorf("%s: %v", method, err)
			}
		})
	}
}

// BenchmarkClients shows what a connected client costs: memory, and time of other clients' calls.
// Eight callers use one connection after the other.
func BenchmarkClients(b *testing.B) {
	dir := socketDir(b)
	startDaemon(b, dir)
	path := filepath.Join(dir, "csi-proxy-filesystem-v1.sock")
	request, answer := &filesystemv1.PathExistsRequest{Path: `C:\var\lib\kubelet\pods`}, &filesystemv1.PathExistsResponse{}
	for _, clients := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			before := inUse()
			conns := make([]*grpc.ClientConn, clients)
			for i := range conns {
				conns[i] = dial(b, path)
				require.NoError(b, conns[i].Invoke(b.Context(), filesystemv1.Filesystem_PathExists_FullMethodName, request, &filesystemv1.PathExistsResponse{}))
			}
			held := inUse() - before
			turn := grpcTurnOver(b, conns, filesystemv1.Filesystem_PathExists_FullMethodName, request, answer)
			turn()
			var took []float64
			for b.Loop() {
				elapsed, _ := turn()
				took = append(took, float64(elapsed.Nanoseconds())/block)
			}
			b.ReportMetric(0, "ns/op") // hidden: it is the time of a turn, not of a call
			b.ReportMetric(median(took), "ns/call")
			b.ReportMetric(float64(held)/float64(clients)/1024, "KiB/client")
		})
	}
}

// grpcTurnOver is the turn of eight callers that use all connections.
func grpcTurnOver(b *testing.B, conns []*grpc.ClientConn, method string, request, answer proto.Message) turn {
	b.Helper()
	const callers = 8
	next := make([]int, callers)
	return func() (time.Duration, uint64) {
		return timed(callers, func(caller int) {
			next[caller]++
			conn := conns[(next[caller]*callers+caller)%len(conns)]
			if err := conn.Invoke(b.Context(), method, request, answer.ProtoReflect().New().Interface()); err != nil {
				b.Errorf("%s: %v", method, err)
			}
		})
	}
}

// inUse is the memory of both sides: the heap and the stacks.
func inUse() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapInuse + stats.StackInuse)
}

// socketDir is shorter than b.TempDir, which contains the benchmark's name: the path of a socket is
// limited.
func socketDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("", "bench")
	require.NoError(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func dial(b *testing.B, path string) *grpc.ClientConn {
	b.Helper()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}

// startDaemon serves an emulated node as csi-proxy-sim does.
func startDaemon(b *testing.B, dir string) {
	b.Helper()
	machine, err := winsim.New(winsim.Default())
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- daemon.Serve(ctx, daemon.Config{
			Hosts: daemon.Hosts{
				Disk: machine.Disk(), Filesystem: machine.Filesystem(), ISCSI: machine.ISCSI(),
				SMB: machine.SMB(), System: machine.System(), Volume: machine.Volume(),
				Node: func(options ...node.Option) (*node.Node, error) { return node.NewOn(machine, options...) },
			},
			WorkingDirs: []string{`C:\var\lib\kubelet`},
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
}

// startEcho serves the same messages with nothing around them and nothing behind.
func startEcho(b *testing.B, dir, name string, request, answer proto.Message) (path string) {
	b.Helper()
	path, listener := listenOn(b, dir, "echo-"+name)
	s := echo.NewServer(request, answer)
	go func() { _ = s.Serve(listener) }()
	b.Cleanup(s.Stop)
	return path
}

func listenOn(b *testing.B, dir, name string) (path string, listener net.Listener) {
	b.Helper()
	path = filepath.Join(dir, name+".sock")
	listener, err := net.Listen("unix", path)
	require.NoError(b, err)
	b.Cleanup(func() { listener.Close() })
	return path, listener
}
