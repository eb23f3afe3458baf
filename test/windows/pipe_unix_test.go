//go:build !windows

package windows_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// newPipe returns the name of a socket that does not exist yet. That of t.TempDir would be too long.
func newPipe(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "test.sock")
}

func dialPipe(path string) (net.Conn, error) { return net.Dial("unix", path) }

func warmUpPipe(string) {}

// leaveStale leaves a socket as a server does that was killed.
func leaveStale(t *testing.T, path string) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	require.NoError(t, err)
	listener.SetUnlinkOnClose(false)
	listener.Close()
}

// thisPID is how errors name this process, where they can.
var thisPID = map[bool]string{true: fmt.Sprintf("(pid %d)", os.Getpid())}[runtime.GOOS == "linux"]
