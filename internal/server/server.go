// Package server runs the gRPC endpoints of a node: one listener and one gRPC server
// per group and version, with what every request needs around it.
//
// Run is the only entry. Which services answer, where they listen and what is observed
// comes in through Config; the package knows neither Windows nor flags.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/grpcapi"
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
	// streamWorkers are goroutines kept ready per endpoint. A fresh goroutine per call
	// grows its stack anew each time, which costs a tenth of a short call's time; calls
	// beyond this number get a fresh one as usual. BenchmarkUnary shows the difference.
	streamWorkers = 16
)

const (
	// DefaultStopTimeout is how long calls in flight may take to finish on stop.
	DefaultStopTimeout = 20 * time.Second
	// DefaultConnectionTimeout is short, because old clients leave one silent
	// connection behind each time they are constructed; grpc-go would keep those, and
	// wait for them when it stops, for 120 seconds.
	DefaultConnectionTimeout = 5 * time.Second
)

// Config says what to serve and where.
type Config struct {
	// Endpoints to serve; see grpcapi.Select. Must not be empty.
	Endpoints []grpcapi.Endpoint
	// Services answer the calls.
	Services grpcapi.Services
	// Listen opens the listener of an endpoint. The server closes it.
	Listen func(context.Context, grpcapi.Endpoint) (net.Listener, error)
	// Observer is told of every request; may be nil.
	Observer Observer
	// Ready is called once, when every endpoint listens; may be nil.
	Ready func()
	// StopTimeout bounds the graceful part of the stop; 0 means DefaultStopTimeout.
	StopTimeout time.Duration
	// ConnectionTimeout bounds how long a connection may stay silent before its HTTP/2
	// preface; 0 means DefaultConnectionTimeout.
	ConnectionTimeout time.Duration
}

// Run serves until ctx ends or an endpoint fails, whichever is first; then it stops
// every endpoint and returns. A stop by ctx is nil, however long it took. A failure
// names its endpoint. When Run returns, no listener and no connection of it is left;
// only a call that does not heed its context may still run.
//
// Messages go to the logger in ctx.
func Run(ctx context.Context, cfg Config) error {
	if len(cfg.Endpoints) == 0 {
		return errors.New("no API group is selected, so there is nothing to serve")
	}
	cfg.StopTimeout = cmp.Or(cfg.StopTimeout, DefaultStopTimeout)
	cfg.ConnectionTimeout = cmp.Or(cfg.ConnectionTimeout, DefaultConnectionTimeout)
	logger := klog.FromContext(ctx)

	endpoints, err := listen(ctx, cfg)
	if err != nil {
		return err
	}

	failed := make(chan error, len(endpoints))
	var serving sync.WaitGroup
	for _, e := range endpoints {
		serving.Go(func() {
			if err := e.server.Serve(e.connections); err != nil {
				failed <- fmt.Errorf("endpoint %s: %w", e.name, err)
			}
		})
	}
	if cfg.Ready != nil {
		cfg.Ready()
	}

	select {
	case <-ctx.Done():
		err = nil
		logger.Info("Stopping", "timeout", cfg.StopTimeout)
	case err = <-failed:
		logger.Error(err, "An endpoint failed, stopping all")
	}

	var stopping sync.WaitGroup
	for _, e := range endpoints {
		stopping.Go(func() { e.stop(logger, cfg.StopTimeout) })
	}
	stopping.Wait()
	serving.Wait()
	return err
}

// endpoint is one group-version being served.
type endpoint struct {
	name        string
	server      *grpc.Server
	health      *health.Server
	connections *connections
	endStreams  context.CancelFunc
}

// listen opens all endpoints or none.
func listen(ctx context.Context, cfg Config) (_ []*endpoint, err error) {
	var endpoints []*endpoint
	defer func() {
		if err != nil {
			for _, e := range endpoints {
				_ = e.connections.Close() // the failure to listen is what matters
			}
		}
	}()
	for _, e := range cfg.Endpoints {
		listener, err := cfg.Listen(ctx, e)
		if err != nil {
			return nil, fmt.Errorf("endpoint %s: %w", e.Name(), err)
		}
		endpoints = append(endpoints, newEndpoint(klog.FromContext(ctx), cfg, e, listener))
	}
	return endpoints, nil
}

func newEndpoint(logger klog.Logger, cfg Config, e grpcapi.Endpoint, listener net.Listener) *endpoint {
	streams, endStreams := context.WithCancel(context.Background()) //nolint:forbidigo,gosec // ends with the endpoint: stop calls it
	edge := &edge{logger: logger, observer: cfg.Observer, streams: streams}
	s := grpc.NewServer(
		grpc.Creds(newPeerCredentials()),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.ConnectionTimeout(cfg.ConnectionTimeout),
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxConcurrentStreams),
		grpc.NumStreamWorkers(streamWorkers),
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
	return &endpoint{name: e.Name(), server: s, health: h, connections: track(listener), endStreams: endStreams}
}

// stop lets calls in flight finish, but not longer than timeout.
func (e *endpoint) stop(logger klog.Logger, timeout time.Duration) {
	// Watchers of the health are told; then their streams, which have no end of their
	// own, are ended, or the graceful stop would wait for them.
	const farewell = 100 * time.Millisecond
	e.health.Shutdown()
	time.AfterFunc(farewell, e.endStreams)

	done := make(chan struct{})
	go func() {
		defer close(done)
		e.server.GracefulStop()
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
			e.server.Stop()
			return
		}
	}
}
