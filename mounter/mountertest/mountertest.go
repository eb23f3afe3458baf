// Package mountertest runs a mounter on an emulated node, in both modes, on every system:
//
//	node, err := winsim.New(winsim.Default())
//	m, err := mounter.New(ctx, mountertest.Library(node))
//
// A driver's test that passes with Library and with NewDaemon works with both.
//
// A driver that restarts is another Mounter: with a Driver in the mode Library, with the same option in the mode Daemon. A
// daemon that restarts is its Stop and Start, a node its Reboot.
//
// A daemon and its Mounter hold some 30 file descriptors until Stop and Close, or the end of the test. A test with hundreds of
// them ends each, or calls fail with "error reading server preface".
//
// The package is v0, as package mounter, and a module of its own: it requires newer versions of other modules than the
// mounter does. Tests that must not raise those of the driver are in a module apart.
package mountertest

import (
	"path/filepath"
	"runtime"
	"sync"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Library makes a Mounter work on an emulated node in the mode Library.
func Library(node *winsim.Node) mounter.Option {
	return mounter.WithHosts(mounter.Hosts{
		Disk: node.Disk(), Volume: node.Volume(), Filesystem: node.Filesystem(), SMB: node.SMB(), ISCSI: node.ISCSI(),
		Node: func(options ...nodeapi.Option) (*nodeapi.Node, error) { return nodeapi.NewOn(node, options...) },
	})
}

// Driver is a process of a driver in the mode Library.
type Driver struct {
	node *winsim.Node
	end  func()
}

// NewDriver is a driver that Restart starts.
func NewDriver(node *winsim.Node) *Driver { return &Driver{node, func() {}} }

// Restart is Library for a process that starts now. The one before ends as in a crash: it does nothing more, and what Windows
// still does for it goes on.
func (d *Driver) Restart() mounter.Option {
	d.end()
	m := d.node.Process(nil)
	d.end = m.(interface{ End() }).End //nolint:forcetypeassert // Process says so
	return mounter.WithHosts(mounter.Hosts{
		Disk: diskapi.NewOn(m), Volume: volumeapi.NewOn(m), Filesystem: fsapi.NewOn(m), SMB: smbapi.NewOn(m), ISCSI: iscsiapi.NewOn(m),
		Node: func(options ...nodeapi.Option) (*nodeapi.Node, error) { return nodeapi.NewOn(m, options...) },
	})
}

// T is the part of testing.TB that a Daemon needs.
type T interface {
	serve.T
	Log(args ...any)
}

// Daemon is CSI Proxy on an emulated node. Its log is that of the test.
type Daemon struct {
	t      T
	node   *winsim.Node
	config serve.Config
	log    *testLog
	stop   func() // nil while it does not run
}

// NewDaemon serves an emulated node until the end of a test. Several nodes can be served at once, except on Windows,
// where pipes have fixed names.
func NewDaemon(t T, node *winsim.Node) *Daemon {
	t.Helper()
	return NewDaemonWith(t, node, serve.Config{})
}

// NewDaemonWith is NewDaemon with other settings. It chooses the SocketDir and Ready.
func NewDaemonWith(t T, node *winsim.Node, config serve.Config) *Daemon {
	t.Helper()
	config.SocketDir = serve.SocketDir(t)
	d := &Daemon{t: t, node: node, config: config, log: &testLog{t: t}}
	t.Cleanup(d.log.end) // after the daemon
	d.Start()
	return d
}

// Start starts the daemon again after Stop, and returns when it serves.
func (d *Daemon) Start() {
	d.t.Helper()
	if d.stop != nil {
		return
	}
	d.stop = serve.StartContext(klog.NewContext(d.t.Context(), d.log.logger()), d.t, d.node, d.config)
}

// Stop ends the daemon, in the middle of what it does. The node stays as it is.
func (d *Daemon) Stop() {
	if d.stop != nil {
		d.stop()
		d.stop = nil
	}
}

// Dir is the directory of the daemon's sockets, for clients of other groups. It is empty on Windows.
func (d *Daemon) Dir() string { return d.config.SocketDir }

// Option makes a Mounter work on the node in the mode Daemon.
func (d *Daemon) Option() mounter.Option {
	if runtime.GOOS == "windows" {
		return mounter.WithMode(mounter.Daemon)
	}
	return mounter.WithPipePaths(func(group, version string) string {
		return filepath.Join(d.Dir(), "csi-proxy-"+group+"-"+version+".sock")
	})
}

// testLog is the log of a test, until it ends: a call of Windows can outlast its caller.
type testLog struct {
	mu    sync.Mutex
	t     T
	ended bool
}

func (l *testLog) logger() klog.Logger {
	return funcr.New(func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.ended {
			l.t.Log(prefix, args)
		}
	}, funcr.Options{})
}

func (l *testLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}
