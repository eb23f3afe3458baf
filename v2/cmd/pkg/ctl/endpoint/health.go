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

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
)

// State is the result of a health check.
type State string

// The states of an endpoint.
const (
	Serving    State = "serving"     // answers and is healthy
	NotServing State = "not serving" // answers and is not healthy
	NoHealth   State = "no health"   // answers but has no health service: the original csi-proxy
	Missing    State = "missing"     // no such pipe or socket
	Dead       State = "dead"        // a socket file without a server
	Denied     State = "denied"      // this account may not connect
	Foreign    State = "foreign"     // belongs to an account that clients do not trust
	Silent     State = "silent"      // a process owns it but does not answer like csi-proxy
)

// Answers reports whether calls to the endpoint should work.
func (s State) Answers() bool { return s == Serving || s == NoHealth }

// Health is the health of one endpoint.
type Health struct {
	Name    Name
	Path    string
	State   State
	Latency time.Duration // of the health check; 0 without an answer
	PID     int           // of the server; 0 if unknown
	Version string        // of the server; empty for the original csi-proxy
	Err     error         // why it does not answer
}

// checkTimeout limits a health check, which a healthy server answers at once.
const checkTimeout = 5 * time.Second

// Check checks one endpoint.
func (n Node) Check(ctx context.Context, name Name) Health {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
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
	start := time.Now() // the first call includes the time to connect
	_, _ = health.Check(ctx, &healthv1.HealthCheckRequest{})
	elapsed := time.Since(start)
	if values := header.Get(version.Header); len(values) > 0 {
		h.Version = values[0]
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

// CheckAll checks all endpoints concurrently and returns them in the order of All.
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
	case errors.Is(err, client.ErrUntrustedOwner):
		return Foreign
	case errors.Is(err, fs.ErrPermission):
		return Denied
	default:
		return Silent
	}
}
