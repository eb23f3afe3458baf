package windows_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe/pipetest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// pipeTests: the tests of package pipe pass. They run on every system: with named pipes, or with Unix sockets.
const pipeTests = "Q-pipe-tests"

// servePipe hands each connection to handle until the listener is closed.
func servePipe(t *testing.T, listener net.Listener, handle func(net.Conn)) {
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
	warmUpPipe(listener.Addr().String())
}

// echo is a handler for servePipe that sends back what it gets.
func echo(conn net.Conn) { _, _ = io.Copy(conn, conn) }

// wantEcho sends data over a new connection to a server of echo. It may be called
// from any goroutine of a test.
func wantEcho(t *testing.T, path string) {
	t.Helper()
	conn, err := dialPipe(path)
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

// TestPipe_ListenCarriesBytes checks that a server gets what its clients send, and answers them.
func TestPipe_ListenCarriesBytes(t *testing.T) {
	t.Attr("question", pipeTests)
	path := newPipe(t)
	servePipe(t, pipetest.Listen(t, path), echo)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { wantEcho(t, path) })
	}
	group.Wait()
}

// TestPipe_ListenSecondIsRefused checks that a second listener is refused, and the first does not suffer.
func TestPipe_ListenSecondIsRefused(t *testing.T) {
	t.Attr("question", pipeTests)
	path := newPipe(t)
	servePipe(t, pipetest.Listen(t, path), echo)
	for range 2 {
		_, err := pipe.Listen(t.Context(), path, pipe.Config{})
		pipetest.WantError(t, err, winerr.Exists, path, thisPID, "stop")
		if !errors.Is(err, fs.ErrExist) {
			t.Errorf("%v is not fs.ErrExist", err)
		}
	}
	wantEcho(t, path) // and the first does not suffer
}

// TestPipe_ListenAgainAfterClose checks that a path is free after its listener was closed.
func TestPipe_ListenAgainAfterClose(t *testing.T) {
	t.Attr("question", pipeTests)
	path := newPipe(t)
	for range 5 {
		listener, err := pipe.Listen(t.Context(), path, pipe.Config{})
		require.NoError(t, err)
		if got := listener.Addr().String(); got != path {
			t.Errorf("address is %s, want %s", got, path)
		}
		require.NoError(t, listener.Close())
		if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after close: %v, want net.ErrClosed", err)
		}
	}
}

// TestPipe_ListenOneOfManyWins checks that of many listeners on a path one succeeds.
func TestPipe_ListenOneOfManyWins(t *testing.T) {
	t.Attr("question", pipeTests)
	for range 20 {
		path := newPipe(t)
		leaveStale(t, path)
		wantOneWinner(t, path)
	}
}

func wantOneWinner(t *testing.T, path string) {
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
			servePipe(t, listener, echo)
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
		pipetest.WantError(t, err, winerr.Exists, path)
	}
	wantEcho(t, path)
	(<-listeners).Close()
}

// TestPipe_PeerPID checks that a connection knows the process of its client.
func TestPipe_PeerPID(t *testing.T) {
	t.Attr("question", pipeTests)
	path := newPipe(t)
	servePipe(t, pipetest.Listen(t, path), func(conn net.Conn) {
		pid, ok := pipe.PeerPID(conn)
		fmt.Fprint(conn, pid, ok)
		_, _ = io.Copy(io.Discard, conn)
	})
	conn, err := dialPipe(path)
	require.NoError(t, err)
	defer conn.Close()
	want := strconv.Itoa(os.Getpid()) + " true"
	if thisPID == "" {
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

// TestPipe_PeerPIDForeignConnection checks that other connections know none.
func TestPipe_PeerPIDForeignConnection(t *testing.T) {
	t.Attr("question", pipeTests)
	conn, other := net.Pipe()
	defer conn.Close()
	defer other.Close()
	if pid, ok := pipe.PeerPID(conn); ok {
		t.Errorf("got process %d for a connection without one", pid)
	}
}

// TestPipe_ValidateSecurityDescriptorDefault checks that the default admits administrators and the system.
func TestPipe_ValidateSecurityDescriptorDefault(t *testing.T) {
	t.Attr("question", pipeTests)
	require.NoError(t, pipe.ValidateSecurityDescriptor(pipe.DefaultSecurityDescriptor))
	const want = "D:P(A;;GA;;;SY)(A;;0x12019b;;;BA)(A;;RC;;;S-1-3-4)"
	if pipe.DefaultSecurityDescriptor != want {
		t.Errorf("default is %s, want %s", pipe.DefaultSecurityDescriptor, want)
	}
}

// TestPipe_Describe checks that the name and the user of a process are known; of no process, nothing is.
func TestPipe_Describe(t *testing.T) {
	t.Attr("question", pipeTests)
	name, user := pipe.Describe(os.Getpid())
	if thisPID != "" && (name == "" || user == "") {
		t.Errorf("this process is %q of user %q", name, user)
	}
	for _, pid := range []int{0, -1, 1 << 30} {
		if name, user := pipe.Describe(pid); name != "" || user != "" {
			t.Errorf("process %d is %q of user %q", pid, name, user)
		}
	}
}
