package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"runtime"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/client/internal/dial"
)

const (
	// probeTimeout bounds one look at the endpoint. A pipe whose instances are
	// all taken keeps a caller waiting, so a look needs an end of its own.
	probeTimeout = 2 * time.Second

	// pollInterval is the pause between two looks while waiting for an endpoint
	// to appear. A look at a missing pipe or socket costs microseconds.
	pollInterval = 100 * time.Millisecond
)

// connectParams replaces gRPC's waits, which are made for networks (1 s growing to
// 2 min between attempts, 20 s for one attempt). Everything is local here: a
// daemon that was restarted is to be found again within a second.
var connectParams = grpc.ConnectParams{
	Backoff: backoff.Config{
		BaseDelay:  50 * time.Millisecond,
		Multiplier: 1.6,
		Jitter:     0.2,
		MaxDelay:   time.Second,
	},
	MinConnectTimeout: 5 * time.Second,
}

// Option changes how [Connect] and the New functions of the typed clients connect.
type Option func(*settings)

type settings struct {
	path        string
	wait        bool
	dialOptions []grpc.DialOption

	after func(time.Duration) <-chan time.Time // time.After, except in tests
}

// WithPipePath connects to the endpoint at path instead of the one that [PipePath]
// names. On Windows backslashes may be doubled; elsewhere path is a Unix socket,
// with or without unix:// in front.
func WithPipePath(path string) Option {
	return func(s *settings) { s.path = path }
}

// WithWait waits for an endpoint that is not there yet, or not free, until the
// context is over. Without it a missing endpoint is an error at once. An endpoint
// that is there but does not admit this process is an error either way.
func WithWait() Option {
	return func(s *settings) { s.wait = true }
}

// WithDialOptions adds gRPC options, such as interceptors. They come after our own
// and prevail over them. A dialer among them makes the connection, but the first
// look at the endpoint does without it.
func WithDialOptions(opts ...grpc.DialOption) Option {
	return func(s *settings) { s.dialOptions = append(s.dialOptions, opts...) }
}

// Connect returns a gRPC connection to the endpoint of an API group in one version.
// The caller closes it.
//
// Connect first looks whether somebody serves the endpoint, so that a missing
// daemon is one clear error here and not one at every call. The error wraps the
// cause: errors.Is finds [fs.ErrNotExist] for an endpoint that does not exist and
// [fs.ErrPermission] for one that does not admit this process. A look takes two
// seconds at most.
//
// ctx covers this function only and not the life of the connection, which is
// established at the first call and again whenever it was lost.
func Connect(ctx context.Context, group string, version apiversion.Version, opts ...Option) (*grpc.ClientConn, error) {
	s := settings{path: PipePath(group, version), after: time.After}
	for _, opt := range opts {
		opt(&s)
	}
	if err := s.await(ctx); err != nil {
		return nil, err
	}
	dialOptions := append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dialEndpoint),
		// The name of a pipe makes no valid authority; this is what gRPC
		// sends over Unix sockets.
		grpc.WithAuthority("localhost"),
		grpc.WithConnectParams(connectParams),
	}, s.dialOptions...)
	// The target is a URL, in which a path may not stand as it is.
	return grpc.NewClient("passthrough:///"+url.PathEscape(s.path), dialOptions...)
}

// await returns when the endpoint was seen working or waiting for it has no point.
func (s *settings) await(ctx context.Context) error {
	start := time.Now()
	var last error
	for {
		err := s.probe(ctx)
		if err == nil || !s.wait || hopeless(err) {
			return err
		}
		// A look cut short by the end of ctx says less than the one before.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			waited := time.Since(start).Round(time.Millisecond)
			return fmt.Errorf("gave up after waiting %s (%w): %w", waited, ctx.Err(), last)
		case <-s.after(pollInterval):
		}
	}
}

// probe connects to the endpoint and hangs up.
func (s *settings) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := dialEndpoint(ctx, s.path)
	if err != nil {
		return err
	}
	conn.Close()
	return nil
}

func dialEndpoint(ctx context.Context, path string) (net.Conn, error) {
	conn, err := dial.Dial(ctx, path)
	if err != nil {
		return nil, explain(runtime.GOOS, path, err)
	}
	return conn, nil
}

// hopeless reports whether the endpoint is there but will not admit us, or cannot
// exist under this path.
func hopeless(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL)
}

// problems says in the reader's terms what a failure to connect means and what to
// look at, for pipes and for Unix sockets. Pipes cannot refuse a connection.
var problems = []struct {
	cause        error
	pipe, socket string
}{
	{
		cause: fs.ErrNotExist,
		pipe: "no such pipe: is csi-proxy running on this node, and does it serve this group and version? " +
			"A container that is no HostProcess container needs the pipe mounted",
		socket: "no such socket: is csi-proxy-sim running, does it serve this group and version, " +
			"and has it the same " + socketDirEnv + "?",
	},
	{
		cause:  syscall.ECONNREFUSED,
		socket: "the file is there but nobody listens on it: its server has ended without removing it; start the server again",
	},
	{
		cause: fs.ErrPermission,
		pipe: "access denied: run as LocalSystem or an administrator (ContainerAdministrator in a container), " +
			"or have the daemon admit this account with -pipe-security-descriptor",
		socket: "permission denied: only the user who started the server, and root, may connect",
	},
	{
		cause:  context.DeadlineExceeded,
		pipe:   "no instance of the pipe became free in time: the server hangs or is overloaded",
		socket: "no connection in time: the server hangs or is overloaded",
	},
}

// explain turns a failure to connect into one sentence that names the endpoint.
func explain(goos, path string, err error) error {
	problem := "cannot connect"
	for _, p := range problems {
		if errors.Is(err, p.cause) {
			problem = p.socket
			if goos == "windows" {
				problem = p.pipe
			}
			break
		}
	}
	// The code alone: what net and go-winio put around it is in the sentence.
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		err = errno
	}
	return fmt.Errorf("csi-proxy endpoint %s: %s (%w)", path, problem, err)
}
