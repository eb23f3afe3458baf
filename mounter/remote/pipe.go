package remote

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"path"

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/client/groups"
)

// pipe is the endpoint of a group, which is opened at the first use. Drivers mount only the pipes that they need into
// their containers.
type pipe struct{ *groups.Conn }

// openError is that the daemon, not a volume, is missing.
type openError struct{ error }

func (e openError) Unwrap() error { return e.error }

func (s *settings) pipe(group string) pipe {
	return pipe{groups.New(group, func(ctx context.Context, version string) (*grpc.ClientConn, error) {
		return s.open(ctx, group, version)
	})}
}

func (s *settings) open(ctx context.Context, group, version string, options ...client.Option) (*grpc.ClientConn, error) {
	options = append(options, client.WithPipePath(s.pathOf(group, version)))
	if s.dial != nil {
		options = append(options, client.WithDialer(func(ctx context.Context) (net.Conn, error) { return s.dial(ctx, group, version) }))
	}
	conn, err := client.Connect(ctx, group, apiversion.NewVersionOrPanic(version), options...)
	if err != nil {
		err = openError{err}
	}
	return conn, err
}

// pathOf is the pipe, or the Unix socket, of a version.
func (s *settings) pathOf(group, version string) string {
	if s.path != nil {
		return s.path(group, version)
	}
	return client.PipePath(group, apiversion.NewVersionOrPanic(version))
}

// Invoke implements grpc.ClientConnInterface. Its errors have a class.
func (p pipe) Invoke(ctx context.Context, method string, in, out any, options ...grpc.CallOption) error {
	err := p.Conn.Invoke(ctx, method, in, out, options...)
	if err = classed(err); errors.As(err, new(*localError)) && ctx.Err() != nil {
		err = ctx.Err()
	}
	class := failure.ClassOf(err)
	if class == failure.Deadline || class == failure.Cancelled && !errors.Is(ctx.Err(), context.Canceled) {
		err = failed(failure.Deadline, "wait for the daemon's", path.Base(method), "%v", context.DeadlineExceeded)
	}
	return err
}

// classed is an error of a connection.
func classed(err error) error {
	switch {
	case errors.Is(err, fs.ErrClosed):
		return failed(failure.InUse, "call daemon", "", "the connection is closed; open another one with New").as(fs.ErrClosed)
	case !errors.As(err, new(openError)):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return &localError{failure.Unavailable, err.Error(), ErrNoPipe}
	default:
		return &localError{class: failure.Unavailable, text: err.Error()}
	}
}
