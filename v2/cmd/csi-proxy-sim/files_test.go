//go:build unix

// Links, and signals to a process, are what is tested here.

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestProcess_Files: this process sees with its own eyes what the node of another one has,
// and the other way round.
func TestProcess_Files(t *testing.T) {
	sockets, dir := serve.SocketDir(t), filepath.Join(t.TempDir(), "files")
	kubelet := filepath.Join(dir, "C", "var", "lib", "kubelet")
	s := command(t, "-socket-dir", sockets, "-files", dir)
	require.NoError(t, s.cmd.Start())
	c := connect(t, sockets)

	target := filepath.Join(kubelet, "pods", "web", "volumes", "pv")
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { // as drivers do
		t.Fatal(err)
	}
	if _, err := c.Mkdir(t.Context(), &filesystemv1.MkdirRequest{Path: `C:\var\lib\kubelet\plugins\stage`}); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(kubelet, "plugins", "stage", "data"), []byte("x"), 0o600))
	_, err := c.CreateSymlink(t.Context(), &filesystemv1.CreateSymlinkRequest{
		SourcePath: `C:\var\lib\kubelet\plugins\stage`, TargetPath: `C:\var\lib\kubelet\pods\web\volumes\pv`,
	})
	require.NoError(t, err)
	if text, err := os.Readlink(target); text != "../../../plugins/stage" {
		t.Errorf("the link leads to %q, %v", text, err)
	}
	if entries, err := os.ReadDir(target); err != nil || len(entries) != 1 || entries[0].Name() != "data" {
		t.Errorf("behind the link there are %v, %v", entries, err)
	}
	if _, err := c.Rmdir(t.Context(), &filesystemv1.RmdirRequest{Path: `C:\var\lib\kubelet\pods\web`, Force: true}); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(kubelet, "pods", "web")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed directory: %v", err)
	}
	if _, err := os.Stat(filepath.Join(kubelet, "plugins", "stage", "data")); err != nil {
		t.Error(err)
	}

	if code, output := command(t, "-socket-dir", serve.SocketDir(t), "-files", dir).exit(); code != daemon.ExitUsage || !strings.Contains(output, "another csi-proxy-sim") {
		t.Errorf("a second simulator: exit code %d\n%s", code, output)
	}

	// After a kill, too, the next simulator starts with a new node.
	require.NoError(t, s.cmd.Process.Kill())
	_ = s.cmd.Wait() // killed, as we wanted
	s = command(t, "-socket-dir", sockets, "-files", dir)
	require.NoError(t, s.cmd.Start())
	c = connect(t, sockets)
	if response, err := c.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: `C:\var\lib\kubelet\plugins\stage`}); err != nil || response.Exists {
		t.Errorf("what the first one had: %v, %v", response, err)
	}
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGINT))
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("after an interrupt: %v\n%s", err, s.output)
	}
	if _, err := os.Stat(filepath.Join(kubelet, "pods")); err != nil {
		t.Errorf("what is left: %v", err)
	}
}
