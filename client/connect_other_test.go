//go:build !windows

package client_test

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/client"
)

// stale leaves a socket file without a listener at path, as a server does
// that was killed.
func stale(t *testing.T, path string) {
	t.Helper()
	listener := listen(t, path).(*net.UnixListener)
	listener.SetUnlinkOnClose(false)
	listener.Close()
}

func TestConnect_ProbeHangsUp(t *testing.T) {
	ctx, path := testContext(t), newPath(t)
	listener := listen(t, path)
	defer listener.Close()
	probe := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			probe <- err
			return
		}
		defer conn.Close()
		_, err = io.Copy(io.Discard, conn)
		probe <- err
	}()

	conn, err := connect(ctx, path)
	must(t, err)
	defer conn.Close()
	select {
	case err := <-probe:
		if err != nil {
			t.Errorf("the probe's connection ends with %v, want a clean end", err)
		}
	case <-ctx.Done():
		t.Error("the probe's connection stays open")
	}
}

func TestConnect_StaleSocket(t *testing.T) {
	path := newPath(t)
	stale(t, path)
	_, err := connect(t.Context(), path)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("got %v, want an error that is ECONNREFUSED", err)
	}
	wantContains(t, err, path, "no server listens")
}

func TestConnect_WaitsForStaleSocketToBeReplaced(t *testing.T) {
	ctx, path := testContext(t), newPath(t)
	stale(t, path)
	tick := make(chan time.Time, 1)
	after := func(time.Duration) <-chan time.Time {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
		serve(t, listen(t, path))
		tick <- time.Time{}
		return tick
	}
	conn, err := connect(ctx, path, client.WithWait(), client.WithAfter(after))
	must(t, err)
	defer conn.Close()
	must(t, check(ctx, conn))
}

func TestConnect_URLOfSocket(t *testing.T) {
	ctx, path := testContext(t), newPath(t)
	serve(t, listen(t, path))
	conn, err := connect(ctx, "unix://"+path)
	must(t, err)
	defer conn.Close()
	must(t, check(ctx, conn))
}

// Waiting is for endpoints that may appear; these cannot, so the clock must not
// be asked.
func TestConnect_NoWaitForPermanentErrors(t *testing.T) {
	after := func(time.Duration) <-chan time.Time {
		t.Error("waits")
		return time.After(0)
	}
	t.Run("name too long", func(t *testing.T) {
		path := "/tmp/" + strings.Repeat("x", 200)
		_, err := connect(testContext(t), path, client.WithWait(), client.WithAfter(after))
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("got %v, want an error that is EINVAL", err)
		}
	})
	t.Run("not admitted", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("permission bits do not bind root; the sentence is tested in TestExplain")
		}
		path := newPath(t)
		serve(t, listen(t, path))
		must(t, os.Chmod(path, 0))
		_, err := connect(testContext(t), path, client.WithWait(), client.WithAfter(after))
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("got %v, want an error that is fs.ErrPermission", err)
		}
		wantContains(t, err, path, "only the user who started the server")
	})
}
