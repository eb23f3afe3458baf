package plugin_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kubernetes-csi/csi-proxy/examples/csi-node-plugin/internal/plugin"
	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	kubelet = `C:\var\lib\kubelet`
	nodeID  = "node-1"
	pool    = "iqn.2025-01.com.example:pool" // a target with the LUNs of a cloud
)

// modes are the two ways to reach a node.
var modes = map[string]func(tb testing.TB, node *winsim.Node) mounter.Option{
	"daemon": func(tb testing.TB, node *winsim.Node) mounter.Option {
		tb.Helper()
		return mountertest.NewDaemon(tb, node).Option()
	},
	"library": func(_ testing.TB, node *winsim.Node) mounter.Option { return mountertest.Library(node) },
}

// inBothModes runs a test on a node of its own in each mode.
func inBothModes(t *testing.T, test func(d *driver)) {
	t.Helper()
	for mode, over := range modes {
		t.Run(mode, func(t *testing.T) {
			node := newNode(t)
			test(start(t, node, over(t, node)))
		})
	}
}

func newNode(t *testing.T) *winsim.Node {
	t.Helper()
	model := winsim.Default()
	model.ISCSI.Targets = append(model.ISCSI.Targets, winsim.ISCSITarget{
		IQN: pool, CHAP: &winsim.CHAP{User: "csi", Secret: "csi-Pa55-chap"}, LUNs: slices.Repeat([]winsim.Disk{{Size: 2 * winsim.GiB}}, 64),
	})
	node, err := winsim.New(model)
	must(t, err)
	return node
}

// driver is a running plugin, as kubelet sees it, and the node that it works on.
type driver struct {
	csi.IdentityClient
	csi.NodeClient
	t       testing.TB // the one in which it runs
	node    *winsim.Node
	mounter *mounter.Mounter
	address string
	log     *log
}

// start serves the plugin on a Unix socket until the test ends.
func start(tb testing.TB, node *winsim.Node, mode mounter.Option) *driver {
	tb.Helper()
	m, err := mounter.New(tb.Context(), mode)
	must(tb, err)
	tb.Cleanup(func() { _ = m.Close() })
	d := &driver{t: tb, node: node, mounter: m, log: &log{}}
	config := plugin.Config{
		Name:        "csi-node-plugin.example.com",
		Version:     "test",
		NodeID:      nodeID,
		Controller:  true,
		KubeletPath: kubelet,
		Mounter:     m,
		Log:         slog.New(slog.NewTextHandler(d.log, nil)),
	}
	d.address = listenAndServe(tb, func(ctx context.Context, listener net.Listener) error {
		return plugin.Serve(ctx, listener, config)
	})
	conn, err := grpc.NewClient(d.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	d.IdentityClient = csi.NewIdentityClient(conn)
	d.NodeClient = csi.NewNodeClient(conn)
	return d
}

// listenAndServe serves something on a Unix socket until the test ends, and returns its
// address.
func listenAndServe(tb testing.TB, serve func(context.Context, net.Listener) error) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "csi") // names of sockets are short
	must(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "csi.sock")
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "unix", path)
	must(tb, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	done := make(chan error, 1)
	go func() { done <- serve(ctx, listener) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("serve: %v", err)
		}
	})
	return "unix://" + path
}

// log collects what the plugin logs.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// mounted is how kubelet wants a volume that it mounts.
func mounted(fsType string) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fsType, MountFlags: []string{"dir_mode=0777", "noatime"}}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

// paths are those of a volume, and kubelet's folders for them are made: the staging path, and
// the parent of the target.
func paths(tb testing.TB, node *winsim.Node, name string) (staging, target string) {
	tb.Helper()
	staging = kubelet + `\plugins\kubernetes.io\csi\csi-node-plugin.example.com\` + name + `\globalmount`
	target = kubelet + `\pods\` + name + `\volumes\kubernetes.io~csi\pv\mount`
	for _, dir := range []string{staging, strings.TrimSuffix(target, `\mount`)} {
		must(tb, node.Mkdir(dir))
	}
	return staging, target
}

// must ends the test if err is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
