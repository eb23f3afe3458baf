//go:build !windows

package client_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// newPath returns the name of an endpoint that does not exist yet. Its directory
// is not t.TempDir: that carries the test's name, and socket names must be short.
func newPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "csi-proxy-test-v1.sock")
}

func listen(t testing.TB, path string) net.Listener {
	t.Helper()
	listener, err := net.Listen("unix", path)
	must(t, err)
	return listener
}
