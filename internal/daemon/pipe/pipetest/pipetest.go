// Package pipetest holds the tests of package pipe that run on every system, as cases that a program can
// run as well: csi-proxy-verify does.
package pipetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/trial"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Kind is a kind of endpoints: named pipes or Unix sockets.
type Kind struct {
	// NewPath returns the name of an endpoint that does not exist yet.
	NewPath func(trial.T) string
	Dial    func(path string) (net.Conn, error)
	// WarmUp makes a new server ready for its clients.
	WarmUp func(path string)
	// LeaveStale leaves what a server leaves that was killed.
	LeaveStale func(t trial.T, path string)
	// PID is how errors name this process. It is empty where they cannot.
	PID string
}

// Case is one test.
type Case struct {
	Name string
	Run  func(trial.T)
}

// Cases returns all tests, for a kind of endpoints.
func (k Kind) Cases() []Case {
	return []Case{
		{"Listen_CarriesBytes", k.ListenCarriesBytes},
		{"Listen_SecondIsRefused", k.ListenSecondIsRefused},
		{"Listen_AgainAfterClose", k.ListenAgainAfterClose},
		{"Listen_OneOfManyWins", k.ListenOneOfManyWins},
		{"PeerPID", k.PeerPID},
		{"PeerPID_ForeignConnection", k.PeerPIDForeignConnection},
		{"ValidateSecurityDescriptor_Default", k.ValidateSecurityDescriptorDefault},
		{"Describe", k.Describe},
	}
}

// Listen listens until the test is over.
func Listen(t trial.T, path string) net.Listener {
	t.Helper()
	listener, err := pipe.Listen(t.Context(), path, pipe.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

// Serve hands each connection to handle until the listener is closed.
func (k Kind) Serve(t trial.T, listener net.Listener, handle func(net.Conn)) {
	t.Helper()
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("accept: %v", err)
				}
				return
			}
			group.Go(func() {
				defer conn.Close()
				handle(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		group.Wait()
	})
	k.WarmUp(listener.Addr().String())
}

// Echo is a handler for Serve that sends back what it gets.
func Echo(conn net.Conn) { _, _ = io.Copy(conn, conn) }

// WantEcho sends data over a new connection to a server of Echo. It may be called
// from any goroutine of a test.
func (k Kind) WantEcho(t trial.T, path string) {
	t.Helper()
	conn, err := k.Dial(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	sent := bytes.Repeat([]byte("0123456789abcdef"), 32<<10) // 512 KiB: more than any buffer
	go func() { _, _ = conn.Write(sent) }()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(conn, got); err != nil {
		t.Error(err)
	} else if !bytes.Equal(got, sent) {
		t.Error("what came back is not what was sent")
	}
}

// WantError checks the kind of err, that it names operation and path, and that its
// message contains each part.
func WantError(t trial.T, err error, kind winerr.Kind, path string, parts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got error %v, want one of kind %q", err, kind)
		return
	}
	for _, part := range append(parts, "listen on "+path+": ") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not contain %q", err, part)
		}
	}
}

// ListenCarriesBytes checks that a server gets what its clients send, and answers them.
func (k Kind) ListenCarriesBytes(t trial.T) {
	path := k.NewPath(t)
	k.Serve(t, Listen(t, path), Echo)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { k.WantEcho(t, path) })
	}
	group.Wait()
}

// ListenSecondIsRefused checks that a second listener is refused, and the first does not suffer.
func (k Kind) ListenSecondIsRefused(t trial.T) {
	path := k.NewPath(t)
	k.Serve(t, Listen(t, path), Echo)
	for range 2 {
		_, err := pipe.Listen(t.Context(), path, pipe.Config{})
		WantError(t, err, winerr.Exists, path, k.PID, "stop")
		if !errors.Is(err, fs.ErrExist) {
			t.Errorf("%v is not fs.ErrExist", err)
		}
	}
	k.WantEcho(t, path) // and the first does not suffer
}

// ListenAgainAfterClose checks that a path is free after its listener was closed.
func (k Kind) ListenAgainAfterClose(t trial.T) {
	path := k.NewPath(t)
	for range 5 {
		listener, err := pipe.Listen(t.Context(), path, pipe.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if got := listener.Addr().String(); got != path {
			t.Errorf("address is %s, want %s", got, path)
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after close: %v, want net.ErrClosed", err)
		}
	}
}

// ListenOneOfManyWins checks that of many listeners on a path one succeeds.
func (k Kind) ListenOneOfManyWins(t trial.T) {
	for range 20 {
		path := k.NewPath(t)
		k.LeaveStale(t, path)
		k.wantOneWinner(t, path)
	}
}

func (k Kind) wantOneWinner(t trial.T, path string) {
	t.Helper()
	const many = 20
	listeners, failures := make(chan net.Listener, many), make(chan error, many)
	start := make(chan struct{})
	var group sync.WaitGroup
	for range many {
		group.Go(func() {
			<-start
			listener, err := pipe.Listen(t.Context(), path, pipe.Config{})
			if err != nil {
				failures <- err
				return
			}
			// Serving, so that the others can ask who we are.
			k.Serve(t, listener, Echo)
			listeners <- listener
		})
	}
	close(start)
	group.Wait()
	if len(listeners) != 1 {
		t.Fatalf("%d listeners on one path", len(listeners))
	}
	close(failures)
	for err := range failures {
		WantError(t, err, winerr.Exists, path)
	}
	k.WantEcho(t, path)
	(<-listeners).Close()
}

// PeerPID checks that a connection knows the process of its client.
func (k Kind) PeerPID(t trial.T) {
	path := k.NewPath(t)
	k.Serve(t, Listen(t, path), func(conn net.Conn) {
		pid, ok := pipe.PeerPID(conn)
		fmt.Fprint(conn, pid, ok)
		_, _ = io.Copy(io.Discard, conn)
	})
	conn, err := k.Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	want := strconv.Itoa(os.Getpid()) + " true"
	if k.PID == "" {
		want = "0 false"
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("PeerPID gives %s, want %s", got, want)
	}
}

// PeerPIDForeignConnection checks that other connections know none.
func (k Kind) PeerPIDForeignConnection(t trial.T) {
	conn, other := net.Pipe()
	defer conn.Close()
	defer other.Close()
	if pid, ok := pipe.PeerPID(conn); ok {
		t.Errorf("got process %d for a connection without one", pid)
	}
}

// ValidateSecurityDescriptorDefault checks that the default admits administrators and the system.
func (k Kind) ValidateSecurityDescriptorDefault(t trial.T) {
	if err := pipe.ValidateSecurityDescriptor(pipe.DefaultSecurityDescriptor); err != nil {
		t.Error(err)
	}
	const want = "D:P(A;;GA;;;SY)(A;;GA;;;BA)"
	if pipe.DefaultSecurityDescriptor != want {
		t.Errorf("default is %s, want %s", pipe.DefaultSecurityDescriptor, want)
	}
}

// Describe checks that the name and the user of a process are known; of no process, nothing is.
func (k Kind) Describe(t trial.T) {
	name, user := pipe.Describe(os.Getpid())
	if k.PID != "" && (name == "" || user == "") {
		t.Errorf("this process is %q of user %q", name, user)
	}
	for _, pid := range []int{0, -1, 1 << 30} {
		if name, user := pipe.Describe(pid); name != "" || user != "" {
			t.Errorf("process %d is %q of user %q", pid, name, user)
		}
	}
}
