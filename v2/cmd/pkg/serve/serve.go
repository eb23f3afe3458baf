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
	"cmp"
	"context"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/calllog"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Config configures the server. The zero value serves everything on the default endpoints.
type Config struct {
	// Config is that of the daemon. Run sets Hosts. The default of WorkingDirs is C:\var\lib\kubelet, that of
	// AllowedServices the daemon's.
	daemon.Config
	// FormatOver lets FormatVolume format volumes that already have a file system.
	FormatOver bool
	// Control is where to serve the control service, with which csi-proxyctl sim changes the node:
	// the path of a Unix socket, the name of a pipe, or DefaultControl. Empty means not at all.
	Control string
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
	if cfg.Control != "" {
		return runControlled(ctx, node, cfg)
	}
	return runAPI(ctx, node, cfg)
}

// runAPI serves the API, as a daemon that starts. At -v=6 the calls to the node are logged.
func runAPI(ctx context.Context, machine win.Machine, cfg Config) error {
	machine = calllog.Machine(machine)
	cfg.Hosts = daemon.HostsOn(machine)
	if cfg.FormatOver {
		cfg.Hosts = daemon.HostsOn(machine, volumeapi.FormatOverExisting())
	}
	return daemon.Serve(ctx, cfg.Config)
}

// T is the part of testing.TB that StartWith needs.
type T interface {
	Helper()
	Cleanup(f func())
	Context() context.Context
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// Start serves the node until the end of a test, and returns when every endpoint listens. It
// sets CSI_PROXY_SOCKET_DIR, so that every client finds this node, and returns that directory.
// Parallel tests share an environment: use StartWith and client.WithPipePath instead.
func Start(t interface {
	T
	Setenv(key, value string)
}, node *winsim.Node,
) (socketDir string) {
	t.Helper()
	socketDir = SocketDir(t)
	t.Setenv("CSI_PROXY_SOCKET_DIR", socketDir)
	StartWith(t, node, Config{Config: daemon.Config{SocketDir: socketDir}})
	return socketDir
}

// SocketDir makes a directory for sockets, until the end of a test. Its name is short, unlike that of TempDir, because
// names of sockets must be. It is empty on Windows, where all pipes are in one place: no two nodes can be served there at
// once.
func SocketDir(t T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		return ""
	}
	dir, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatalf("make a directory for sockets: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// StartWith is Start with settings, which it leaves as they are, except for Ready. It serves until stop is called, which
// may be more than once, or the test ends.
func StartWith(t T, node *winsim.Node, cfg Config) (stop func()) {
	t.Helper()
	return StartContext(t.Context(), t, node, cfg)
}

// StartContext is StartWith with the values of a context, such as a logger. The end of ctx does not stop it.
func StartContext(ctx context.Context, t T, node *winsim.Node, cfg Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // that of a test ends before its cleanup
	ready, done := make(chan struct{}), make(chan error, 1)
	cfg.Ready, cfg.StopTimeout = func() { close(ready) }, cmp.Or(cfg.StopTimeout, 5*time.Second)
	go func() { done <- Run(ctx, node, cfg) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve the emulated node: %v", err)
		}
	})
	t.Cleanup(stop)
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		t.Fatalf("serve the emulated node: %v", err)
	}
	return stop
}
