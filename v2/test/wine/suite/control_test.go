//go:build linux && wine

package suite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestControl changes the node of csi-proxy-sim.exe with csi-proxyctl.exe while it runs, as the
// recipe for drivers under Wine in docs/winsim.md does.
func TestControl(t *testing.T) {
	const kubelet = `C:\var\lib\kubelet`
	p := open(t)
	install(t, p, "csi-proxy-sim.exe", "csi-proxyctl.exe")
	require.NoError(t, p.Shares(filepath.Join(p.Path(kubelet), ".csi-proxy-sim", "shares")))
	require.NoError(t, os.WriteFile(p.Path(`C:\secret.txt`), []byte("pass\r\n"), 0o600))
	sim, err := p.Start(t.Context(), `C:\csi-proxy-sim.exe`, "-files", "drives", "-control", "default", "-kubelet-path", kubelet)
	require.NoError(t, err)
	const maxStarts = 200 // of a program, until the pipe exists
	for range maxStarts {
		if _, failed := ctl(t, p, "sim", "show"); !failed {
			break
		}
		select {
		case <-sim.Done():
			t.Fatal(sim.Output())
		default:
		}
	}
	for _, step := range []struct{ args, want string }{
		{"sim attach 1GiB --serial disk-7", "disk 4: attached"},
		{"sim grow 4 2GiB", "disk 4: grown to 2.0 GiB"},
		{"disk rescan", "disks: rescanned"},
		{"disk stats 4", "2.0 GiB"},
		{"sim server add srv.example", "added"},
		{`sim share add \\srv.example\share`, "added"},
		{`sim account add srv.example u --password-file C:\secret.txt`, "added"},
		{`sim mkdir \\srv.example\share\dir`, "created"},
		{`smb map \\srv.example\share --user u --password-file C:\secret.txt --link ` + kubelet + `\plugins\share`, "mapped"},
		{"sim reboot", "node: restarted"},
		{"sim show", "name: srv.example"},
		{"disk stats 4", "2.0 GiB"},
	} {
		output, failed := ctl(t, p, strings.Fields(step.args)...)
		if failed || !strings.Contains(output, step.want) {
			t.Errorf("csi-proxyctl %s: got %q, want %q", step.args, output, step.want)
		}
	}
	require.NoError(t, sim.Interrupt())
	select {
	case <-sim.Done():
	case <-time.After(timeLimit):
		t.Fatalf("csi-proxy-sim.exe does not end:\n%s", sim.Output())
	}
	require.NoError(t, sim.Wait())
}
