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

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/grpcapi"
)

const (
	// DefaultStopTimeout is how long calls in flight may take to finish on stop.
	DefaultStopTimeout = 20 * time.Second
	// DefaultConnectionTimeout is short, because old clients leave one silent
	// connection behind each time they are constructed; grpc-go would keep those, and
	// wait for them when it stops, for 120 seconds.
	DefaultConnectionTimeout = 5 * time.Second
	// DefaultIdleTimeout is when a connection without a call is closed, which its client
	// does not notice: the next call opens another one.
	DefaultIdleTimeout = 15 * time.Minute
	// DefaultMaxConnections is how many connections an endpoint has at the same time. A
	// node has a few dozen drivers with one each; one that is idle takes about 100 KiB.
	DefaultMaxConnections = 1024
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
	// IdleTimeout is for how long a connection may have no call; 0 means DefaultIdleTimeout.
	IdleTimeout time.Duration
	// MaxConnections is how many connections an endpoint has; a further one takes the place
	// of one without calls, if there is such, that was silent longest. 0 means
	// DefaultMaxConnections.
	MaxConnections int
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
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, DefaultIdleTimeout)
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, DefaultMaxConnections)
	logger := klog.FromContext(ctx)

	endpoints, err := listen(ctx, cfg)
	if err != nil {
		return err
	}

	failed := make(chan error, len(endpoints))
	var serving sync.WaitGroup
	for _, e := range endpoints {
		serving.Go(func() {
			if err := e.serve(); err != nil {
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
