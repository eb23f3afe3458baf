// Package serve puts the whole gRPC API of an emulated node on its endpoints: Unix
// sockets in a directory, or named pipes on Windows. Clients cannot tell it from the
// daemon on a real node.
//
// In a test one line serves a node where client.NewClient finds it:
//
//	serve.Start(t, node)
//
// This is the only package below pkg that imports gRPC; tests that use the library
// directly do without it.
package serve

import (
	"context"
	"os"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/inspect"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Config says how a node is served. The zero value serves everything where clients
// look for it by default.
type Config struct {
	// SocketDir is the directory of the Unix sockets; empty means the one that
	// client.PipePath uses. Named pipes on Windows do not depend on it.
	SocketDir string
	// APIGroups selects groups and versions, such as "disk" or "disk/v1"; empty
	// means all.
	APIGroups []string
	// WorkingDirs are the directories of the node that requests may touch; empty
	// means C:\var\lib\kubelet.
	WorkingDirs []string
	// AllowedServices are the services of the node that requests may start and stop;
	// "*" stands for all but those that no request may, nil for the daemon's default.
	AllowedServices []string
	// StopTimeout bounds how long calls in flight may take on stop; 0 means the
	// daemon's default.
	StopTimeout time.Duration
	// FormatOver lets FormatVolume format volumes that have a file system already.
	FormatOver bool
	// Observer is told of every request; may be nil.
	Observer Observer
	// NoPrivacy lets SMB servers be used that do not encrypt.
	NoPrivacy bool
	// Ready is called once every endpoint listens; may be nil.
	Ready func()
}

// Observer is told of every request that is served, with its full method name such as
// /v1.Disk/Rescan. Its methods are called concurrently and must be quick.
type Observer = server.Observer

// Run serves the node until ctx ends, then stops gracefully and returns nil. It returns
// an error that names the endpoint if one cannot be served.
func Run(ctx context.Context, node *winsim.Node, cfg Config) error {
	if len(cfg.WorkingDirs) == 0 {
		cfg.WorkingDirs = []string{`C:\var\lib\kubelet`}
	}
	if cfg.AllowedServices == nil {
		cfg.AllowedServices = servicelist.Default()
	}
	hosts := daemon.LocalHosts() // of groups that the node does not emulate yet
	hosts.Disk = node.Disk()
	hosts.Filesystem = node.Filesystem()
	hosts.ISCSI = node.ISCSI()
	hosts.System = node.System()
	hosts.SMB = node.SMB()
	hosts.Volume = node.Volume()
	hosts.Inspector = inspect.NewOn(node)
	if cfg.FormatOver {
		hosts.Volume = volumeapi.NewOn(node, volumeapi.FormatOverExisting())
	}
	return daemon.Serve(ctx, daemon.Config{
		Hosts:           hosts,
		WorkingDirs:     cfg.WorkingDirs,
		AllowedServices: cfg.AllowedServices,
		NoPrivacy:       cfg.NoPrivacy,
		APIGroups:       cfg.APIGroups,
		SocketDir:       cfg.SocketDir,
		StopTimeout:     cfg.StopTimeout,
		Observer:        cfg.Observer,
		Ready:           cfg.Ready,
	})
}

// T is the part of testing.TB that Start needs.
type T interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Setenv(key, value string)
}

// Start serves the node for the rest of a test, and returns when every endpoint
// listens. It points client.PipePath, and so every NewClient, to this node by setting
// CSI_PROXY_SOCKET_DIR, and returns that directory; parallel tests, which share an
// environment, use Run and NewClientWithPipePath instead.
func Start(t T, node *winsim.Node) (socketDir string) {
	t.Helper()
	// Not T's TempDir: it contains the test's name, and names of sockets are short.
	socketDir, err := os.MkdirTemp("", "winsim")
	if err != nil {
		t.Fatalf("serve the emulated node: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(socketDir) })
	t.Setenv("CSI_PROXY_SOCKET_DIR", socketDir)
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // ends with the test, by Cleanup
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- Run(ctx, node, Config{SocketDir: socketDir, StopTimeout: 5 * time.Second, Ready: func() { close(ready) }})
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
