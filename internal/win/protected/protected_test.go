package protected_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/protected"
)

// write appends to a protected file.
func write(t *testing.T, path string) error {
	t.Helper()
	file, err := protected.OpenFile(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString("x")
	return err
}

func TestOpenFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, protected.MkdirAll(dir))
	require.NoError(t, protected.MkdirAll(dir))
	path := filepath.Join(dir, "file")
	for range 2 {
		require.NoError(t, write(t, path))
	}
	if text, err := os.ReadFile(path); string(text) != "xx" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if err := protected.MkdirAll(filepath.Join(path, "c")); err == nil {
		t.Error("made a directory below a file")
	}
	if err := write(t, dir); err == nil {
		t.Error("wrote to a directory")
	}
}

// TestOpenFile_OfOthers: what another user has put there is not written to, and what others can read no longer is.
func TestOpenFile_OfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // access_windows_test.go
	}
	dir := t.TempDir()
	open, link := filepath.Join(dir, "open"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(open, nil, 0o600))
	require.NoError(t, os.Chmod(open, 0o666))
	require.NoError(t, write(t, open))
	if info, err := os.Stat(open); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	require.NoError(t, os.Symlink(open, link))
	if err := write(t, link); err == nil {
		t.Error("followed a link")
	}
	if os.Geteuid() == 0 { // only root can give a file away
		require.NoError(t, os.Chown(open, 65534, 65534))
		if err := write(t, open); err == nil {
			t.Error("wrote to a file of another user")
		}
	}
}
