package serve_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const dataVolume = `\\?\Volume{11111111-2222-3333-4444-555555555555}\`

func newNode(t *testing.T) *winsim.Node {
	t.Helper()
	model := winsim.Default()
	model.Volumes = append(model.Volumes, winsim.Volume{ID: dataVolume})
	node, err := winsim.New(model)
	must(t, err)
	return node
}

// run serves a node until the test ends and returns the directory of its sockets.
func run(t *testing.T, node *winsim.Node, apiGroups ...string) string {
	t.Helper()
	return runWith(t, node, serve.Config{Config: daemon.Config{APIGroups: apiGroups}})
}

func runWith(t *testing.T, node *winsim.Node, cfg serve.Config) string {
	t.Helper()
	dir, _ := runUntil(t, node, cfg)
	return dir
}

// runUntil serves a node until stop is called or the test ends.
func runUntil(t *testing.T, node *winsim.Node, cfg serve.Config) (dir string, stop func()) {
	t.Helper()
	dir = serve.SocketDir(t)
	cfg.SocketDir = dir
	end := serve.StartWith(t, node, cfg)
	stop = sync.OnceFunc(func() {
		end()
		if left, _ := filepath.Glob(dir + "/*"); dir != "" && len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Cleanup(stop)
	return dir, stop
}

// endpointPath is where an endpoint is found that serves from a directory. Pipes are in none.
func endpointPath(dir, group, version string) string {
	name := fmt.Sprintf("csi-proxy-%s-%s", group, version)
	if runtime.GOOS == "windows" {
		return `\\.\pipe\` + name
	}
	return filepath.Join(dir, name+".sock")
}

// served are the endpoints that can be connected to, as group-version.
func served(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	for _, e := range grpcapi.Endpoints() {
		version, err := apiversion.NewVersion(e.Version)
		must(t, err)
		conn, err := client.Connect(t.Context(), e.Group, version, client.WithPipePath(endpointPath(dir, e.Group, e.Version)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must(t, err)
		_ = conn.Close() // unused
		names = append(names, e.Name())
	}
	return names
}

func TestRun_ServesEveryEndpoint(t *testing.T) {
	want := strings.Fields(`
		disk/v1alpha1 disk/v1beta1 disk/v1beta2 disk/v1beta3 disk/v1
		filesystem/v1alpha1 filesystem/v1beta1 filesystem/v1beta2 filesystem/v1 filesystem/v2alpha1
		iscsi/v1alpha1 iscsi/v1alpha2
		smb/v1alpha1 smb/v1beta1 smb/v1beta2 smb/v1
		system/v1alpha1
		volume/v1alpha1 volume/v1beta1 volume/v1beta2 volume/v1beta3 volume/v1 volume/v2alpha1`)
	dir := run(t, newNode(t))
	if got := served(t, dir); !slices.Equal(got, want) {
		t.Errorf("endpoints: got %v\nwant %v", got, want)
	}
	if left, _ := filepath.Glob(dir + "/*"); runtime.GOOS != "windows" && len(left) != len(want) {
		t.Errorf("the directory has %v, want a socket per endpoint", left)
	}
}

func TestRun_ServesASubset(t *testing.T) {
	got := served(t, run(t, newNode(t), "system", "disk/v1"))
	if want := []string{"disk/v1", "system/v1alpha1"}; !slices.Equal(got, want) {
		t.Errorf("endpoints: got %v, want %v", got, want)
	}
}

// must ends a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
