//go:build unix

package server_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// newPlace makes a place for endpoints: a directory with a name that is short enough for sockets, unlike
// t.TempDir.
func newPlace(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "server")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func endpointIn(place, name string) string { return filepath.Join(place, name) }

func dialEndpoint(ctx context.Context, path string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", path)
}

// leftIn lists the endpoints in a place.
func leftIn(place string) []string {
	left, _ := filepath.Glob(place + "/*")
	return left
}

// warmUp is for Wine.
func warmUp(context.Context, string) {}

// perEndpoint is how many goroutines wait for the first client of an endpoint: one accepts, one watches the
// socket.
const perEndpoint = 2
