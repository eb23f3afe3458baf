// Package serve serves the whole gRPC API of an emulated node on Unix sockets, or on named
// pipes on Windows, as the daemon does on a real node.
//
// In a test, one line serves a node to every client:
//
//	serve.Start(t, node)
//
// Tests of the library do not need it. The package is v0: its names can change, with a line in the change log.
package serve

import (
	"context"
	"os"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Config configures the server. The zero value serves everything on the default endpoints.
type Config struct {
	// Config is that of the daemon. Run sets Hosts. The default of WorkingDirs is C:\var\lib\kubelet, that of
	// AllowedServices the daemon's. With Control, StopTimeout is at most a second.
	daemon.Config
	// FormatOver lets FormatVolume format volumes that already have a file system.
	FormatOver bool
	// Control is where to serve the control service, with which csi-proxyctl sim changes the node:
	// the path of a Unix socket, the name of a pipe, or DefaultControl. Empty means not at all.
	Control string
	// RecordCalls is a file into which the calls to the node and its answers are written, as the daemon's flag
	// -record-calls does; empty means none. RecordMaxBytes is where the file ends; 0 means at the daemon's default.
	RecordCalls    string
	RecordMaxBytes int64
}

// Run serves the node until ctx ends, then stops gracefully and returns nil. An error names the
// endpoint that failed.
func Run(ctx context.Context, node *winsim.Node, cfg Config) error {
	if len(cfg.WorkingDirs) == 0 {
		cfg.WorkingDirs = []string{`C:\var\lib\kubelet`}
	}
	if cfg.AllowedServices == nil {
		cfg.AllowedServices = servicelist.Default()
	}
	machine := win.Machine(node)
	if cfg.RecordCalls != "" {
		recorded, stop := record.Attach(ctx, node, record.Config{Path: cfg.RecordCalls, MaxBytes: cfg.RecordMaxBytes, Windows: "emulated"})
		defer stop()
		machine = recorded
	}
	if cfg.Control != "" {
		return runControlled(ctx, node, machine, cfg)
	}
	return runAPI(ctx, machine, cfg)
}

// runAPI serves the API, as a daemon that starts. Machine is the node, or the node whose calls are recorded.
func runAPI(ctx context.Context, machine win.Machine, cfg Config) error {
	cfg.Hosts = daemon.HostsOn(machine)
	if cfg.FormatOver {
		cfg.Hosts = daemon.HostsOn(machine, volumeapi.FormatOverExisting())
	}
	return daemon.Serve(ctx, cfg.Config)
}

// T is the part of testing.TB that Start needs.
type T interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Setenv(key, value string)
}

// Start serves the node until the end of a test, and returns when every endpoint listens. It
// sets CSI_PROXY_SOCKET_DIR, so that every client finds this node, and returns that directory.
// Parallel tests share an environment: use Run and client.WithPipePath instead.
func Start(t T, node *winsim.Node) (socketDir string) {
	t.Helper()
	// Not T's TempDir: it contains the test's name, and socket paths have a length limit.
	socketDir, err := os.MkdirTemp("", "winsim")
	if err != nil {
		t.Fatalf("serve the emulated node: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(socketDir) })
	t.Setenv("CSI_PROXY_SOCKET_DIR", socketDir)
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // ends with the test, by Cleanup
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- Run(ctx, node, Config{Config: daemon.Config{SocketDir: socketDir, StopTimeout: 5 * time.Second, Ready: func() { close(ready) }}})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	select {
	case <-ready:
	case err := <-done:
		done <- err
		t.Fatalf("serve the emulated node: %v", err)
	}
	return socketDir
}
