//go:build windows && wine

package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/mounter/remote"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
)

// TestConformance_Filesystem runs the suite on drive C:, through the newest version, which has all calls. The others, on pipes,
// have the tests of package serve.
func TestConformance_Filesystem(t *testing.T) {
	start(t)
	api, noLinks, longest := connectAll(t).Filesystem(), whyNoLinks(), longestPath(t)
	cases := 0
	hosttest.Filesystem(t, func(t *testing.T) hosttest.FilesystemNode {
		t.Helper()
		cases++
		root := fmt.Sprintf(`%s\conformance\%d`, kubelet, cases)
		require.NoError(t, os.MkdirAll(root, 0o700))
		node := hosttest.FilesystemNode{API: api, Root: root, WriteFile: writeFile, ReadFile: readFile, NoLinks: noLinks, LongestPath: longest}
		if *volume != "" && noLinks == "" {
			node.MountVolume, node.LoseVolume = mountVolume, loseVolume
		}
		return node
	})
}

// connectAll returns all groups of the daemon.
func connectAll(t *testing.T) *remote.Daemon {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	api, err := remote.New(ctx, remote.WithWait())
	require.NoError(t, err)
	t.Cleanup(func() { _ = api.Close() })
	return api
}

// longestPath tries how long a path can be. Wine has the limits of the system below it.
func longestPath(t *testing.T) int {
	t.Helper()
	const name = `\xxxxxxxxx`
	path := kubelet + `\longest`
	defer os.RemoveAll(path)
	for {
		if err := os.MkdirAll(path+strings.Repeat(name, len(path)/len(name)), 0o700); err != nil {
			return len(path) // half of it, and a tenth less, is not worth a search
		}
		if path += strings.Repeat(name, len(path)/len(name)); len(path) > 30_000 {
			return 0
		}
	}
}

func writeFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

func readFile(path string) (string, error) {
	content, err := os.ReadFile(path)
	return string(content), err
}

// TestFilesystem_Outside: clients cannot reach the rest of the drive.
func TestFilesystem_Outside(t *testing.T) {
	start(t)
	c := connect(t)
	for path, want := range map[string]codes.Code{
		`C:\windows\x`:                   codes.PermissionDenied,
		`C:\var\lib`:                     codes.PermissionDenied,
		`C:\var\lib\kubelet2`:            codes.PermissionDenied,
		`C:\var\lib\kubelet\..\kubelet2`: codes.InvalidArgument,
		`\\.\pipe\x`:                     codes.InvalidArgument,
	} {
		if _, err := c.Mkdir(t.Context(), &filesystemv1.MkdirRequest{Path: path}); status.Code(err) != want {
			t.Errorf("mkdir %s: %v, want %v", path, err, want)
		}
		if _, err := c.Rmdir(t.Context(), &filesystemv1.RmdirRequest{Path: path, Force: true}); status.Code(err) != want {
			t.Errorf("rmdir %s: %v, want %v", path, err, want)
		}
	}
}
