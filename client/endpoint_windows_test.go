package client_test

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"

	"github.com/Microsoft/go-winio"
)

var pipes atomic.Int32

// newPath returns the name of an endpoint that does not exist yet.
func newPath(testing.TB) string {
	return fmt.Sprintf(`\\.\pipe\csi-proxy-test-%d-%d`, os.Getpid(), pipes.Add(1))
}

func listen(t testing.TB, path string) net.Listener {
	t.Helper()
	listener, err := winio.ListenPipe(path, nil)
	must(t, err)
	return listener
}
