//go:build linux && wine

package suite

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestCtl installs csi-proxy.exe as a service with csi-proxyctl.exe, upgrades it, lets an
// upgrade fail, and removes it.
func TestCtl(t *testing.T) {
	p := open(t)
	install(t, p, "csi-proxy.exe", "csi-proxyctl.exe")
	program, err := os.ReadFile(p.Path(`C:\csi-proxy.exe`))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(p.Path(`C:\daemon.exe`), program, 0o700))
	require.NoError(t, os.WriteFile(p.Path(`C:\csi-proxy-broken.exe`), []byte("no program"), 0o700))
	for _, step := range []struct {
		args string
		fail bool
		want []string
	}{
		{args: "service status", fail: true, want: []string{"not installed"}},
		{args: `service install --binary csi-proxy.exe`, fail: true, want: []string{"not a full path"}},
		{args: `service install --binary C:\csi-proxyctl.exe`, fail: true, want: []string{"is csi-proxyctl.exe, not csi-proxy"}},
		// Under Wine every file belongs to the user.
		{args: `service install --binary C:\daemon.exe`, fail: true, want: []string{`C:\daemon.exe belongs to S-1-5-21-`, "icacls", "--force"}},
		{args: `service install --force --binary C:\daemon.exe -- -log_file=C:\csi-proxy.log -logtostderr=false -v=2`, want: []string{"csi-proxy: installed"}},
		{args: `service install --force`, want: []string{"installed already"}},
		{args: "service status", want: []string{"stopped", "automatic", `"C:\daemon.exe" -windows-service -log_file=C:\csi-proxy.log`}},
		{args: "service start", want: []string{"starting", "csi-proxy: running"}},
		{args: "service start", want: []string{"csi-proxy: running"}},
		{args: "versions", want: []string{"volume", "serving"}},
		{args: "service status", want: []string{"running", "  23  "}},
		{args: `service install --force -- -log_file=C:\csi-proxy.log -logtostderr=false -v=3`, want: []string{"stop and start it"}},
		{args: `service upgrade --binary C:\csi-proxy.exe`, fail: true, want: []string{"icacls"}},
		{args: `service upgrade --force --binary C:\csi-proxy.exe`, want: []string{"stopping", "replacing", "starting", "csi-proxy: upgraded"}},
		{args: "service status", want: []string{"running", "  23  ", "-v=3"}},
		{args: `service upgrade --force --binary C:\csi-proxy-broken.exe`, fail: true, want: []string{"rolling back", "was rolled back"}},
		{args: "service status", want: []string{"running", "  23  "}},
		{args: "doctor", fail: true, want: []string{"csi-proxy runs as process", "start type is automatic", "long paths", "permissions", "belongs to S-1-5-21-", `C:\csi-proxy.log and its backups`}},
		{args: "service stop", want: []string{"csi-proxy: stopped"}},
		{args: "service stop", want: []string{"csi-proxy: stopped"}},
		{args: "service uninstall", want: []string{"csi-proxy: removed"}},
		{args: "service uninstall", want: []string{"was not installed"}},
	} {
		output, failed := ctl(t, p, strings.Fields(step.args)...)
		t.Logf("csi-proxyctl %s\n%s", step.args, output)
		if failed != step.fail {
			t.Fatalf("csi-proxyctl %s: failed %v, want %v", step.args, failed, step.fail)
		}
		for _, want := range step.want {
			if !strings.Contains(output, want) {
				t.Errorf("csi-proxyctl %s: %q is missing", step.args, want)
			}
		}
	}
	if left, err := os.ReadFile(p.Path(`C:\daemon.exe`)); err != nil || string(left) != string(program) {
		t.Errorf("the program is another in the end: %v", err)
	}
}

// ctl runs csi-proxyctl.exe.
func ctl(t *testing.T, p *machine, args ...string) (output string, failed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	process, err := p.Start(ctx, `C:\csi-proxyctl.exe`, args...)
	require.NoError(t, err)
	failed = process.Wait() != nil
	if ctx.Err() != nil {
		t.Fatalf("csi-proxyctl %s does not end:\n%s", strings.Join(args, " "), process.Output())
	}
	return process.Output(), failed
}
