//go:build linux && wine

package suite

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLinks: the links that csi-proxy-sim -files shows carry the names of shares, and lead to the
// emulated shares. Wine looks for \\server\share in a directory of the prefix. The test skips
// where Wine has no symbolic links.
func TestLinks(t *testing.T) {
	p := open(t)
	if err := p.Shares(filepath.Join(p.Path(`C:\winsim-links`), ".csi-proxy-sim", "shares")); err != nil {
		t.Fatal(err)
	}
	compile(t, p, "./pkg/winsim")
	run(t, p, `C:\`, []string{"WINSIM_TEST_UNC=1"}, "winsim.test.exe", "-test.run=^TestMirrorDrives_Share$")
	if _, err := os.Stat(p.Path(`C:\winsim-links`)); err == nil {
		t.Error("the test left its directory behind")
	}
}
