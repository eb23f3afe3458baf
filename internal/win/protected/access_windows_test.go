package protected_test

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/protected"
)

// TestAccess: users read the directory, and not the file, also if it was open to them before.
func TestAccess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	path := filepath.Join(dir, "file")
	require.NoError(t, protected.MkdirAll(dir))
	require.NoError(t, write(t, path))
	everyone, err := windows.SecurityDescriptorFromString("D:P(A;;FA;;;WD)")
	require.NoError(t, err)
	list, _, err := everyone.DACL()
	require.NoError(t, err)
	for _, open := range []bool{false, true} {
		if open {
			require.NoError(t, windows.SetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION, nil, nil, list, nil))
			require.NoError(t, write(t, path))
		}
		descriptor, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
		if text := descriptor.String(); err != nil || strings.Contains(text, ";WD)") || strings.Contains(text, ";BU)") {
			t.Errorf("the access list is %s, %v", text, err)
		}
	}
}
