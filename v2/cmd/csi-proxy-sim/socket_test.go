package main

import (
	"os"
	"runtime"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// socketDir makes a directory for sockets, whose name is short, unlike that of t.TempDir. Windows has pipes
// instead, with names that cannot be chosen.
func socketDir(t testing.TB) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		return ""
	}
	dir, err := os.MkdirTemp("", "sim")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
