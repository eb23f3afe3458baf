package remote

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"path"
	"strings"

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// pipe is the endpoint of a group, which is opened at the first use. Drivers mount only the pipes that they need into
// their containers.
type pipe struct {
	*settings
	group    string
	messages string   // the version whose messages are sent
	versions []string // that have these messages, in the order in which they are tried

	turn chan struct{}    // has a value while a call connects, which takes as long as its context allows
	conn *grpc.ClientConn // guarded by turn, as the rest is
	uses string           // the version that conn leads to

	closed bool // for good
}

func newPipe(s *settings, group, messages string, versions ...string) *pipe {
	return &pipe{settings: s, group: group, messages: messages, versions: versions, turn: make(chan struct{}, 1)}
}

// connect returns the connection to the first version that the daemon serves.
func (p *pipe) connect(ctx context.Context, wait bool) (grpc.ClientConnInterface, error) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.turn }()
	if p.closed {
		return nil, failed(failure.InUse, "call daemon", "", "the connection is closed; open another one with New").as(fs.ErrClosed)
	}
	var first error
	for _, version := range p.versions {
		if p.conn != nil {
			break
		}
		err := p.open(ctx, version)
		if first == nil {
			first = err
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it exists
			break
		}
	}
	if p.conn == nil && wait {
		first = p.open(ctx, p.versions[0], client.WithWait())
	}
	switch {
	case p.conn != nil:
		return named{p.conn, "/" + p.messages + ".", "/" + p.uses + "."}, nil
	case ctx.Err() != nil && !wait:
		return nil, ctx.Err()
	case errors.Is(first, fs.ErrNotExist):
		return nil, &localError{failure.Unavailable, first.Error(), ErrNoPipe}
	default: // the daemon, not a volume, is missing
		return nil, &localError{class: failure.Unavailable, text: first.Error()}
	}
}

func (p *pipe) open(ctx context.Context, version string, options ...client.Option) (err error) {
	options = append(options, client.WithPipePath(p.pathOf(version)))
	if p.dial != nil {
		options = append(options, client.WithDialer(func(ctx context.Context) (net.Conn, error) { return p.dial(ctx, p.group, version) }))
	}
	if p.conn, err = client.Connect(ctx, p.group, apiversion.NewVersionOrPanic(version), options...); err == nil {
		p.uses = version
	}
	return err
}

// pathOf is the pipe, or the Unix socket, of a version.
func (p *pipe) pathOf(version string) string {
	if p.path != nil {
		return p.path(p.group, version)
	}
	return client.PipePath(p.group, apiversion.NewVersionOrPanic(version))
}

func (p *pipe) close() error {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	p.closed = true
	if p.conn == nil {
		return nil
	}
	defer func() { p.conn = nil }()
	return p.conn.Close()
}

// named calls a service by the name that it has in the version that the daemon serves.
type named struct {
	grpc.ClientConnInterface
	from, to string
}

func (n named) Invoke(ctx context.Context, method string, in, out any, options ...grpc.CallOption) error {
	if rest, ok := strings.CutPrefix(method, n.from); ok { // not of an extension
		method = n.to + rest
	}
	err := n.ClientConnInterface.Invoke(ctx, method, in, out, options...)
	class := failure.ClassOf(err)
	if class == failure.Deadline || class == failure.Cancelled && !errors.Is(ctx.Err(), context.Canceled) {
		err = failed(failure.Deadline, "wait for the daemon's", path.Base(method), "%v", context.DeadlineExceeded)
	}
	return err
}
