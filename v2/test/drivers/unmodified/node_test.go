//go:build linux && wine

package unmodified

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
)

const (
	buildLimit = 60 * time.Minute // for the first build of a driver on a busy machine
	startLimit = 2 * time.Minute
	callLimit  = 2 * time.Minute // as the kubelet's
	kubelet    = `C:\var\lib\kubelet`
)

// program builds a driver, and returns its path.
func program(t *testing.T, d *driver) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildLimit)
	defer cancel()
	output := filepath.Join(root(t), "bin", "drivers", d.name+"-"+d.program.Version+".exe")
	require.NoError(t, d.program.Build(ctx, output))
	return output
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := prefix.Root()
	require.NoError(t, err)
	return dir
}

// node is an emulated node in a Wine prefix, with a driver that runs there.
type node struct {
	prefix      *prefix.Prefix
	sim, driver *prefix.Process
	identity    csi.IdentityClient
	csi         csi.NodeClient
}

// start starts the emulator with a model and API versions, then the driver.
func start(t *testing.T, d *driver, exe, model string, versions api) *node {
	t.Helper()
	p, err := prefix.Need(t).New(t.Context())
	require.NoError(t, err)
	n := &node{prefix: p}
	t.Cleanup(func() {
		if t.Failed() {
			n.log(t)
		}
		if err := p.Close(); err != nil {
			t.Errorf("close the prefix: %v", err)
		}
	})
	for _, name := range []string{"csi-proxy-sim.exe", "csi-proxyctl.exe"} {
		if err := p.Copy(filepath.Join(root(t), "bin", name)); err != nil {
			t.Fatalf("%v; make build builds it", err)
		}
	}
	require.NoError(t, p.Copy(exe))
	require.NoError(t, os.WriteFile(p.Path(`C:\node.yaml`), []byte(model), 0o600))
	// A share that the node has mapped is one for the driver, too.
	require.NoError(t, p.Shares(p.Path(kubelet+`\.csi-proxy-sim\shares`)))
	n.sim, err = p.Start(t.Context(), `C:\csi-proxy-sim.exe`, "-model", `C:\node.yaml`, "-files", "drives", "-api-groups", versions.flag(), "-control", "default", "-v=4")
	require.NoError(t, err)
	n.waitForSim(t)
	n.startDriver(t, d, `C:\`+filepath.Base(exe))
	return n
}

// startDriver starts the driver and connects to it. Wine has no Unix sockets; its TCP sockets are those
// of this machine.
func (n *node) startDriver(t *testing.T, d *driver, exe string) {
	t.Helper()
	address := freeAddress(t)
	var line strings.Builder
	if d.metadata != nil {
		server := httptest.NewServer(d.metadata.handler)
		t.Cleanup(server.Close)
		variables := append([]string{d.metadata.variable + "=" + fmt.Sprintf(d.metadata.format, server.Listener.Addr())}, d.metadata.others...)
		for _, variable := range variables {
			fmt.Fprintf(&line, "set %s&& ", variable)
		}
	}
	fmt.Fprintf(&line, "%s %s --endpoint=tcp://%s", exe, strings.Join(d.args, " "), address)
	process, err := n.prefix.Start(t.Context(), "cmd", "/c", line.String())
	require.NoError(t, err)
	n.driver = process

	connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1, MaxDelay: 200 * time.Millisecond}}))
	require.NoError(t, err)
	t.Cleanup(func() { connection.Close() })
	n.identity, n.csi = csi.NewIdentityClient(connection), csi.NewNodeClient(connection)

	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	go func() {
		select {
		case <-process.Done(): // it will not answer any more
			cancel()
		case <-ctx.Done():
		}
	}()
	if _, err := n.identity.Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatalf("%s does not answer: %v", d.name, err)
	}
}

// freeAddress returns an address of this machine on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// waitForSim waits until the emulator serves.
func (n *node) waitForSim(t *testing.T) {
	t.Helper()
	limit := time.After(startLimit)
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for !strings.Contains(n.sim.Output(), "Ready on") {
		select {
		case <-n.sim.Done():
			t.Fatalf("the emulator has ended: %v", n.sim.Wait())
		case <-limit:
			t.Fatalf("the emulator is not ready:\n%s", n.sim.Output())
		case <-look.C:
		}
	}
}

// log shows the ends of what driver and emulator have written.
func (n *node) log(t *testing.T) {
	t.Helper()
	for name, process := range map[string]*prefix.Process{"emulator": n.sim, "driver": n.driver} {
		if process != nil {
			const enough = 12000
			output := process.Output()
			t.Logf("the %s:\n%s", name, output[max(0, len(output)-enough):])
		}
	}
}

// state is what csi-proxyctl says about the node.
type state struct {
	Disks []struct {
		Number     uint32
		SizeBytes  int64
		Online     bool
		ReadOnly   bool
		Problems   []string // why something else is missing
		Partitions []struct {
			SizeBytes int64
			Type      string
			Volume    *struct {
				ID, State, FileSystem string
				TotalBytes            int64
				ReadOnly              bool
				MountPaths, Links     []string
			}
		}
	}
	StaleMounts []struct{ Path string }
	Shares      []struct{ Remote string }
}

func (n *node) state(t *testing.T) state {
	t.Helper()
	output := n.ctl(t, "node", "-o", "json")
	var found state
	if err := json.Unmarshal([]byte(output), &found); err != nil {
		t.Fatalf("csi-proxyctl node: %v\n%s", err, output)
	}
	return found
}

// ctl runs csi-proxyctl on the node.
func (n *node) ctl(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	output, err := n.prefix.Run(ctx, `C:\csi-proxyctl.exe`, args...)
	if err != nil {
		t.Fatalf("csi-proxyctl %s: %v", strings.Join(args, " "), err)
	}
	return output
}

// fingerprint returns the hash of what is on a disk.
func (n *node) fingerprint(t *testing.T, disk int) string {
	t.Helper()
	output := n.ctl(t, "sim", "show", "-o", "json")
	var found struct {
		Fingerprints map[int]string
	}
	if err := json.Unmarshal([]byte(output), &found); err != nil {
		t.Fatalf("csi-proxyctl sim show: %v\n%s", err, output)
	}
	if found.Fingerprints[disk] == "" {
		t.Fatalf("disk %d has no fingerprint:\n%s", disk, output)
	}
	return found.Fingerprints[disk]
}

// linked reports whether a link of the node is one for the driver, too. Where Wine has no links, up to
// version 10, the emulator shows an empty directory.
func (n *node) linked(path string) bool {
	info, err := os.Lstat(n.prefix.Path(path))
	return err != nil || !info.IsDir()
}

// file returns the content of a file on the volume with data.
func (n *node) file(name string) (string, error) {
	text, err := os.ReadFile(n.prefix.Path(kubelet + `\.csi-proxy-sim\volumes\` + movedVolume + `\` + name))
	return string(text), err
}

// tree lists what is in the kubelet's directory, without the files of volumes and shares.
func (n *node) tree(t *testing.T) []string {
	t.Helper()
	var names []string
	top := n.prefix.Path(kubelet)
	err := filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() == ".csi-proxy-sim" {
			return fs.SkipDir
		}
		names = append(names, fmt.Sprintf("%s %s", strings.TrimPrefix(name, top), entry.Type()))
		return nil
	})
	require.NoError(t, err)
	return names
}

// mkdir makes a directory as the kubelet does.
func (n *node) mkdir(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(n.prefix.Path(dir), 0o700))
}
