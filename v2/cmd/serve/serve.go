// Package serve serves the whole gRPC API of an emulated node on Unix sockets, or on named
// pipes on Windows, as the daemon does on a real node.
//
// In a test, one line serves a node to every client:
//
//	serve.Start(t, node)
//
// This is the only package below pkg that imports gRPC; tests of the library do not need it.
package serve

import (
	"context"
	"os"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Config configures the server. The zero value serves everything on the default endpoints.
type Config struct {
	// SocketDir is the directory of the Unix sockets; empty means that of client.PipePath. It
	// has no effect on Windows.
	SocketDir string
	// APIGroups selects groups and versions, such as "disk" or "disk/v1"; empty
	// means all.
	APIGroups []string
	// WorkingDirs are the directories that requests may access; empty means C:\var\lib\kubelet.
	WorkingDirs []string
	// AllowedServices are the services that requests may start and stop. "*" means all but
	// protected ones, nil the daemon's default.
	AllowedServices []string
	// StopTimeout limits the time of running calls after a stop; 0 means the daemon's default. With
	// Control it is at most a second.
	StopTimeout time.Duration
	// FormatOver lets FormatVolume format volumes that already have a file system.
	FormatOver bool
	// Format are the options of FormatVolume.
	Format volumeapi.FormatOptions
	// Observer is called for every request; may be nil.
	Observer Observer
	// NoPrivacy allows SMB servers without encryption.
	NoPrivacy bool
	// RefuseOtherUser is the option of package smb.
	RefuseOtherUser bool
	// Control is where to serve the control service, with which csi-proxyctl sim changes the node:
	// the path of a Unix socket, the name of a pipe, or DefaultControl. Empty means not at all.
	Control string
	// Heal is the daemon's flag -heal-stale-mounts: off, report or remove. Empty looks for stale
	// mounts only on request.
	Heal HealMode
	// StaleMounts is called after each look for stale mounts; may be nil.
	StaleMounts StaleObserver
	// Storage is called with descriptions of the node's storage, when it asks; may be nil.
	Storage StorageObserver
	// RecordCalls is a file into which the calls to the node and its answers are written, as the daemon's flag
	// -record-calls does; empty means none. RecordMaxBytes is where the file ends; 0 means at the daemon's default.
	RecordCalls    string
	RecordMaxBytes int64
	// Ready is called when every endpoint listens; may be nil.
	Ready func()
}

// Observer is called for every request with its full method name, such as /v1.Disk/Rescan.
// Calls are concurrent and must be quick.
type Observer = server.Observer

// HealMode says what the server does about stale mounts.
type HealMode = daemon.HealMode

// StaleObserver is called with what was found about stale mounts.
type StaleObserver = daemon.StaleObserver

// StorageObserver asks for descriptions of the node's storage.
type StorageObserver = daemon.StorageObserver

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
		recorder, err := record.Open(ctx, record.Config{Path: cfg.RecordCalls, MaxBytes: cfg.RecordMaxBytes, Windows: "emulated"})
		if err != nil {
			return daemon.UsageError{Err: err}
		}
		defer recorder.Close() // every line has been written
		machine = win.Intercept(node, recorder.Intercept)
	}
	if cfg.Control != "" {
		return runControlled(ctx, node, machine, cfg)
	}
	return runAPI(ctx, machine, cfg)
}

// runAPI serves the API, as a daemon that starts. Machine is the node, or the node whose calls are recorded.
func runAPI(ctx context.Context, machine win.Machine, cfg Config) error {
	hosts := daemon.HostsOn(machine)
	if cfg.FormatOver {
		hosts = daemon.HostsOn(machine, volumeapi.FormatOverExisting())
	}
	return daemon.Serve(ctx, daemon.Config{
		Hosts:           hosts,
		WorkingDirs:     cfg.WorkingDirs,
		AllowedServices: cfg.AllowedServices,
		NoPrivacy:       cfg.NoPrivacy,
		Format:          cfg.Format,
		RefuseOtherUser: cfg.RefuseOtherUser,
		Heal:            cfg.Heal,
		StaleMounts:     cfg.StaleMounts,
		Storage:         cfg.Storage,
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
