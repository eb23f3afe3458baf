package server

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
)

// Limits of one client. Requests are a few paths and numbers; the limits allow the longest legal
// paths.
const (
	maxRequestBytes = 1 << 20
	// maxMessageBytes is the most that gRPC reads. It refuses larger requests itself, without a
	// line in the log. While a request arrives, gRPC lets the client send all it declares.
	maxMessageBytes      = 2 << 20
	maxHeaderBytes       = 8 << 10
	maxHeaders           = 64  // each takes 100 bytes, whatever its length; a call has about ten
	maxConcurrentStreams = 200 // more calls wait in the client
	// streamWorkers is the number of goroutines kept ready per endpoint in use. A new goroutine
	// for each call must grow its stack, which takes a tenth of a short call's time. Calls beyond
	// this number get a new one. BenchmarkRPC shows the difference.
	streamWorkers = 16
	// readBufferBytes holds several requests. Every connection keeps such a buffer, and gRPC's
	// default of 32 KiB gains nothing: see ADR 0016.
	readBufferBytes = 4 << 10
)

// endpoint serves one version of a group. It makes its gRPC server at the first connection: drivers
// use few of the endpoints, and an idle server takes 150 KB on Windows, where a goroutine has at
// least 8 KB.
type endpoint struct {
	name        string
	connections *connections
	newServer   func() *grpcServer

	mu      sync.Mutex
	server  *grpcServer // nil until the first connection
	stopped bool
}

// grpcServer answers on an endpoint.
type grpcServer struct {
	*grpc.Server
	health     *health.Server
	endStreams context.CancelFunc
}

func newEndpoint(logger klog.Logger, cfg Config, e grpcapi.Endpoint, listener net.Listener, crowd *crowd) *endpoint {
	return &endpoint{
		name:        e.Name(),
		connections: track(listener, e.Name(), cfg, crowd),
		newServer:   func() *grpcServer { return newGRPCServer(logger, cfg, e) },
	}
}

func newGRPCServer(logger klog.Logger, cfg Config, e grpcapi.Endpoint) *grpcServer {
	stopping, endStreams := context.WithCancel(context.Background()) //nolint:forbidigo // ends with the endpoint: stop calls it
	edge := &edge{logger: logger, observer: cfg.Observer, stopping: stopping, version: metadata.Pairs(version.Header, version.String())}
	s := grpc.NewServer(
		grpc.Creds(newPeerCredentials()),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.ConnectionTimeout(cfg.ConnectionTimeout),
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxConcurrentStreams),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.ReadBufferSize(readBufferBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: cfg.IdleTimeout}),
		// Clients in other languages keep idle connections alive with pings, which are
		// harmless here.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.InTapHandle(admit),
		grpc.UnaryInterceptor(edge.unary),
		grpc.StreamInterceptor(edge.stream),
	)
	e.Register(s, cfg.Services)
	h := health.NewServer()
	h.SetServingStatus(e.ServiceName(), healthv1.HealthCheckResponse_SERVING)
	healthv1.RegisterHealthServer(s, h)
	return &grpcServer{Server: s, health: h, endStreams: endStreams}
}

// serve answers until the endpoint stops or fails. A stop returns nil.
func (e *endpoint) serve() error {
	// The gRPC server handles the error: it retries temporary ones.
	conn, err := e.connections.Accept()
	server := e.start()
	if server == nil {
		if conn != nil {
			_ = conn.Close() // the endpoint is stopped
		}
		return nil
	}
	listener := &resumed{Listener: e.connections, conn: conn, err: err}
	err = server.Serve(listener)
	if errors.Is(err, grpc.ErrServerStopped) { // stopped before it served
		err = nil
		if listener.conn != nil {
			_ = listener.conn.Close()
		}
	}
	return err
}

// start makes the gRPC server, unless the endpoint is already stopped.
func (e *endpoint) start() *grpcServer {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.stopped {
		e.server = e.newServer()
	}
	return e.server
}

// stop lets calls in flight finish within timeout.
func (e *endpoint) stop(logger klog.Logger, timeout time.Duration) {
	e.mu.Lock()
	e.stopped = true
	server := e.server
	e.mu.Unlock()
	if server == nil {
		_ = e.connections.Close() // there was no connection
		return
	}

	server.health.Shutdown() // tells the watchers
	server.endStreams()      // after that

	done := make(chan struct{})
	go func() {
		defer close(done)
		server.GracefulStop()
	}()
	timer, sweep := time.NewTimer(timeout), time.NewTicker(100*time.Millisecond)
	defer timer.Stop()
	defer sweep.Stop()
	for {
		// Silent connections have no calls in flight, but the graceful stop would wait for
		// their handshakes.
		e.connections.closeSilent()
		select {
		case <-done:
			return
		case <-sweep.C:
		case <-timer.C:
			logger.Info("Closing connections whose calls did not finish in time", "endpoint", e.name, "timeout", timeout)
			// This cancels the contexts of the calls. Do not wait for done: a call may be
			// stuck in Windows.
			e.connections.closeAll()
			server.Stop()
			return
		}
	}
}

// resumed is a listener whose first Accept has already been called.
type resumed struct {
	net.Listener
	conn net.Conn
	err  error
}

// Accept returns the result of the first Accept, and then accepts from the listener.
func (r *resumed) Accept() (net.Conn, error) {
	conn, err := r.conn, r.err
	r.conn, r.err = nil, nil
	if conn == nil && err == nil {
		return r.Listener.Accept()
	}
	return conn, err
}
