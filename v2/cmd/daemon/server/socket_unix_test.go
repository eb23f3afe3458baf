//go:build unix

package server_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/serve/servetest"
)

// newPlace makes a place for endpoints.
func newPlace(t testing.TB) string { t.Helper(); return servetest.Dir(t) }

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
