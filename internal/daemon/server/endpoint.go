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

// Limits on what one client can demand. Requests are a few paths and numbers; the
// limits leave room for the longest legal paths and no more.
const (
	maxRequestBytes = 1 << 20
	// maxMessageBytes is what gRPC reads: larger requests it refuses by itself, without a
	// line in the log.
	maxMessageBytes      = 16 << 20
	maxHeaderBytes       = 16 << 10
	maxConcurrentStreams = 1000
	// streamWorkers are goroutines kept ready per endpoint in use. A fresh goroutine per call
	// grows its stack anew each time, which costs a tenth of a short call's time; calls
	// beyond this number get a fresh one as usual. BenchmarkRPC shows the difference.
	streamWorkers = 16
	// readBufferBytes is enough for several requests. Every connection has such a buffer all
	// the time, and gRPC's default of 32 KiB gains nothing: see ADR 0016.
	readBufferBytes = 4 << 10
)

// endpoint is one group-version being served. It gets its gRPC server with the first
// connection: a node's drivers use a few of the endpoints, and each server that only waits
// would take 150 KB of a Windows node's memory, where no goroutine has less than 8 KB.
type endpoint struct {
	name        string
	connections *connections
	newServer   func() *grpcServer

	mu      sync.Mutex
	server  *grpcServer // nil until there was a connection
	stopped bool
}

// grpcServer is what answers on an endpoint.
type grpcServer struct {
	*grpc.Server
	health     *health.Server
	endStreams context.CancelFunc
}

func newEndpoint(logger klog.Logger, cfg Config, e grpcapi.Endpoint, listener net.Listener) *endpoint {
	return &endpoint{
		name:        e.Name(),
		connections: track(listener, cfg.MaxConnections),
		newServer:   func() *grpcServer { return newGRPCServer(logger, cfg, e) },
	}
}

func newGRPCServer(logger klog.Logger, cfg Config, e grpcapi.Endpoint) *grpcServer {
	streams, endStreams := context.WithCancel(context.Background()) //nolint:forbidigo,gosec // ends with the endpoint: stop calls it
	edge := &edge{logger: logger, observer: cfg.Observer, streams: streams, version: metadata.Pairs(version.Header, version.String())}
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
		// Clients of other languages keep idle connections alive with pings; they
		// are local and harmless.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(edge.unary),
		grpc.StreamInterceptor(edge.stream),
	)
	e.Register(s, cfg.Services)
	h := health.NewServer()
	h.SetServingStatus(e.ServiceName(), healthv1.HealthCheckResponse_SERVING)
	healthv1.RegisterHealthServer(s, h)
	return &grpcServer{Server: s, health: h, endStreams: endStreams}
}

// serve answers until the endpoint is stopped, or fails. A stop is no error.
func (e *endpoint) serve() error {
	// Whatever Accept says, the gRPC server knows what to do about it: errors that pass are
	// tried again.
	conn, err := e.connections.Accept()
	server := e.start()
	if server == nil {
		if conn != nil {
			_ = conn.Close() // too late
		}
		return nil
	}
	listener := &resumed{Listener: e.connections, conn: conn, err: err}
	err = server.Serve(listener)
	if errors.Is(err, grpc.ErrServerStopped) { // before it had begun to serve
		err = nil
		if listener.conn != nil {
			_ = listener.conn.Close()
		}
	}
	return err
}

// start makes the gRPC server, unless the endpoint is stopped already.
func (e *endpoint) start() *grpcServer {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.stopped {
		e.server = e.newServer()
	}
	return e.server
}

// stop lets calls in flight finish, but not longer than timeout.
func (e *endpoint) stop(logger klog.Logger, timeout time.Duration) {
	e.mu.Lock()
	e.stopped = true
	server := e.server
	e.mu.Unlock()
	if server == nil {
		_ = e.connections.Close() // nobody has come, and nobody shall
		return
	}

	// Watchers of the health are told; then their streams, which have no end of their
	// own, are ended, or the graceful stop would wait for them.
	const farewell = 100 * time.Millisecond
	server.health.Shutdown()
	time.AfterFunc(farewell, server.endStreams)

	done := make(chan struct{})
	go func() {
		defer close(done)
		server.GracefulStop()
	}()
	timer, sweep := time.NewTimer(timeout), time.NewTicker(farewell)
	defer timer.Stop()
	defer sweep.Stop()
	for {
		// Connections that never spoke cannot have calls in flight; without this the
		// graceful stop would wait for their handshakes.
		e.connections.closeSilent()
		select {
		case <-done:
			return
		case <-sweep.C:
		case <-timer.C:
			logger.Info("Calls did not finish in time, closing their connections", "endpoint", e.name, "timeout", timeout)
			// Closing the connections cancels the contexts of their calls. A call that
			// is stuck in Windows all the same is left behind: done would wait for it.
			e.connections.closeAll()
			server.Stop()
			return
		}
	}
}

// resumed is a listener whose first Accept somebody has called already.
type resumed struct {
	net.Listener
	conn net.Conn
	err  error
}

// Accept returns what the first Accept has returned, and from then on what the listener
// has.
func (r *resumed) Accept() (net.Conn, error) {
	conn, err := r.conn, r.err
	r.conn, r.err = nil, nil
	if conn == nil && err == nil {
		return r.Listener.Accept()
	}
	return conn, err
}
