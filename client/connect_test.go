package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client"
	diskapi "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	disk "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
)

var v1 = apiversion.NewVersionOrPanic("v1")

// connect is client.Connect to a path; the group does not matter.
func connect(ctx context.Context, path string, opts ...client.Option) (*grpc.ClientConn, error) {
	return client.Connect(ctx, "test", v1, append(opts, client.WithPipePath(path))...)
}

// serve runs a gRPC server with the health service on a listener.
func serve(t testing.TB, listener net.Listener, opts ...grpc.ServerOption) *grpc.Server {
	t.Helper()
	server := grpc.NewServer(opts...)
	healthpb.RegisterHealthServer(server, health.NewServer())
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Errorf("serve: %v", err)
		}
	})
	return server
}

// check makes one call to the server that serve has started.
func check(ctx context.Context, conn *grpc.ClientConn, opts ...grpc.CallOption) error {
	_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, opts...)
	return err
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// wantContains fails the test for each part that is not in err's message.
func wantContains(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one that contains %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not contain %q", err, part)
		}
	}
}

func TestConnect_CallSucceeds(t *testing.T) {
	ctx, path := testContext(t), newPath(t)
	authority := make(chan []string, 1)
	serve(t, listen(t, path), grpc.UnaryInterceptor(
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			authority <- metadata.ValueFromIncomingContext(ctx, ":authority")
			return handler(ctx, req)
		}))

	conn, err := connect(ctx, path)
	must(t, err)
	defer conn.Close()
	must(t, check(ctx, conn))
	if got := <-authority; len(got) != 1 || got[0] != "localhost" {
		t.Errorf("authority is %q, want localhost", got)
	}
}

func TestConnect_MissingEndpoint(t *testing.T) {
	path := newPath(t)
	_, err := connect(t.Context(), path)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want an error that is fs.ErrNotExist", err)
	}
	wantContains(t, err, path, "csi-proxy", "this group and version")
}

func TestConnect_DefaultEndpoint(t *testing.T) {
	t.Setenv("CSI_PROXY_SOCKET_DIR", t.TempDir())
	_, err := client.Connect(t.Context(), "no-such-group", v1)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want an error that is fs.ErrNotExist", err)
	}
	wantContains(t, err, client.PipePath("no-such-group", v1))
}

func TestConnect_ContextOver(t *testing.T) {
	path := newPath(t)
	listener := listen(t, path)
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := connect(ctx, path)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	wantContains(t, err, path)
}

func TestConnect_WaitsForServer(t *testing.T) {
	ctx, path := testContext(t), newPath(t)
	missed := make(chan struct{})
	tick := make(chan time.Time)
	after := func(time.Duration) <-chan time.Time {
		missed <- struct{}{}
		return tick
	}
	type result struct {
		conn *grpc.ClientConn
		err  error
	}
	connected := make(chan result, 1)
	go func() {
		conn, err := connect(ctx, path, client.WithWait(), client.WithAfter(after))
		connected <- result{conn, err}
	}()

	for range 3 { // it looks, finds nothing, and looks again on a signal
		<-missed
		select {
		case got := <-connected:
			t.Fatalf("returned %v, %v before there was a server", got.conn, got.err)
		case tick <- time.Time{}:
		}
	}
	<-missed
	serve(t, listen(t, path))
	tick <- time.Time{}
	got := <-connected
	if got.err != nil {
		t.Fatal(got.err)
	}
	defer got.conn.Close()
	must(t, check(ctx, got.conn))
}

func TestConnect_WaitEndsWithContext(t *testing.T) {
	path := newPath(t)
	ctx, cancel := context.WithCancel(testContext(t))
	after := func(time.Duration) <-chan time.Time {
		cancel()
		return nil
	}
	_, err := connect(ctx, path, client.WithWait(), client.WithAfter(after))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want an error that is both context.Canceled and fs.ErrNotExist", err)
	}
	wantContains(t, err, "after waiting", path, "this group and version")
}

func TestConnect_WaitEndsWithDeadline(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		_, err := connect(ctx, path, client.WithWait())
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("got %v, want an error that is both context.DeadlineExceeded and fs.ErrNotExist", err)
		}
	})
}

// TestConnect_DeadlineBeforeContext: a dialer's timer can fire before that of the context. What is known
// of the endpoint is not forgotten for that.
func TestConnect_DeadlineBeforeContext(t *testing.T) {
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	passing := &passingDeadline{Context: ctx, deadline: time.Now().Add(time.Hour)}
	probes := 0
	after := func(time.Duration) <-chan time.Time {
		if probes++; probes == 2 {
			cancel() // later than the probe that the deadline has ended
			return nil
		}
		passing.deadline = time.Now()
		return time.After(0)
	}
	_, err := connect(passing, newPath(t), client.WithWait(), client.WithAfter(after))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want an error that is fs.ErrNotExist", err)
	}
}

// passingDeadline is a context whose deadline has passed before it is done.
type passingDeadline struct {
	context.Context //nolint:containedctx // it is one
	deadline        time.Time
}

func (c *passingDeadline) Deadline() (time.Time, bool) { return c.deadline, true }

func TestConnect_DaemonGoneAfterwards(t *testing.T) {
	ctx, path := testContext(t), newPath(t)
	server := serve(t, listen(t, path))
	conn, err := connect(ctx, path)
	must(t, err)
	defer conn.Close()
	server.Stop()
	quoted := strings.Trim(strconv.Quote(path), `"`) // by gRPC, which matters to pipes
	err = check(ctx, conn)
	for status.Code(err) == codes.Unavailable && !strings.Contains(err.Error(), quoted) { // it met the connection while that broke
		err = check(ctx, conn)
	}
	if status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v, want Unavailable", err)
	}
	wantContains(t, err, quoted, "this group and version")
}

func TestConnect_ServerRestarts(t *testing.T) {
	ctx, path := testContext(t), newPath(t)
	server := serve(t, listen(t, path))
	conn, err := connect(ctx, path)
	must(t, err)
	defer conn.Close()
	for range 3 {
		// A call that meets the connection while it breaks is lost, as on any
		// network; the next one, at the latest, must find the new server.
		err := check(ctx, conn, grpc.WaitForReady(true))
		for status.Code(err) == codes.Unavailable {
			err = check(ctx, conn, grpc.WaitForReady(true))
		}
		must(t, err)
		server.Stop()
		server = serve(t, listen(t, path))
	}
}

func TestConnect_DialOptionsPrevail(t *testing.T) {
	ctx := testContext(t)
	// Characters that mean something in a URL must reach the dialer as they are.
	path := newPath(t) + "%41 b#c"
	serve(t, listen(t, path))
	dialled := make(chan string, 1)
	conn, err := connect(ctx, path, client.WithDialOptions(
		grpc.WithContextDialer(func(_ context.Context, address string) (net.Conn, error) {
			select {
			case dialled <- address:
			default:
			}
			return nil, errors.New("stop here")
		})))
	must(t, err)
	defer conn.Close()
	wantContains(t, check(ctx, conn), "stop here")
	if got := <-dialled; got != path {
		t.Errorf("dialled %q, want %q", got, path)
	}

	conn, err = connect(ctx, path)
	must(t, err)
	defer conn.Close()
	must(t, check(ctx, conn))
}

func TestConnect_Concurrent(t *testing.T) {
	ctx, path := testContext(t), newPath(t)
	serve(t, listen(t, path))
	shared, err := disk.NewClientWithPipePath(path)
	must(t, err)
	defer shared.Close()
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			own, err := disk.New(ctx, client.WithPipePath(path), client.WithWait())
			if err != nil {
				t.Error(err)
				return
			}
			for _, c := range []*disk.Client{shared, own} {
				if err := callDisk(ctx, c); err != nil {
					t.Error(err)
				}
			}
			var closing sync.WaitGroup
			for range 2 {
				closing.Go(func() {
					if err := own.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
				})
			}
			closing.Wait()
		})
	}
	group.Wait()
}

// callDisk makes a call to a server without the disk service and returns nil if
// the server has said so.
func callDisk(ctx context.Context, c *disk.Client) error {
	_, err := c.GetDiskStats(ctx, &diskapi.GetDiskStatsRequest{})
	if status.Code(err) != codes.Unimplemented {
		return fmt.Errorf("got %w, want Unimplemented", err)
	}
	return nil
}

func TestConnect_LeaksNothing(t *testing.T) {
	ctx, path, missing := testContext(t), newPath(t), newPath(t)
	serve(t, listen(t, path))
	once := func() {
		if c, err := disk.NewClientWithPipePath(missing); err == nil {
			c.Close()
			t.Fatal("connected to a missing endpoint")
		}
		c, err := disk.NewClientWithPipePath(path)
		must(t, err)
		defer c.Close()
		must(t, callDisk(ctx, c))
	}
	// The garbage collector closes what was forgotten; here it must not.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	once() // what is started once and kept is not a leak
	goroutines, files := runtime.NumGoroutine(), openFiles()
	const rounds = 200
	for range rounds {
		once()
	}
	// A leak has a file for each round. Fewer are of the system: under Wine, a thread has three.
	files += rounds / 2
	// The other end notices a moment later.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		goroutinesNow, filesNow := runtime.NumGoroutine(), openFiles()
		if goroutinesNow <= goroutines && filesNow <= files {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("goroutines: %d, were %d; open files: %d, were %d", goroutinesNow, goroutines, filesNow, files)
		}
	}
}

// openFiles counts the file descriptors of this process where there is /proc, also under Wine, and
// is 0 on other systems.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

func TestExplain(t *testing.T) {
	const path = `\\.\pipe\csi-proxy-disk-v1`
	tests := []struct {
		goos  string
		cause error
		want  string
	}{
		{"windows", fs.ErrNotExist, "no such pipe: is csi-proxy running on this node"},
		{"windows", fs.ErrPermission, "access denied: by default only LocalSystem and members of Administrators may connect"},
		{"windows", context.DeadlineExceeded, "no instance of the pipe became free"},
		{"windows", io.ErrUnexpectedEOF, "cannot connect"},
		{"linux", fs.ErrNotExist, "no such socket: is csi-proxy-sim running"},
		{"linux", syscall.ECONNREFUSED, "no server listens on it"},
		{"linux", fs.ErrPermission, "permission denied: only the user who started the server"},
		{"linux", context.DeadlineExceeded, "no connection in time"},
		{"linux", io.ErrUnexpectedEOF, "cannot connect"},
	}
	for _, test := range tests {
		err := client.Explain(test.goos, path, &fs.PathError{Op: "open", Path: path, Err: test.cause})
		if !errors.Is(err, test.cause) {
			t.Errorf("%s: %v does not wrap %v", test.goos, err, test.cause)
		}
		wantContains(t, err, "csi-proxy endpoint "+path+": ", test.want, test.cause.Error())
	}
}

func TestClient_Fake(t *testing.T) {
	c := disk.Client{DiskClient: fakeDisk{}}
	response, err := c.GetDiskStats(t.Context(), &diskapi.GetDiskStatsRequest{DiskNumber: 7})
	if err != nil || response.TotalBytes != 7 {
		t.Errorf("got %v, %v", response, err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

type fakeDisk struct{ diskapi.DiskClient }

func (fakeDisk) GetDiskStats(_ context.Context, in *diskapi.GetDiskStatsRequest, _ ...grpc.CallOption) (*diskapi.GetDiskStatsResponse, error) {
	return &diskapi.GetDiskStatsResponse{TotalBytes: int64(in.DiskNumber)}, nil
}
