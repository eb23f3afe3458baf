//go:build unix

// Named pipes in directories are what is tested here.

package winsim_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestMirror_Pipes: a named pipe is an empty file, and opening it does not block.
func TestMirror_Pipes(t *testing.T) {
	node, dir := mirrored(t, winsim.Default())
	pipe := filepath.Join(realPath(dir, kubelet), "dir", "pipe")
	mustAll(t, os.Mkdir(filepath.Dir(pipe), 0o700), syscall.Mkfifo(pipe, 0o600))
	if content, err := node.ReadFile(kubelet + `\dir\pipe`); content != "" || err != nil {
		t.Errorf("the pipe contains %q, %v", content, err)
	}
	api, err := filesystem.New(node.Filesystem())
	mustAll(t, err)
	_, err = api.Rmdir(t.Context(), &filesystem.RmdirRequest{Path: kubelet + `\dir`, Force: true})
	mustAll(t, err)
	if _, err := os.Lstat(pipe); !os.IsNotExist(err) {
		t.Errorf("the pipe afterwards: %v", err)
	}
}
