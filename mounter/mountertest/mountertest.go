// Package mountertest runs a mounter on an emulated node, in both modes, on every system:
//
//	node, err := winsim.New(winsim.Default())
//	m, err := mounter.New(ctx, mountertest.Library(node))
//
// A driver's test that passes with Library and with Daemon works with both.
package mountertest

import (
	"context"
	"os"
	"path/filepath"
	"runtime"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/serve"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Library makes a Mounter work on an emulated node in the mode Library.
func Library(node *winsim.Node) mounter.Option {
	return mounter.WithHosts(mounter.Hosts{
		Disk: node.Disk(), Volume: node.Volume(), Filesystem: node.Filesystem(), SMB: node.SMB(),
		Node: func(options ...nodeapi.Option) (*nodeapi.Node, error) { return nodeapi.NewOn(node, options...) },
	})
}

// T is the part of testing.TB that Daemon needs.
type T interface {
	Helper()
	Cleanup(func())
	Context() context.Context
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// Daemon serves an emulated node until the end of a test, and makes a Mounter work on it in the mode
// Daemon. Several nodes can be served at once, except on Windows.
func Daemon(t T, node *winsim.Node) mounter.Option {
	t.Helper()
	return DaemonWith(t, node, serve.Config{})
}

// DaemonWith is Daemon for a server with other settings. It chooses the SocketDir and Ready.
func DaemonWith(t T, node *winsim.Node, config serve.Config) mounter.Option {
	t.Helper()
	dir, err := os.MkdirTemp("", "mounter") // short, because names of sockets must be
	if err != nil {
		t.Fatalf("make a directory for sockets: %v", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context())) // which ends before the cleanup
	ready, done := make(chan struct{}), make(chan error, 1)
	config.SocketDir, config.Ready = dir, func() { close(ready) }
	go func() { done <- serve.Run(ctx, node, config) }()
	select {
	case <-ready:
	case err := <-done:
		stop()
		t.Fatalf("serve the node: %v", err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serve the node: %v", err)
		}
		_ = os.RemoveAll(dir)
	})
	if runtime.GOOS == "windows" {
		return mounter.WithMode(mounter.Daemon) // pipes have the names that clients use
	}
	return mounter.WithPipePaths(func(group, version string) string {
		return filepath.Join(dir, "csi-proxy-"+group+"-"+version+".sock")
	})
}
