package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	filesystemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
)

// stubFilesystem answers PathExists as a test wants it. No other method is called.
type stubFilesystem struct {
	filesystem.Extended
	pathExists func(ctx context.Context, path string) (bool, error)
}

func (s stubFilesystem) PathExists(ctx context.Context, r *filesystem.PathExistsRequest) (*filesystem.PathExistsResponse, error) {
	exists, err := s.pathExists(ctx, r.Path)
	return &filesystem.PathExistsResponse{Exists: exists}, err
}

func always(context.Context, string) (bool, error) { return true, nil }

// running is a server under test with the filesystem's v1 and v1alpha1 endpoints.
type running struct {
	t      *testing.T
	place  string
	logger klog.Logger
	stop   context.CancelFunc
	result chan error // of Run, once
}

func start(t *testing.T, pathExists func(context.Context, string) (bool, error), adjust ...func(*server.Config)) *running {
	t.Helper()
	r := startCold(t, pathExists, adjust...)
	r.warmUp()
	return r
}

// warmUp is the first client of each endpoint, see there.
func (r *running) warmUp() {
	for _, version := range []string{"v1", "v1alpha1"} {
		warmUp(r.t.Context(), r.path(version))
	}
}

// startCold starts a server that has had no client.
func startCold(t *testing.T, pathExists func(context.Context, string) (bool, error), adjust ...func(*server.Config)) *running {
	t.Helper()
	place := newPlace(t)
	endpoints, err := grpcapi.Select([]string{"filesystem/v1", "filesystem/v1alpha1"})
	require.NoError(t, err)
	ready := make(chan struct{})
	cfg := server.Config{
		Endpoints: endpoints,
		Services:  grpcapi.Services{Filesystem: stubFilesystem{pathExists: pathExists}},
		Listen: func(ctx context.Context, e grpcapi.Endpoint) (net.Listener, error) {
			return pipe.Listen(ctx, endpointIn(place, e.Version), pipe.Config{})
		},
		Ready:       func() { close(ready) },
		StopTimeout: 2 * stopTimeout,
	}
	for _, f := range adjust {
		f(&cfg)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{t: t, place: place, logger: logger(t), stop: cancel, result: make(chan error, 1)}
	ctx = klog.NewContext(ctx, r.logger)
	go func() { r.result <- server.Run(ctx, cfg); close(r.result) }()
	t.Cleanup(func() {
		cancel()
		<-r.result
	})
	select {
	case <-ready:
	case err := <-r.result:
		t.Fatal(err)
	}
	return r
}

func (r *running) path(version string) string { return endpointIn(r.place, version) }

func (r *running) conn(version string) *grpc.ClientConn {
	r.t.Helper()
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return dialEndpoint(ctx, r.path(version)) }
	conn, err := grpc.NewClient("passthrough:///"+version, grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (r *running) rawConn() net.Conn {
	r.t.Helper()
	conn, err := dialEndpoint(r.t.Context(), r.path("v1"))
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (r *running) mustServe() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), answerTimeout)
	defer cancel()
	if _, err := filesystemv1.NewFilesystemClient(r.conn("v1")).PathExists(ctx, &filesystemv1.PathExistsRequest{Path: "x"}); err != nil {
		r.t.Errorf("v1 does not answer: %v", err)
	}
	if _, err := filesystemv1alpha1.NewFilesystemClient(r.conn("v1alpha1")).PathExists(ctx, &filesystemv1alpha1.PathExistsRequest{Path: "x"}); err != nil {
		r.t.Errorf("v1alpha1 does not answer: %v", err)
	}
}

// stopTimeout is far more than a stop takes, also on a busy machine. What holds up a stop does so for twice as
// long, or for the 120 s of grpc-go.
const stopTimeout = time.Minute

// mustStop stops the server and checks that it does so cleanly, and that nothing holds it up.
func (r *running) mustStop() {
	r.t.Helper()
	r.stop()
	select {
	case err := <-r.result:
		if err != nil {
			r.t.Errorf("Run returned %v", err)
		}
	case <-time.After(stopTimeout):
		r.t.Fatalf("Run did not return within %v", stopTimeout)
	}
	if left := leftIn(r.place); len(left) > 0 {
		r.t.Errorf("left behind: %v", left)
	}
}

func TestRun_ServesAndStops(t *testing.T) {
	r := start(t, always)
	r.mustServe()
	r.mustStop()
	if _, err := dialEndpoint(t.Context(), r.path("v1")); err == nil {
		t.Error("a server still listens")
	}
}

func TestRun_Health(t *testing.T) {
	r := start(t, always)
	health := healthv1.NewHealthClient(r.conn("v1"))
	for _, service := range []string{"", "v1.Filesystem"} {
		response, err := health.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
		if err != nil || response.Status != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v", service, response, err)
		}
	}
	if _, err := health.Check(t.Context(), &healthv1.HealthCheckRequest{Service: "v1.Disk"}); status.Code(err) != codes.NotFound {
		t.Errorf("health of a service of another endpoint: %v", err)
	}
	// A watcher learns of the stop before the connection ends.
	watch, err := health.Watch(t.Context(), &healthv1.HealthCheckRequest{})
	require.NoError(t, err)
	if first, err := watch.Recv(); err != nil || first.Status != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("first state: %v, %v", first, err)
	}
	// One of a service that is not there has nothing to learn.
	unknown, err := health.Watch(t.Context(), &healthv1.HealthCheckRequest{Service: "v1.Disk"})
	require.NoError(t, err)
	if first, err := unknown.Recv(); err != nil || first.Status != healthv1.HealthCheckResponse_SERVICE_UNKNOWN {
		t.Fatalf("first state of a service of another endpoint: %v, %v", first, err)
	}
	r.stop()
	if last, err := watch.Recv(); err != nil || last.Status != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("state on stop: %v, %v", last, err)
	}
	for _, ended := range []healthv1.Health_WatchClient{watch, unknown} {
		if more, err := ended.Recv(); err == nil {
			t.Errorf("a watch goes on after the stop: %v", more)
		}
	}
	// And does not hold it up.
	r.mustStop()
}

// TestRun_UnusedEndpoints: an endpoint without clients has no gRPC server with all its
// goroutines, and stops like the others.
func TestRun_UnusedEndpoints(t *testing.T) {
	before := runtime.NumGoroutine()
	r := startCold(t, always)
	const forRunAndTwoEndpoints = 1 + 2*perEndpoint
	if idle := runtime.NumGoroutine() - before; idle > forRunAndTwoEndpoints {
		t.Errorf("%d goroutines wait for the first client, want at most %d", idle, forRunAndTwoEndpoints)
	}
	r.warmUp()
	if _, err := filesystemv1.NewFilesystemClient(r.conn("v1")).PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: "x"}); err != nil {
		t.Error(err)
	}
	r.mustStop()
}

// TestRun_ClientsDuringTheStop: a client that connects during the stop is answered or turned
// away, and does not hold it up.
func TestRun_ClientsDuringTheStop(t *testing.T) {
	for range 50 {
		r := start(t, always)
		var clients sync.WaitGroup
		for _, version := range []string{"v1", "v1alpha1"} {
			clients.Go(func() {
				if conn, err := dialEndpoint(t.Context(), r.path(version)); err == nil {
					_, _ = io.Copy(io.Discard, conn) // until it is closed
					_ = conn.Close()
				}
			})
		}
		r.mustStop()
		clients.Wait()
	}
}

func TestRun_NeedsEndpoints(t *testing.T) {
	if err := server.Run(t.Context(), server.Config{}); err == nil {
		t.Error("a server without endpoints ran")
	}
}

func TestRun_ListenFailureClosesTheOthers(t *testing.T) {
	cause := errors.New("cause")
	place, opened := newPlace(t), []string{}
	endpoints := grpcapi.Endpoints()
	err := server.Run(t.Context(), server.Config{
		Endpoints: endpoints,
		Listen: func(ctx context.Context, e grpcapi.Endpoint) (net.Listener, error) {
			if len(opened) == 3 {
				return nil, cause
			}
			path := endpointIn(place, fmt.Sprint(len(opened)))
			opened = append(opened, path)
			return pipe.Listen(ctx, path, pipe.Config{})
		},
		Ready: func() { t.Error("Ready was called") },
	})
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), endpoints[3].Name()) {
		t.Errorf("got %v, want the cause and %s", err, endpoints[3].Name())
	}
	for _, path := range opened {
		if _, err := dialEndpoint(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a listener was left open: %v", err)
		}
	}
}

func TestRun_FirstFailureStopsAllAndNamesTheEndpoint(t *testing.T) {
	var listeners sync.Map
	r := start(t, always, func(cfg *server.Config) {
		listen := cfg.Listen
		cfg.Listen = func(ctx context.Context, e grpcapi.Endpoint) (net.Listener, error) {
			listener, err := listen(ctx, e)
			listeners.Store(e.Version, listener)
			return listener, err
		}
	})
	broken, _ := listeners.Load("v1alpha1")
	_ = broken.(net.Listener).Close() // under the server's feet
	select {
	case err := <-r.result:
		if err == nil || !strings.Contains(err.Error(), "filesystem/v1alpha1") {
			t.Errorf("got %v, want an error that names filesystem/v1alpha1", err)
		}
	case <-time.After(answerTimeout):
		t.Fatal("Run goes on with a dead endpoint")
	}
	if _, err := dialEndpoint(t.Context(), r.path("v1")); err == nil {
		t.Error("v1 still listens")
	}
}

func TestRun_ErrorsGetTheirCodeAndText(t *testing.T) {
	r := start(t, func(_ context.Context, path string) (bool, error) {
		return false, winerr.Wrap("look up", path, winerr.SharingViolation)
	})
	_, err := filesystemv1.NewFilesystemClient(r.conn("v1")).PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: `C:\x`})
	if status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), `C:\x`) || !strings.Contains(err.Error(), "32") {
		t.Errorf("got %v, want Aborted with the object and the Windows code", err)
	}
}

func TestRun_APanicIsOneCallsError(t *testing.T) {
	r := start(t, func(_ context.Context, path string) (bool, error) {
		if path == "panic" {
			panic("secret details")
		}
		return true, nil
	})
	_, err := filesystemv1.NewFilesystemClient(r.conn("v1")).PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: "panic"})
	if status.Code(err) != codes.Internal || !strings.HasSuffix(err.Error(), ": internal error; see the csi-proxy log") {
		t.Errorf("got %v, want Internal without details", err)
	}
	r.mustServe()
}

// TestRun_StopWaitsForCallsInFlight: a call that was accepted gets its answer.
func TestRun_StopWaitsForCallsInFlight(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	r := start(t, func(context.Context, string) (bool, error) {
		close(entered)
		<-release
		return true, nil
	})
	answered := make(chan error, 1)
	go func() {
		_, err := filesystemv1.NewFilesystemClient(r.conn("v1")).PathExists(t.Context(), &filesystemv1.PathExistsRequest{})
		answered <- err
	}()
	<-entered
	r.stop()
	select {
	case err := <-r.result:
		t.Fatalf("Run returned %v while a call was in flight", err)
	case err := <-answered:
		t.Fatalf("the call ended with %v before it was done", err)
	case <-time.After(100 * time.Millisecond): // nothing must happen
	}
	close(release)
	require.NoError(t, <-answered, "the call in flight:")
	r.mustStop()
}

// TestRun_StopIsBounded: a call that never ends does not keep the server.
func TestRun_StopIsBounded(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	r := start(t, func(context.Context, string) (bool, error) {
		close(entered)
		<-release // heeds no context, as a stuck Windows call
		return true, nil
	}, func(cfg *server.Config) { cfg.StopTimeout = 50 * time.Millisecond })
	answered := make(chan error, 1)
	go func() {
		_, err := filesystemv1.NewFilesystemClient(r.conn("v1")).PathExists(t.Context(), &filesystemv1.PathExistsRequest{})
		answered <- err
	}()
	<-entered
	r.mustStop()
	if err := <-answered; status.Code(err) != codes.Unavailable {
		t.Errorf("the abandoned call: %v, want Unavailable", err)
	}
}

// TestRun_ClientThatDisappears: its call is cancelled, the others are served.
func TestRun_ClientThatDisappears(t *testing.T) {
	entered, cancelled := make(chan struct{}), make(chan struct{})
	r := start(t, func(ctx context.Context, path string) (bool, error) {
		if path == "wait" {
			close(entered)
			<-ctx.Done()
			close(cancelled)
			return false, ctx.Err()
		}
		return true, nil
	})
	conn := r.conn("v1")
	go func() {
		_, _ = filesystemv1.NewFilesystemClient(conn).PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: "wait"})
	}()
	<-entered
	_ = conn.Close()
	select {
	case <-cancelled:
	case <-time.After(answerTimeout):
		t.Fatal("the call continues without its client")
	}
	r.mustServe()
}

// TestRun_SilentConnectionIsClosed: a client that never speaks does not keep its place.
func TestRun_SilentConnectionIsClosed(t *testing.T) {
	r := start(t, always, func(cfg *server.Config) { cfg.ConnectionTimeout = 2 * time.Second }) // enough for clients that speak
	conn := r.rawConn()
	_ = conn.SetReadDeadline(time.Now().Add(answerTimeout)) // far less than grpc-go's 120 s
	if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
		t.Error("the connection was not closed")
	}
	r.mustServe()
}

// TestRun_HalfAGreeting does not hold up the stop either.
func TestRun_HalfAGreeting(t *testing.T) {
	r := start(t, always, func(cfg *server.Config) { cfg.ConnectionTimeout = time.Second })
	for range 20 {
		if _, err := io.WriteString(r.rawConn(), "PRI * HTTP/2.0\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	r.mustServe()
	r.mustStop()
}

func TestRun_GarbageBytes(t *testing.T) {
	r := start(t, always)
	for name, garbage := range map[string]string{
		"text":                "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"zeros":               strings.Repeat("\x00", 4096),
		"preface and garbage": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\xff", 4096),
		"a torn preface":      "PRI * HTTP/2.0\r\n",
	} {
		conn := r.rawConn()
		if _, err := io.WriteString(conn, garbage); err != nil {
			t.Logf("%s: %v", name, err) // closed while we were writing: as good
		}
		if half, ok := conn.(interface{ CloseWrite() error }); ok { // a pipe of bytes has no half
			_ = half.CloseWrite()
		}
		_ = conn.SetReadDeadline(time.Now().Add(answerTimeout))
		if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
			t.Errorf("%s: the connection was not closed", name)
		}
	}
	r.mustServe()
	r.mustStop()
}

func TestRun_UnknownMethodAndService(t *testing.T) {
	r := start(t, always)
	for _, method := range []string{"/v1.Filesystem/Nothing", "/v1.Nothing/PathExists", "/v1alpha1.Filesystem/PathExists"} {
		err := r.conn("v1").Invoke(t.Context(), method, &filesystemv1.PathExistsRequest{}, &filesystemv1.PathExistsResponse{})
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v, want Unimplemented", method, err)
		}
	}
}

// observations is an Observer that remembers.
type observations struct {
	mu      sync.Mutex
	started map[string]int
	done    map[string]int
}

func (o *observations) RequestStarted(method string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.started[method]++
}

func (o *observations) RequestDone(method string, code codes.Code, elapsed time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if elapsed < 0 {
		method += " before it began"
	}
	o.done[fmt.Sprintf("%s %s", method, code)]++
}

// TestRun_Observer also shows that an alias reports the version that was called.
func TestRun_Observer(t *testing.T) {
	seen := &observations{started: map[string]int{}, done: map[string]int{}}
	r := start(t, func(_ context.Context, path string) (bool, error) {
		switch path {
		case "panic":
			panic("on purpose")
		case "missing":
			return false, winerr.New(winerr.NotFound, "look up", path, "on purpose")
		}
		return true, nil
	}, func(cfg *server.Config) { cfg.Observer = seen })
	for _, path := range []string{"x", "missing", "panic"} {
		_, _ = filesystemv1.NewFilesystemClient(r.conn("v1")).PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: path})
		_, _ = filesystemv1alpha1.NewFilesystemClient(r.conn("v1alpha1")).PathExists(t.Context(), &filesystemv1alpha1.PathExistsRequest{Path: path})
	}
	r.mustStop()
	for _, method := range []string{"/v1.Filesystem/PathExists", "/v1alpha1.Filesystem/PathExists"} {
		if seen.started[method] != 3 {
			t.Errorf("%s was started %d times, want 3", method, seen.started[method])
		}
		for _, code := range []codes.Code{codes.OK, codes.NotFound, codes.Internal} {
			if key := fmt.Sprintf("%s %s", method, code); seen.done[key] != 1 {
				t.Errorf("%q was seen %d times, want once", key, seen.done[key])
			}
		}
	}
	if len(seen.started) != 2 || len(seen.done) != 6 {
		t.Errorf("more was seen: %v %v", seen.started, seen.done)
	}
}

// TestRun_LeaksNothing starts and stops a server with every kind of client and counts.
func TestRun_LeaksNothing(t *testing.T) {
	once := func() {
		r := start(t, always)
		r.rawConn()
		conn := r.conn("v1")
		_, _ = filesystemv1.NewFilesystemClient(conn).PathExists(t.Context(), &filesystemv1.PathExistsRequest{})
		_ = conn.Close()
		r.mustStop()
	}
	once()
	before := runtime.NumGoroutine()
	for range 10 {
		once()
	}
	deadline := time.Now().Add(answerTimeout)
	for runtime.NumGoroutine() > before+5 {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
		runtime.Gosched()
	}
}
