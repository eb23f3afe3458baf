package machine

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Test asks about a folder, and a link to it before and after the folder is gone.
func Test(t *testing.T) {
	n, err := winsim.New(winsim.Default())
	require.NoError(t, err)
	Use(n)
	const folder, link = `C:\var\lib\kubelet\folder`, `C:\var\lib\kubelet\link`
	if err := MkdirAll("/var/lib/kubelet/folder", 0o755); err != nil || !n.Exists(folder) {
		t.Fatalf("the folder was not made: %v", err)
	}
	require.NoError(t, n.Symlink(link, folder))
	check := func(path string, exists, readable bool) {
		t.Helper()
		if _, err := Lstat(path); (err == nil) != exists || err != nil && !os.IsNotExist(err) {
			t.Errorf("Lstat(%s): %v", path, err)
		}
		if _, err := ReadDir(path); (err == nil) != readable || err != nil && !os.IsNotExist(err) {
			t.Errorf("ReadDir(%s): %v", path, err)
		}
	}
	check(folder, true, true)
	check("/var/lib/kubelet/link", true, true)
	require.NoError(t, n.RemoveAll(folder))
	check("/var/lib/kubelet/link", true, false)
	check(folder, false, false)
	if _, err := Lstat("relative"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a relative path: %v", err)
	}
	if err := MkdirAll("relative", 0o755); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a relative folder: %v", err)
	}
}
