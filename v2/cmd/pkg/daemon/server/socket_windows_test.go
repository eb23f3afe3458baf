package server_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Microsoft/go-winio"
)

var places atomic.Int32

const pipes = `\\.\pipe\`

// newPlace makes a place for endpoints: the beginning of their names.
func newPlace(testing.TB) string {
	return fmt.Sprintf(pipes+`csi-proxy-server-test-%d-%d`, os.Getpid(), places.Add(1))
}

func endpointIn(place, name string) string { return place + "-" + name }

func dialEndpoint(ctx context.Context, path string) (net.Conn, error) {
	return winio.DialPipeContext(ctx, path)
}

// leftIn lists the endpoints in a place.
func leftIn(place string) (left []string) {
	entries, _ := os.ReadDir(filepath.Clean(pipes)) // Wine cannot list pipes
	for _, entry := range entries {
		if path := pipes + entry.Name(); strings.HasPrefix(path, place+"-") {
			left = append(left, path)
		}
	}
	return left
}

// warmUp is the first client of a pipe, which Wine does not serve. On Windows it is an ordinary client.
func warmUp(ctx context.Context, path string) {
	if conn, err := dialEndpoint(ctx, path); err == nil {
		conn.Close()
	}
}

// perEndpoint is how many goroutines wait for the first client of an endpoint: one accepts, one listens and one
// waits for the system, both of go-winio.
const perEndpoint = 3
