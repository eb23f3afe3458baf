package daemon_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/service"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestMain_SystemLibrariesOnly: whatever the command line, no library is found beside the
// program or where it was started.
func TestMain_SystemLibrariesOnly(t *testing.T) {
	system, err := windows.GetSystemDirectory()
	require.NoError(t, err)
	library, err := os.ReadFile(filepath.Join(system, "version.dll"))
	require.NoError(t, err)
	executable, err := os.Executable()
	require.NoError(t, err)
	run(t, program(&manager{}, func(*daemon.Flags, service.Notify) error { return nil }), "-version")
	const name = "csi-proxy-planted.dll"
	for _, path := range []string{name, filepath.Join(filepath.Dir(executable), name)} {
		require.NoError(t, os.WriteFile(path, library, 0o600))
		if handle, err := windows.LoadLibrary(name); err == nil {
			_ = windows.FreeLibrary(handle)
			t.Errorf("%s was loaded", path)
		}
		require.NoError(t, os.Remove(path))
	}
}
