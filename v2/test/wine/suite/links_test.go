//go:build linux && wine

package suite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestLinks: the links that csi-proxy-sim -files shows carry the names of shares, and lead to the
// emulated shares. Wine looks for \\server\share in a directory of the prefix.
func TestLinks(t *testing.T) {
	p := open(t)
	if !p.links {
		t.Skip("this Wine stores no links; Wine 11 does")
	}
	require.NoError(t, p.Shares(filepath.Join(p.Path(`C:\winsim-links`), ".csi-proxy-sim", "shares")))
	compile(t, p, "./v2/pkg/winsim")
	const test = "TestMirrorDrives_Share"
	run(t, p, `C:\`, []string{"WINSIM_TEST_UNC=1"}, "winsim.test.exe", "-test.run=^"+test+"$").wantPassed(t, test)
	if _, err := os.Stat(p.Path(`C:\winsim-links`)); err == nil {
		t.Error("the test left its directory behind")
	}
}
