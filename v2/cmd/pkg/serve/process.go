package serve

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// process is a daemon on a machine that outlives it. It keeps nothing of a daemon before it: its hosts, queues and
// servers are its own.
type process struct {
	kill func() // as kill -9 does; it does not wait

	ready, dead, ended chan struct{}
	err                error // after ended
}

// launch starts a daemon. It stops gracefully when ctx ends.
func launch(ctx context.Context, machine win.Machine, cfg Config) *process {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &process{ready: make(chan struct{}), dead: make(chan struct{}), ended: make(chan struct{})}
	p.kill = sync.OnceFunc(func() {
		close(p.dead)
		cancel(server.ErrKilled)
	})
	cfg.Ready = func() { close(p.ready) }
	go func() {
		defer close(p.ended)
		p.err = runAPI(ctx, machine.Process(p.intercept), cfg)
		cancel(nil)
	}()
	return p
}

// intercept is between a daemon and its machine. What still runs of a killed one reaches the machine no more, and its
// clients get no answer: it waits until their connections are closed. What the machine has got it carries out.
func (p *process) intercept(ctx context.Context, _ *win.Call, next func(context.Context) error) error {
	select {
	case <-p.dead:
		<-p.ended
		return context.Canceled
	default:
	}
	err := next(ctx)
	select {
	case <-p.dead:
		<-p.ended
	default:
	}
	return err
}

// errStops is why a daemon ends that has not failed.
var errStops = errors.New("csi-proxy-sim stops")

// supervisor keeps one daemon running on a machine.
type supervisor struct {
	launch func() *process
	failed chan error // gets the error of a daemon that ended by itself

	mu      sync.Mutex // one start at a time
	current *process   // nil before the first start
}

// restart kills the daemon, calls between, and returns when the next daemon is ready.
func (s *supervisor) restart(op string, between func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current.kill()
	<-s.current.ended
	between()
	if err := s.start(); err != nil {
		if !errors.Is(err, errStops) {
			s.fail(err)
		}
		return winerr.New(winerr.Unavailable, op, "", "%w", err)
	}
	return nil
}

// start starts a daemon and waits until it is ready. mu is held.
func (s *supervisor) start() error {
	p := s.launch()
	s.current = p
	select {
	case <-p.ready:
	case <-p.ended:
		return cmp.Or(p.err, errStops)
	}
	go func() {
		<-p.ended
		select {
		case <-p.dead:
		default:
			s.fail(p.err)
		}
	}()
	return nil
}

// fail reports the first failure.
func (s *supervisor) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// end waits for the daemon, whose context has ended.
func (s *supervisor) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	<-s.current.ended
	return s.current.err
}
