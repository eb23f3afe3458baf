package daemon_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/service"
)

// TestMain_SystemLibrariesOnly: whatever the command line, no library is found beside the
// program or where it was started.
func TestMain_SystemLibrariesOnly(t *testing.T) {
	system, err := windows.GetSystemDirectory()
	if err != nil {
		t.Fatal(err)
	}
	library, err := os.ReadFile(filepath.Join(system, "version.dll"))
	if err != nil {
		t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run(t, program(&manager{}, func(*daemon.Flags, service.Notify) error { return nil }), "-version")
	const name = "csi-proxy-planted.dll"
	for _, path := range []string{name, filepath.Join(filepath.Dir(executable), name)} {
		if err := os.WriteFile(path, library, 0o600); err != nil {
			t.Fatal(err)
		}
		if handle, err := windows.LoadLibrary(name); err == nil {
			_ = windows.FreeLibrary(handle)
			t.Errorf("%s was loaded", path)
		}
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}
