package pipe_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"

	"github.com/Microsoft/go-winio"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

var pipes atomic.Int32

// newPath returns the name of a pipe that does not exist yet.
func newPath(testing.TB) string {
	return fmt.Sprintf(`\\.\pipe\csi-proxy-test-%d-%d`, os.Getpid(), pipes.Add(1))
}

// leaveStale does nothing: a pipe is gone with its last handle.
func leaveStale(testing.TB, string) {}

func dial(path string) (net.Conn, error) { return winio.DialPipe(path, nil) }

// warmUp takes up the instance of the pipe that go-winio makes to hold the name.
// On Windows no client can connect to it, and this is an ordinary client. Under Wine the
// first client connects to it, and is never served.
func warmUp(path string) {
	if conn, err := dial(path); err == nil {
		conn.Close()
	}
}

// pidOfThis is how errors name this process.
func pidOfThis(testing.TB) string { return fmt.Sprintf("(pid %d)", os.Getpid()) }

func TestListen_InvalidName(t *testing.T) {
	const path = `C:\csi-proxy-is-no-pipe`
	if listener, err := pipe.Listen(t.Context(), path, pipe.Config{}); err == nil {
		listener.Close()
		t.Errorf("listens on %s", path)
	}
}

func TestListen_SecurityDescriptor(t *testing.T) {
	const admitsUsers = pipe.DefaultSecurityDescriptor + "(A;;0x12019b;;;S-1-5-93-2-2)"
	listener, err := pipe.Listen(t.Context(), newPath(t), pipe.Config{SecurityDescriptor: admitsUsers})
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	for _, sddl := range []string{
		"nonsense",
		"D:(A;;GA;;;)",
		"O:SYG:SY",            // no access list
		"D:NO_ACCESS_CONTROL", // a null one; Wine takes it for an empty one
		"D:",                  // an empty one
		"D:P",
		"D:P(D;;GA;;;WD)", // no account
		"D:P(A;;GA;;;SY)(A;;GA;;;WD)",
		"D:P(A;;GA;;;SY)(A;;GRGW;;;AN)",
	} {
		if err := pipe.ValidateSecurityDescriptor(sddl); !errors.Is(err, winerr.Invalid) {
			t.Errorf("%s: got %v, want an error of kind %q", sddl, err, winerr.Invalid)
		}
		if listener, err := pipe.Listen(t.Context(), newPath(t), pipe.Config{SecurityDescriptor: sddl}); err == nil {
			listener.Close()
			t.Errorf("listens with %s", sddl)
		}
	}
}
