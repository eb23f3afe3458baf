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

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
)

// Settings of gRPC. With them, one connection makes the server hold
//
//	200 requests × (256 KiB of message + 8 KiB of headers + 16 KiB of goroutine and stream) = 55 MiB
//
// of requests that do not arrive, and 200 answers that are not read: 5 MB on a node with 200 disks. In tiny frames it
// is more, because gRPC takes 4 KiB for one of 1,025 bytes, and about 100 bytes for one of 1: then only limits.go,
// which has the limits of all connections together, keeps it small.
//
// Windows are not static, because that limits nothing here: gRPC takes no more of a request than it declares. It
// costs a tenth of the calls of 64 clients, see BenchmarkRPC.
const (
	// maxMessageBytes has room for the longest legal request, which has two paths of 98 KiB.
	maxMessageBytes      = 256 << 10
	maxHeaderBytes       = 8 << 10 // a call has less than 1 KiB
	maxConcurrentStreams = 200     // more calls wait in the client
	// pingInterval is the least time between two pings. With gRPC's 5 minutes, well-behaved clients in other
	// languages lose their connections.
	pingInterval = 10 * time.Second
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
	name      string
	listener  *listener
	newServer func() *grpcServer

	mu      sync.Mutex
	server  *grpcServer // nil until the first connection
	stopped bool
}

type grpcServer struct {
	*grpc.Server
	health     *health.Server
	endStreams context.CancelFunc
}

func newEndpoint(logger klog.Logger, cfg Config, e grpcapi.Endpoint, raw net.Listener, limits *limits) *endpoint {
	return &endpoint{
		name:      e.Name(),
		listener:  &listener{Listener: raw, endpoint: e.Name(), limits: limits},
		newServer: func() *grpcServer { return newGRPCServer(logger, cfg, e, limits) },
	}
}

func newGRPCServer(logger klog.Logger, cfg Config, e grpcapi.Endpoint, limits *limits) *grpcServer {
	stopping, endStreams := context.WithCancel(context.Background()) //nolint:forbidigo // ends with the endpoint: stop calls it
	edge := &edge{
		logger: logger, ownLog: logger != klog.Background(), observer: cfg.Observer, failures: cfg.Failures, stopping: stopping, version: metadata.Pairs(version.Header, version.String()),
	}
	s := grpc.NewServer(
		grpc.Creds(newPeerCredentials()),
		grpc.ForceServerCodecV2(newCodec(limits)),
		grpc.ConnectionTimeout(cfg.ConnectionTimeout),
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxConcurrentStreams),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.ReadBufferSize(readBufferBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: cfg.IdleTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingInterval, PermitWithoutStream: true}),
		grpc.InTapHandle(begin),
		grpc.UnaryInterceptor(edge.unary),
		grpc.StreamInterceptor(edge.stream),
	)
	services := counted{s}
	e.Register(services, cfg.Services)
	h := health.NewServer()
	h.SetServingStatus(e.ServiceName(), healthv1.HealthCheckResponse_SERVING)
	healthv1.RegisterHealthServer(services, h)
	return &grpcServer{Server: s, health: h, endStreams: endStreams}
}

// serve answers until the endpoint stops or fails. A stop returns nil.
func (e *endpoint) serve() error {
	// The gRPC server handles the error: it retries temporary ones.
	conn, err := e.listener.Accept()
	server := e.start()
	if server == nil {
		if conn != nil {
			_ = conn.Close() // the endpoint is stopped
		}
		return nil
	}
	listener := &resumed{Listener: e.listener, conn: conn, err: err}
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

// stop lets calls in flight finish within timeout; 0 means not at all.
func (e *endpoint) stop(logger klog.Logger, timeout time.Duration) {
	e.mu.Lock()
	e.stopped = true
	server := e.server
	e.mu.Unlock()
	if server == nil {
		_ = e.listener.Close() // there was no connection
		return
	}
	if timeout == 0 {
		_ = e.listener.Close()
		e.listener.closeConnections(false)
		server.endStreams()
		server.Stop()
		return
	}

	server.health.Shutdown() // notifies the watchers
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
		e.listener.closeConnections(true)
		select {
		case <-done:
			return
		case <-sweep.C:
		case <-timer.C:
			logger.Info("Closing connections whose calls did not finish in time", "endpoint", e.name, "timeout", timeout)
			// This cancels the contexts of the calls. Do not wait for done: a call may be
			// stuck in Windows.
			e.listener.closeConnections(false)
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

// listener accepts the connections of an endpoint that have a place.
type listener struct {
	net.Listener
	endpoint string
	limits   *limits
}

// Accept returns the next connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		pid, _ := pipe.PeerPID(raw)
		c := &connection{Conn: raw, limits: l.limits, endpoint: l.endpoint}
		if c.limits.admit(c, pid) {
			return c, nil
		}
		_ = raw.Close() // its client tries again
	}
}

// closeConnections closes all connections of the endpoint, or those that have never sent anything.
func (l *listener) closeConnections(onlySilent bool) {
	for _, c := range l.limits.all() {
		if c.endpoint == l.endpoint && (!onlySilent || !c.spoke.Load()) {
			_ = c.Close() // best effort
		}
	}
}
