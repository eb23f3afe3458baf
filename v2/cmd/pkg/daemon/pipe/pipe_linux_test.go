package pipe_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe/pipetest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// A server that is too busy to accept is not mistaken for a dead one. Only Linux
// distinguishes the two.
func TestListen_RefusesBusyServer(t *testing.T) {
	path := newPath(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	require.NoError(t, unix.Listen(fd, 0))
	for {
		conn, err := dial(path)
		if err != nil { // the queue is full
			break
		}
		defer conn.Close()
	}
	_, err = pipe.Listen(t.Context(), path, pipe.Config{})
	pipetest.WantError(t, err, winerr.Exists, path, "stop it first")
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the socket is gone: %v", err)
	}
}
