package main

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon"
)

func TestMain_Help(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := program().Main([]string{"--help"}, &stdout, &stderr); code != daemon.ExitOK || stderr.Len() > 0 {
		t.Errorf("exit code %d, stderr %q", code, &stderr)
	}
	for _, flag := range []string{"-kubelet-path", "-working-dir", "-api-groups", "-pipe-security-descriptor", "-stop-timeout", "-format-existing", "-allowed-services", "-version", "-v ", "-log_file", "-logtostderr"} {
		if !strings.Contains(stdout.String(), flag) {
			t.Errorf("the help does not mention %s", flag)
		}
	}
}

func TestMain_ElsewhereThanOnWindows(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this is Windows")
	}
	var stdout, stderr bytes.Buffer
	code := program().Main([]string{"-v=4", "--kubelet-path", `D:\kubelet`}, &stdout, &stderr)
	if code != daemon.ExitFailure || !strings.Contains(stderr.String(), "csi-proxy-sim") || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("exit code %d, stderr %q; want one sentence that names csi-proxy-sim", code, &stderr)
	}
}

func TestMain_AllowedServices(t *testing.T) {
	for value, want := range map[string]string{
		"kubelet":       `allowed service "kubelet": csi-proxy never starts or stops it`,
		"*,RPCSS":       `allowed service "RPCSS": csi-proxy never starts or stops it`,
		"MSiSCSI,,vds":  `allowed service "": it is empty`,
		`MSiSCSI,a\b`:   `it contains a slash or a backslash`,
		"MSiSCSI, vds ": "csi-proxy-sim", // it is in order, and the daemon gets as far as it can here
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
