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
	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/client/internal/dial"
)

const (
	// probeTimeout limits one probe of the endpoint. A pipe whose instances are
	// all taken keeps a caller waiting.
	probeTimeout = 2 * time.Second

	// pollInterval is the pause between two probes while waiting for an endpoint
	// to appear. Probing a missing pipe or socket costs microseconds.
	pollInterval = 100 * time.Millisecond
)

// connectParams replaces gRPC's waits, which are made for networks (1 s growing to
// 2 min between attempts, 20 s for one attempt). Here everything is local, and a
// client must find a restarted daemon within a second.
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
	owners      []string
	dialer      func(ctx context.Context) (net.Conn, error)
	dialOptions []grpc.DialOption

	after func(time.Duration) <-chan time.Time // time.After, except in tests
}

// WithPipePath connects to the endpoint at path instead of the one that [PipePath]
// names. On Windows backslashes may be doubled. On other systems path is a Unix
// socket, with or without unix:// in front.
func WithPipePath(path string) Option {
	return func(s *settings) { s.path = path }
}

// WithWait waits for an endpoint that does not exist yet, or is not free, until the
// context is done. Without it a missing endpoint is an error at once. An endpoint
// that does not admit this process is always an error.
func WithWait() Option {
	return func(s *settings) { s.wait = true }
}

// ErrUntrustedOwner is in the error of an endpoint that belongs to an account that this process
// does not trust, see [WithTrustedOwners].
var ErrUntrustedOwner = dial.ErrUntrustedOwner

// WithTrustedOwners accepts endpoints of other accounts: SIDs such as S-1-5-19 on Windows, numbers
// of users on other systems. A client sends passwords, so without this option the owner of the
// pipe must be LocalSystem, Administrators or the user of this process. The owner of a socket, of
// its directory and on Linux of its server must be root or that user.
func WithTrustedOwners(owners ...string) Option {
	return func(s *settings) { s.owners = append(s.owners, owners...) }
}

// WithDialer connects with f instead of opening a pipe or socket: to a daemon in the same process, for tests. Who is at
// the other end is not checked.
func WithDialer(f func(ctx context.Context) (net.Conn, error)) Option {
	return func(s *settings) { s.dialer = f }
}

// WithDialOptions adds gRPC options, such as interceptors. They override our own. A
// dialer among them makes the connection, but the first probe of the endpoint does
// not use it.
func WithDialOptions(opts ...grpc.DialOption) Option {
	return func(s *settings) { s.dialOptions = append(s.dialOptions, opts...) }
}

// Connect returns a gRPC connection to the endpoint of an API group in one version.
// The caller must close it.
//
// Connect first probes the endpoint, so that a missing daemon is one clear error here
// and not one at every call. The error wraps the cause: errors.Is finds
// [fs.ErrNotExist] for an endpoint that does not exist and [fs.ErrPermission] for one
// that does not admit this process, or belongs to an account that this process does not
// trust (see [WithTrustedOwners]). A probe takes two seconds at most.
//
// Errors of calls are gRPC statuses that also match their class with errors.Is; package
// [github.com/kubernetes-csi/csi-proxy/client/failure] has the classes.
//
// ctx limits this function, not the life of the connection, which is established at
// the first call and again whenever it is lost.
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
		grpc.WithContextDialer(s.dial),
		// A pipe's name is not a valid authority; gRPC sends this over Unix
		// sockets.
		grpc.WithAuthority("localhost"),
		grpc.WithConnectParams(connectParams),
		grpc.WithChainUnaryInterceptor(classify),
	}, s.dialOptions...)
	// The target is a URL, so the path must be escaped.
	return grpc.NewClient("passthrough:///"+url.PathEscape(s.path), dialOptions...)
}

// classify makes the errors of calls match their class; see package failure.
func classify(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return failure.FromStatus(invoke(ctx, method, req, reply, conn, opts...))
}

// await returns when a probe succeeds or fails for good.
func (s *settings) await(ctx context.Context) error {
	start := time.Now()
	var last error
	for {
		err := s.probe(ctx)
		if err == nil || !s.wait || permanent(err) {
			return err
		}
		// A probe that ctx cut short says less than the one before.
		if last == nil || !over(ctx) {
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

// over reports whether ctx is done. Its deadline counts by itself: a dialer keeps it with a timer of its
// own, which can be the first to fire.
func over(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return ctx.Err() != nil || limited && !time.Now().Before(deadline)
}

// probe connects to the endpoint and closes the connection.
func (s *settings) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := s.dial(ctx, s.path)
	if err != nil {
		return err
	}
	conn.Close()
	return nil
}

func (s *settings) dial(ctx context.Context, path string) (net.Conn, error) {
	if s.dialer != nil {
		return s.dialer(ctx)
	}
	conn, err := dial.Dial(ctx, path, s.owners)
	if err != nil {
		return nil, explain(runtime.GOOS, path, err)
	}
	return conn, nil
}

// permanent reports whether waiting cannot help: the endpoint does not admit this
// process or has the wrong owner, or the path is invalid.
func permanent(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL)
}

// problems says what a failure to connect means and what to check, for pipes and for
// Unix sockets. Pipes cannot refuse a connection.
var problems = []struct {
	cause        error
	pipe, socket string
}{
	{
		cause: fs.ErrNotExist,
		pipe: "no such pipe: is csi-proxy running on this node, and does it serve this group and version? " +
			"A container that is not a HostProcess container needs the pipe mounted",
		socket: "no such socket: is csi-proxy-sim running, does it serve this group and version, " +
			"and does it use the same " + socketDirEnv + "?",
	},
	{
		cause:  syscall.ECONNREFUSED,
		socket: "the socket exists but no server listens on it; start the server again",
	},
	{
		cause: fs.ErrPermission,
		pipe: "access denied: by default only LocalSystem and members of Administrators may connect " +
			"(ContainerAdministrator in a container); use an elevated prompt, " +
			"or admit this account with the daemon's -pipe-security-descriptor",
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
	if errors.Is(err, ErrUntrustedOwner) {
		expected := "root or this user"
		if goos == "windows" {
			expected = "LocalSystem, Administrators or this user"
		}
		return fmt.Errorf("csi-proxy endpoint %s: %w, not to %s; a program that takes the name of an endpoint receives passwords: "+
			"stop it, or trust that owner with the option WithTrustedOwners of the client, --trusted-owner of csi-proxyctl", path, err, expected)
	}
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
	// The code alone: the sentence replaces what net and go-winio put around it.
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		err = errno
	}
	return fmt.Errorf("csi-proxy endpoint %s: %s (%w)", path, problem, err)
}
