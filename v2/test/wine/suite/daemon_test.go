//go:build linux && wine

package suite

import (
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

const daemonTests = "daemon.test.exe"

// TestDaemon runs csi-proxy.exe as a program and as a service, and clients on its pipes.
func TestDaemon(t *testing.T) {
	p := open(t)
	install(t, p, "csi-proxy.exe")
	compile(t, p, "./v2/test/wine/daemon")
	interrupt(t, p, `C:\csi-proxy.exe`)
	args := []string{"-test.skip=^TestAttack$"}
	if p.links {
		args = append(args, "-links", "-volume="+dataVolume)
	}
	run(t, p, `C:\`, nil, daemonTests, args...)
}

// TestAttacks attacks csi-proxy.exe on its pipes, as test/attack does csi-proxy-sim on its sockets.
func TestAttacks(t *testing.T) {
	p := open(t)
	install(t, p, "csi-proxy.exe")
	compile(t, p, "./v2/test/wine/daemon")
	run(t, p, `C:\`, nil, daemonTests, "-test.run=^TestAttack$")
}

// interrupt starts a program in a console, lets clients talk to it, and presses Ctrl+C, which
// only this side can.
func interrupt(t *testing.T, p *machine, program string) {
	t.Helper()
	served, err := p.Start(t.Context(), program, "-v=2")
	require.NoError(t, err)
	run(t, p, `C:\`, nil, daemonTests, "-test.run=^TestAttached$", "-attached")
	require.NoError(t, served.Interrupt())
	select {
	case <-served.Done():
	case <-time.After(timeLimit):
		t.Fatalf("%s does not end:\n%s", program, served.Output())
	}
	if err := served.Wait(); err != nil || !strings.Contains(served.Output(), `"Stopped"`) {
		t.Errorf("%s has not stopped as it should: %v\n%s", program, err, served.Output())
	}
}
