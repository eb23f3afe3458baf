// Package server runs the gRPC endpoints of a node: one listener and one gRPC server per group and
// version, with limits, logging, metrics and a graceful stop.
//
// Config has the services, listeners and observer; the package depends neither on Windows nor on
// flags.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
)

const (
	// DefaultStopTimeout is the time for calls in flight to finish on stop.
	DefaultStopTimeout = 20 * time.Second
	// DefaultConnectionTimeout is short, because an old client leaves a silent connection behind
	// when it is created. grpc-go would keep it for 120 seconds, and wait for it on stop.
	DefaultConnectionTimeout = 5 * time.Second
	// DefaultIdleTimeout is the time after which a connection without calls is closed. Its client
	// does not notice: the next call opens another one.
	DefaultIdleTimeout = 15 * time.Minute
	// DefaultMaxConnections is the number of connections to all endpoints. A node has a few dozen
	// drivers with a few each; an idle connection takes about 60 KiB.
	DefaultMaxConnections = 1024
)

// ErrKilled is the cause of a context with which Run ends as a killed process does: it closes listeners and
// connections at once, and lets no call finish.
var ErrKilled = errors.New("killed")

// Config says what to serve and where.
type Config struct {
	// Endpoints to serve; see grpcapi.Select. Must not be empty.
	Endpoints []grpcapi.Endpoint
	// Services answer the calls.
	Services grpcapi.Services
	// Listen opens the listener of an endpoint. The server closes it.
	Listen func(context.Context, grpcapi.Endpoint) (net.Listener, error)
	// Observer sees every request; may be nil.
	Observer Observer
	// Failures learns which calls fail; may be nil.
	Failures *Failures
	// Ready is called once, when every endpoint listens; may be nil.
	Ready func()
	// StopTimeout limits the graceful part of the stop; 0 means DefaultStopTimeout.
	StopTimeout time.Duration
	// ConnectionTimeout limits the silence before a connection's HTTP/2 preface; 0 means
	// DefaultConnectionTimeout.
	ConnectionTimeout time.Duration
	// IdleTimeout limits the time without calls on a connection; 0 means DefaultIdleTimeout.
	IdleTimeout time.Duration
	// MaxConnections is the number of connections to all endpoints. A further one replaces the
	// idlest of the process with most. 0 means DefaultMaxConnections.
	MaxConnections int
	// MaxMemory is how many bytes this process can have in use before memory is short. Then the client
	// that takes most loses connections. 0 means three fifths of debug.SetMemoryLimit, which the programs
	// set. The rest is for garbage.
	MaxMemory uint64
}

// Run serves until ctx ends or an endpoint fails. Then it stops every endpoint and returns: nil if
// ctx ended, or an error that names the endpoint. When Run returns, all its listeners and
// connections are closed; only a call that ignores its context may still run.
//
// Run logs to the logger in ctx.
func Run(ctx context.Context, cfg Config) error {
	if len(cfg.Endpoints) == 0 {
		return errors.New("no API group is selected")
	}
	cfg.StopTimeout = cmp.Or(cfg.StopTimeout, DefaultStopTimeout)
	cfg.ConnectionTimeout = cmp.Or(cfg.ConnectionTimeout, DefaultConnectionTimeout)
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, DefaultIdleTimeout)
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, DefaultMaxConnections)
	cfg.MaxMemory = cmp.Or(cfg.MaxMemory, uint64(debug.SetMemoryLimit(-1)/5*3))
	logger := klog.FromContext(ctx)

	limits := newLimits(logger, cfg)
	endpoints, err := listen(ctx, cfg, limits)
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
		if errors.Is(context.Cause(ctx), ErrKilled) {
			cfg.StopTimeout = 0
		}
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
func listen(ctx context.Context, cfg Config, limits *limits) (_ []*endpoint, err error) {
	var endpoints []*endpoint
	defer func() {
		if err != nil {
			for _, e := range endpoints {
				_ = e.listener.Close() // the failure to listen matters more
			}
		}
	}()
	for _, e := range cfg.Endpoints {
		listener, err := cfg.Listen(ctx, e)
		if err != nil {
			return nil, fmt.Errorf("endpoint %s: %w", e.Name(), err)
		}
		endpoints = append(endpoints, newEndpoint(klog.FromContext(ctx), cfg, e, listener, limits))
	}
	return endpoints, nil
}
