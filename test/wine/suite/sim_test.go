//go:build linux && wine

package suite

import "testing"

// TestSim runs csi-proxy-sim.exe, and the conformance suite of all groups over the emulated
// node on named pipes, with the clients of all versions.
func TestSim(t *testing.T) {
	p := open(t)
	install(t, p, "csi-proxy-sim.exe")
	compile(t, p, "./pkg/winsim/serve", "./test/wine/daemon")
	interrupt(t, p, `C:\csi-proxy-sim.exe`)
	// Which paths are refused does not depend on what they came through, and there are
	// 30,000 requests with them.
	run(t, p, `C:\`, nil, "serve.test.exe", "-test.skip=^TestHostilePaths$")
}
