package endpoint

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
)

// State is what a look at an endpoint has found.
type State string

// The states of an endpoint.
const (
	Serving    State = "serving"     // answers, and says that it is well
	NotServing State = "not serving" // answers, and says that it is not
	NoHealth   State = "no health"   // answers, but has no health service: the original csi-proxy
	Missing    State = "missing"     // there is no such pipe or socket
	Dead       State = "dead"        // a socket that its server has left behind
	Denied     State = "denied"      // this account may not connect
	Silent     State = "silent"      // somebody has it, but does not answer as csi-proxy does
)

// Answers reports whether calls to the endpoint can be expected to work.
func (s State) Answers() bool { return s == Serving || s == NoHealth }

// Health is what is known of one endpoint.
type Health struct {
	Name    Name
	Path    string
	State   State
	Latency time.Duration // of the health check; 0 without an answer
	PID     int           // of the server, where the system tells; else 0
	Version string        // of the server, if it tells; the original does not
	Err     error         // why it does not answer
}

// patience is how long an endpoint may take to answer. Health checks wait for nothing.
const patience = 5 * time.Second

// Check looks at one endpoint.
func (n Node) Check(ctx context.Context, name Name) Health {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	h := Health{Name: name, Path: n.Path(name)}
	conn, err := n.Dial(ctx, name)
	if err != nil {
		h.State, h.Err = unreachable(err), err
		return h
	}
	defer conn.Close()
	h.PID, _ = pipe.Owner(ctx, h.Path)
	var header metadata.MD
	health := healthv1.NewHealthClient(conn)
	response, err := health.Check(ctx, &healthv1.HealthCheckRequest{}, grpc.Header(&header))
	start := time.Now() // the first call has paid for the connection
	_, _ = health.Check(ctx, &healthv1.HealthCheckRequest{})
	elapsed := time.Since(start)
	if told := header.Get(version.Header); len(told) > 0 {
		h.Version = told[0]
	}
	switch {
	case status.Code(err) == codes.Unimplemented:
		h.State, h.Latency = NoHealth, elapsed
	case err != nil:
		h.State, h.Err = Silent, err
	case response.GetStatus() == healthv1.HealthCheckResponse_SERVING:
		h.State, h.Latency = Serving, elapsed
	default:
		h.State, h.Latency = NotServing, elapsed
	}
	return h
}

// CheckAll looks at all endpoints at once, and returns them in the order of All.
func (n Node) CheckAll(ctx context.Context) []Health {
	all := All()
	found := make([]Health, len(all))
	var wg sync.WaitGroup
	for i, name := range all {
		wg.Go(func() { found[i] = n.Check(ctx, name) })
	}
	wg.Wait()
	return found
}

func unreachable(err error) State {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Missing
	case errors.Is(err, syscall.ECONNREFUSED):
		return Dead
	case errors.Is(err, fs.ErrPermission):
		return Denied
	default:
		return Silent
	}
}
