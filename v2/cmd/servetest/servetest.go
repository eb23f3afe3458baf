// Package servetest serves emulated nodes in tests that need more than serve.Start.
package servetest

import (
	"context"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Dir makes a directory for sockets, whose name is short, unlike that of T.TempDir. It is empty on Windows, where all
// pipes are in one place: no two nodes can be served there at once.
func Dir(t testing.TB) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		return ""
	}
	dir, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Start serves a node until stop is called, which may be more than once, or the test ends.
func Start(t testing.TB, node *winsim.Node, cfg serve.Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, done := make(chan struct{}), make(chan error, 1)
	cfg.Ready, cfg.StopTimeout = func() { close(ready) }, 5*time.Second
	go func() { done <- serve.Run(ctx, node, cfg) }()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	select {
	case <-ready:
	case err := <-done:
		done <- err
		t.Fatalf("serve the emulated node: %v", err)
	}
	return stop
}
