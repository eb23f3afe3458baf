// Package pipetest is what tests of package pipe need on all systems.
package pipetest

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Listen listens until the test is over.
func Listen(t testing.TB, path string) net.Listener {
	t.Helper()
	listener, err := pipe.Listen(t.Context(), path, pipe.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

// LeaveStale leaves a Unix socket as a server does that was killed.
func LeaveStale(t testing.TB, path string) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
}

// WantError checks the kind of an error of pipe.Listen, that it names operation and path, and that its message contains
// each part.
func WantError(t testing.TB, err error, kind winerr.Kind, path string, parts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got error %v, want one of kind %q", err, kind)
		return
	}
	for _, part := range append(parts, "listen on "+path+": ") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not contain %q", err, part)
		}
	}
}
