package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/controlv1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// DefaultControl is the value of Config.Control for an endpoint beside those of the API.
const DefaultControl = "default"

// The group and version in the name of the control endpoint.
const (
	controlGroup   = "sim"
	controlVersion = "v1"
)

// restartTimeout is how long a restart of the node waits for running calls.
const restartTimeout = time.Second

// ControlPath returns where Run serves the control service for Config.Control.
func ControlPath(control, socketDir string) string {
	if control != DefaultControl {
		return control
	}
	path := client.PipePath(controlGroup, apiversion.NewVersionOrPanic(controlVersion))
	if socketDir != "" && client.SocketDir() != "" {
		path = filepath.Join(socketDir, filepath.Base(path))
	}
	return path
}

// runControlled serves the API and the control service. A reboot serves the API again, with
// hosts that know nothing of the time before.
func runControlled(ctx context.Context, node *winsim.Node, machine win.Machine, cfg Config) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c := &control{node: node, reboots: make(chan chan error), over: ctx.Done()}
	// A restart does not wait for the calls of clients, which a disk that hangs would hold.
	cfg.StopTimeout = min(cmp.Or(cfg.StopTimeout, server.DefaultStopTimeout), restartTimeout)
	ready := cfg.Ready
	listening := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		failed <- server.Run(ctx, server.Config{
			Endpoints:   []grpcapi.Endpoint{grpcapi.Private(controlGroup, controlVersion, &controlv1.Control_ServiceDesc, c)},
			StopTimeout: cfg.StopTimeout,
			Listen: func(ctx context.Context, _ grpcapi.Endpoint) (net.Listener, error) {
				return pipe.Listen(ctx, ControlPath(cfg.Control, cfg.SocketDir), pipe.Config{})
			},
			Ready: func() { close(listening) },
		})
	}()
	select {
	case <-listening:
	case err := <-failed:
		return err
	}
	var answer chan error // of the reboot that the API is served again for
	for {
		started, ended := make(chan struct{}), make(chan error, 1)
		cfg.Ready = func() { close(started) }
		session, restart := context.WithCancel(ctx)
		go func() { ended <- runAPI(session, machine, cfg) }()
		select {
		case <-started:
			if answer != nil {
				answer <- nil
			} else if ready != nil {
				ready()
			}
		case err := <-ended:
			restart()
			if answer != nil {
				answer <- errors.New("the node stopped during the restart")
			}
			stop()
			return errors.Join(err, <-failed)
		}
		var err error
		select {
		case answer = <-c.reboots:
			restart()
			err = <-ended
			node.Reboot()
			if err == nil {
				continue
			}
			answer <- err
		case err = <-ended:
		case err = <-failed:
			failed <- nil
			restart()
			err = errors.Join(err, <-ended)
		}
		restart()
		stop()
		return errors.Join(err, <-failed)
	}
}

// control implements the service of controlv1, whose api.proto documents the calls.
type control struct {
	node    *winsim.Node
	reboots chan chan error // each gets the result of one reboot
	reboot  sync.Mutex      // one at a time
	over    <-chan struct{} // closed when the simulator stops

	attaching sync.Mutex
}

var _ controlv1.ControlServer = (*control)(nil)

// answer is the empty answer of a call, or its error.
func answer[T any](err error) (*T, error) { return answerWith(new(T), err) }

// answerWith is the answer of a call, or its error.
func answerWith[T any](out *T, err error) (*T, error) {
	switch {
	case errors.Is(err, winerr.NotFound):
		return nil, fmt.Errorf("%w; DescribeNode lists what the node has", err)
	case err != nil:
		return nil, err
	}
	return out, nil
}

func (c *control) Reboot(ctx context.Context, _ *controlv1.RebootRequest) (*controlv1.RebootResponse, error) {
	c.reboot.Lock()
	defer c.reboot.Unlock()
	done := make(chan error, 1)
	select {
	case c.reboots <- done:
	case <-ctx.Done():
		return nil, winerr.Wrap("reboot", "", ctx.Err())
	case <-c.over:
		return nil, winerr.New(winerr.Unavailable, "reboot", "", "the simulator stops")
	}
	// A restart that has begun is not canceled.
	return answer[controlv1.RebootResponse](winerr.Wrap("reboot", "", <-done))
}
