package protected_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/protected"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// TestAccess: users cannot change the directory.
func TestAccess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	require.NoError(t, protected.MkdirAll(dir))
	_, allowed, err := winapi.FileSecurity(dir)
	require.NoError(t, err)
	const change = windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | windows.DELETE | windows.WRITE_DAC
	for _, entry := range allowed {
		if (entry.SID == sddl.Users || entry.SID == sddl.Everyone) && entry.Mask&change != 0 {
			t.Errorf("%s has %#x", entry.SID, entry.Mask)
		}
	}
}
