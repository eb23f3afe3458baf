package server

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
)

// Observer sees every request, for metrics. Its methods are called concurrently and must be
// quick.
type Observer interface {
	// RequestStarted gets the method that the client called, such as /v1beta1.Disk/DiskStats.
	RequestStarted(method string)
	// RequestDone is called exactly once for each RequestStarted.
	RequestDone(method string, code codes.Code, elapsed time.Duration)
}

// ConnectionObserver is an Observer that also sees connections. Its methods are called concurrently and
// must be quick.
type ConnectionObserver interface {
	// ConnectionOpened gets the name of the client's process, which is empty if it is unknown.
	ConnectionOpened(process string)
	// ConnectionClosed is called exactly once for each ConnectionOpened.
	ConnectionClosed(process string)
	// LimitReached is called if the server ends or refuses something because of a limit.
	LimitReached(process, reason string)
}

// requestVerbosity is the klog level of the line for each request.
const requestVerbosity = 2

// edge handles every call on its way in and out. It is one interceptor, because a chain of them
// costs one allocation per link and call.
type edge struct {
	logger   klog.Logger
	observer Observer        // may be nil
	failures *Failures       // may be nil
	stopping context.Context //nolint:containedctx // ends the streams with the endpoint
	version  metadata.MD     // the header of health checks; gRPC copies it
	ownLog   bool            // the logger is not klog's, and handlers must learn of it
}

// unary observes and logs a call. It recovers panics twice: around the handler, so that the log line
// and the metrics of the call show the failure, and here, so that our own code in between cannot
// end the process.
func (e *edge) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	defer e.recoverPanic(info.FullMethod, &resp, &err)
	line := e.logger.V(requestVerbosity)
	if e.observer == nil && !line.Enabled() {
		resp, err = e.call(ctx, req, info, handler)
		e.failures.note(ctx, time.Now(), info.FullMethod, req, err)
		return resp, err
	}
	if e.observer != nil {
		e.observer.RequestStarted(info.FullMethod)
	}
	start := time.Now()
	resp, err = e.call(ctx, req, info, handler)
	elapsed := time.Since(start)
	e.failures.note(ctx, start.Add(elapsed), info.FullMethod, req, err)
	if e.observer != nil {
		e.observer.RequestDone(info.FullMethod, status.Code(err), elapsed)
	}
	if line.Enabled() {
		values := append([]any{"method", info.FullMethod}, loggable(req)...)
		client := caller(ctx).client
		name, _ := client.describe()
		values = append(values, "code", status.Code(err), "duration", elapsed, "pid", client.pid, "process", name)
		if err != nil {
			values = append(values, "error", oneLine(status.Convert(err).Message()))
		}
		line.Info("Request", values...)
	}
	return resp, err
}

// call runs the handler, and turns its error or panic into a gRPC status.
func (e *edge) call(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	defer e.recoverPanic(info.FullMethod, &resp, &err)
	if info.FullMethod == healthv1.Health_Check_FullMethodName {
		// The published messages have no field for the version. This fails only without a
		// connection.
		_ = grpc.SetHeader(ctx, e.version)
	}
	if e.ownLog {
		ctx = klog.NewContext(ctx, e.logger)
	}
	if err = checkDecoded(req); err == nil {
		resp, err = handler(ctx, req)
	}
	if err != nil {
		return nil, late(ctx, grpcapi.Status(err))
	}
	return resp, nil
}

// late makes an error that of a deadline if it is one: the client's timer runs out first, and so the call looks as if the
// client had no interest any more.
func late(ctx context.Context, err error) error {
	if deadline, ok := ctx.Deadline(); ok && status.Code(err) == codes.Canceled && time.Until(deadline) < time.Second {
		return status.Error(codes.DeadlineExceeded, strings.ReplaceAll(status.Convert(err).Message(), context.Canceled.Error(), "no answer in time"))
	}
	return err
}

// stream recovers panics of streams, limits their number, and ends them when the endpoint stops. The
// only streams are health watches.
func (e *edge) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	var none any
	defer e.recoverPanic(info.FullMethod, &none, &err)
	conn := caller(stream.Context())
	defer conn.watches.Add(-1)
	if conn.watches.Add(1) > maxWatches {
		conn.limits.note(conn, reasonWatches)
		return status.Errorf(codes.ResourceExhausted, "%s: this connection already has %d watches; share one", info.FullMethod, maxWatches)
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	w := &watch{ServerStream: stream, ctx: ctx, end: cancel}
	defer context.AfterFunc(e.stopping, w.stop)()
	return handler(srv, w)
}

// counted registers services whose requests are counted. gRPC calls the handler of a method when a request begins, and
// the handler receives the rest.
type counted struct{ grpc.ServiceRegistrar }

func (r counted) RegisterService(desc *grpc.ServiceDesc, implementation any) {
	service := *desc
	service.Methods = slices.Clone(desc.Methods)
	for i, method := range desc.Methods {
		service.Methods[i].Handler = func(srv any, ctx context.Context, receive func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			c := caller(ctx)
			c.open.Add(1)
			c.client.running.Add(1)
			defer func() {
				c.active.Store(int64(c.limits.now())) // gRPC has still to write the answer
				c.open.Add(-1)
				c.client.running.Add(-1)
			}()
			return method.Handler(srv, ctx, receive, interceptor)
		}
	}
	r.ServiceRegistrar.RegisterService(&service, implementation)
}

// watch is the stream of a health watch. When the endpoint stops it ends, but not before the client has been
// informed. Otherwise it would keep the graceful stop waiting.
type watch struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // ends the handler
	end context.CancelFunc

	mu       sync.Mutex
	serving  bool // is what the client knows
	stopping bool
}

func (w *watch) Context() context.Context { return w.ctx }

func (w *watch) SendMsg(m any) error {
	err := w.ServerStream.SendMsg(m)
	w.mu.Lock()
	defer w.mu.Unlock()
	response, ok := m.(*healthv1.HealthCheckResponse)
	w.serving = ok && response.GetStatus() == healthv1.HealthCheckResponse_SERVING
	w.endIfReported()
	return err
}

// stop is called after the health of the endpoint has changed, so one that serves has a message to come.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopping = true
	w.endIfReported()
}

func (w *watch) endIfReported() {
	if w.stopping && !w.serving {
		w.end()
	}
}

// recoverPanic is deferred. It logs the panic and its stack, which the caller must not see.
//
// It is not tasks.Recover: that returns the panic's text, and its closure costs every call an
// allocation.
func (e *edge) recoverPanic(method string, resp *any, err *error) {
	panicked := recover()
	if panicked == nil {
		return
	}
	e.logger.Error(fmt.Errorf("panic: %v", panicked), "A call panicked", "method", method, "stack", string(debug.Stack()))
	*resp = nil
	*err = status.Errorf(codes.Internal, "%s: internal error; see the csi-proxy log", method)
}
