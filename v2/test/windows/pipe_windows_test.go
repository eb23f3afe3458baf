package windows_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

var pipes atomic.Int32

// newPipe returns the name of a pipe that does not exist yet.
func newPipe(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf(`\\.\pipe\csi-proxy-test-%d-%d`, os.Getpid(), pipes.Add(1))
}

// dialPipe connects to a pipe. On a busy machine go-winio's two seconds for a free instance are not enough.
func dialPipe(path string) (net.Conn, error) {
	timeout := 10 * time.Second
	return winio.DialPipe(path, &timeout)
}

// warmUpPipe takes up the instance of the pipe that go-winio makes to hold the name. On Windows no client can connect
// to it, and this is an ordinary client. Under Wine the first client connects to it, and is never served.
func warmUpPipe(path string) {
	if conn, err := dialPipe(path); err == nil {
		conn.Close()
	}
}

// leaveStale does nothing: a pipe is gone with its last handle.
func leaveStale(testing.TB, string) {}

// thisPID is how errors name this process.
var thisPID = fmt.Sprintf("(pid %d)", os.Getpid())

func TestPipe_ListenInvalidName(t *testing.T) {
	t.Attr("question", pipeTests)
	const path = `C:\csi-proxy-is-no-pipe`
	if listener, err := pipe.Listen(t.Context(), path, pipe.Config{}); err == nil {
		listener.Close()
		t.Errorf("listens on %s", path)
	}
}

func TestPipe_ListenSecurityDescriptor(t *testing.T) {
	t.Attr("question", pipeTests)
	const admitsUsers = pipe.DefaultSecurityDescriptor + "(A;;0x12019b;;;S-1-5-93-2-2)"
	listener, err := pipe.Listen(t.Context(), newPipe(t), pipe.Config{SecurityDescriptor: admitsUsers})
	require.NoError(t, err)
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
		if listener, err := pipe.Listen(t.Context(), newPipe(t), pipe.Config{SecurityDescriptor: sddl}); err == nil {
			listener.Close()
			t.Errorf("listens with %s", sddl)
		}
	}
}
