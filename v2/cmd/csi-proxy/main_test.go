package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var update = flag.Bool("update", false, "write docs/daemon.md")

// help returns what -help or -help-all prints.
func help(t *testing.T, flag string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := program().Main([]string{flag}, &stdout, &stderr); code != daemon.ExitOK || stderr.Len() > 0 {
		t.Errorf("exit code %d, stderr %q", code, &stderr)
	}
	return stdout.String()
}

func TestMain_Help(t *testing.T) {
	lines := strings.Split(help(t, "--help"), "\n")
	if len(lines) > 41 {
		t.Errorf("the common flags take %d lines, more than a screen", len(lines)-1)
	}
	all := help(t, "-help-all")
	for _, line := range lines {
		if name, isFlag := strings.CutPrefix(line, "  -"); len(line) > 100 || isFlag && !strings.Contains(all, "  -"+name+"\n") {
			t.Errorf("too long, or not in -help-all: %s", line)
		}
	}
	for _, name := range program().Common {
		if !strings.Contains(strings.Join(lines, "\n"), "\n  -"+name) {
			t.Errorf("there is no flag -%s", name)
		}
	}
	for _, flag := range []string{
		"-kubelet-path", "-working-dir", "-api-groups", "-pipe-security-descriptor", "-mitigations", "-stop-timeout", "-memory-limit", "-format-existing", "-format-allocation-unit-size", "-format-file-system", "-format-label", "-format-root-access", "users-modify", "-allowed-services", "-version", "-windows-service",
		"-metrics-bind-address", "127.0.0.1", "-v ", "-log_file ", "-log_file_max_size MiB", "(default 300)", "-log_file_max_backups", "-logtostderr", "-alsologtostderr", "-stderrthreshold", "-vmodule",
	} {
		if !strings.Contains(all, flag) {
			t.Errorf("the help does not mention %s", flag)
		}
	}
}

func TestMain_OtherSystems(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this is Windows")
	}
	t.Cleanup(klog.CaptureState().Restore)
	t.Chdir(t.TempDir())
	for _, line := range []string{
		`-v=4 --kubelet-path D:\kubelet`,
		// In use on nodes, the second by OpenShift.
		`-windows-service -log_file=C:\etc\kubernetes\logs\csi-proxy.log -logtostderr=false`,
		`-log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false -windows-service --v=4`,
	} {
		var stdout, stderr bytes.Buffer
		code := program().Main(strings.Fields(line), &stdout, &stderr)
		const want = "csi-proxy: it runs on Windows only; use csi-proxy-sim to serve an emulated node on this system\n"
		if code != daemon.ExitFailure || stderr.String() != want || stdout.Len() > 0 {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q; want %d and %q", line, code, &stdout, &stderr, daemon.ExitFailure, want)
		}
	}
	if left, _ := filepath.Glob("*"); len(left) > 0 {
		t.Errorf("it has created %q", left)
	}
}

func TestMain_AllowedServices(t *testing.T) {
	for value, want := range map[string]string{
		"kubelet":       `allowed service "kubelet": csi-proxy never starts or stops it`,
		"*,RPCSS":       `allowed service "RPCSS": csi-proxy never starts or stops it`,
		"MSiSCSI,,vds":  `allowed service "": it is empty`,
		`MSiSCSI,a\b`:   `it contains a slash or a backslash`,
		"MSiSCSI, vds ": "csi-proxy-sim", // valid: the daemon fails later, because this is not Windows
		"*":             "csi-proxy-sim",
		"":              "csi-proxy-sim",
	} {
		var stdout, stderr bytes.Buffer
		wantCode := daemon.ExitUsage
		if want == "csi-proxy-sim" {
			if runtime.GOOS == "windows" {
				continue
			}
			wantCode = daemon.ExitFailure
		}
		if code := program().Main([]string{"-allowed-services=" + value}, &stdout, &stderr); code != wantCode || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: exit code %d, stderr %q; want %d and %q", value, code, &stderr, wantCode, want)
		}
	}
}

// TestMain_Format: a wrong option for new volumes ends the daemon at its start, not a pod's mount.
func TestMain_Format(t *testing.T) {
	for flag, want := range map[string]string{
		"-format-allocation-unit-size=64K":           "it is not a number of bytes",
		"-format-allocation-unit-size=3000":          "the allocation unit size 3000 is not a power of two from 512 to 2097152",
		"-format-allocation-unit-size=4294967296":    "it is not a number of bytes",
		"-format-file-system=ext4":                   "neither NTFS nor ReFS",
		"-format-label=a/b":                          "has an unprintable character or one of",
		"-format-root-access=everyone":               "the root access is neither users-modify nor a valid access list",
		"-format-root-access=D:(A;OICI;FA;;;BA)":     "the root access does not give SY full access; add (A;OICI;FA;;;SY)",
		"-format-root-access=O:SYD:(A;OICI;FA;;;BA)": "owner, group and audit entries are not supported",
	} {
		var stdout, stderr bytes.Buffer
		code := program().Main([]string{flag}, &stdout, &stderr)
		name, _, _ := strings.Cut(flag, "=")
		if code != daemon.ExitUsage || !strings.Contains(stderr.String(), want) || !strings.Contains(stderr.String(), "flag "+name) {
			t.Errorf("%s: exit code %d, stderr %q; want %d and %q", flag, code, &stderr, daemon.ExitUsage, want)
		}
	}
}

// TestManual writes the reference of the daemon.
func TestManual(t *testing.T) {
	var page strings.Builder
	page.WriteString(`<!-- Generated by go test ./v2/cmd/csi-proxy -run TestManual -update; do not edit. -->

# csi-proxy.exe: flags, exit codes, metrics

    ` + strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(help(t, "-help-all"), "\n", "\n    "), "    \n", "\n")) + `

## Exit codes

| Code | Meaning |
|---|---|
`)
	for _, c := range []struct {
		code    int
		meaning string
	}{
		{daemon.ExitOK, "Stopped on request"},
		{daemon.ExitFailure, "The daemon could not start, or an endpoint failed later"},
		{daemon.ExitUsage, "The command line is invalid. A restart does not help"},
		{daemon.ExitTaken, "Another process owns one of the endpoints, usually another csi-proxy. The message has its process id"},
	} {
		fmt.Fprintf(&page, "| %d | %s |\n", c.code, c.meaning)
	}
	page.WriteString(`
Of a service it is the service-specific exit code: ` + "`sc.exe query csi-proxy`" + ` shows 1066 and this code. A process that was
killed shows 1067.

## Metrics

| Metric | Type | Labels | Meaning |
|---|---|---|---|
`)
	names, err := os.ReadFile("../pkg/daemon/metrics/testdata/names.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(names)) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 4)
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", fields[0], fields[1], strings.Trim(fields[2], "{}"), fields[3])
	}
	page.WriteString(`
And those of the Go runtime and the process, and the original's ` + "`grpc_server_started_total`, `grpc_server_handled_total`" + ` and
` + "`grpc_server_handling_seconds`" + `.
`)
	require.File(t, "../../../docs/daemon.md", page.String(), *update)
}
