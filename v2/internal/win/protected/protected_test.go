package protected_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/protected"
)

func TestMkdirAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, protected.MkdirAll(dir))
	require.NoError(t, protected.MkdirAll(dir))
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	if err := protected.MkdirAll(filepath.Join(path, "c")); err == nil {
		t.Error("made a directory below a file")
	}
}

func TestOpenFile(t *testing.T) {
	dir := t.TempDir()
	victim, planted := filepath.Join(dir, "victim"), filepath.Join(dir, "planted")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	for _, target := range []string{victim, filepath.Join(dir, "new")} {
		require.Link(t, target, planted)
		for _, flag := range []int{os.O_APPEND, os.O_TRUNC} {
			file, err := protected.OpenFile(planted, os.O_WRONLY|os.O_CREATE|flag, 0o600)
			if err == nil {
				_ = file.Close()
				t.Errorf("a link to %s was opened", target)
			}
		}
		require.NoError(t, os.Remove(planted))
	}
	text, err := os.ReadFile(victim)
	require.NoError(t, err)
	if string(text) != "precious" {
		t.Errorf("the file behind the link is %q", text)
	}
	for range 2 { // a new one, and one that exists
		file, err := protected.OpenFile(planted, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
}
