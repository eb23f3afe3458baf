//go:build unix

package command_test

import (
	"archive/zip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/bundle"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm/scmtest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// unzip returns the files of a bundle.
func unzip(t *testing.T, file string) map[string]string {
	t.Helper()
	archive, err := zip.OpenReader(file)
	require.NoError(t, err)
	defer archive.Close()
	files := map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		files[strings.TrimPrefix(f.Name, "support-bundle/")] = string(content)
	}
	return files
}

// brokenWithSecrets is a broken node whose log and command line have secrets and names.
func brokenWithSecrets(t *testing.T) (n *node, services *scmtest.Manager) {
	t.Helper()
	n = startNode(t, presetOf(t, "# preset broken, no disk hangs"))
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `csi_proxy_connections{process="driver.exe"} 1`+"\n")
	}))
	t.Cleanup(metrics.Close)
	logFile := filepath.Join(n.dir, "daemon.log")
	log := strings.Repeat("I1115 an old line that does not fit\n", bundle.MaxPart/30) +
		`I1115 12:00:00.000000    1 edge.go:80] "Request" remotePath="\\\\archive\\media" user="CORP\\alice" password="hunter2" request="{\"token\":\"hunter2\"}"` + "\n" +
		`I1115 12:00:01.000000    1 edge.go:80] "Request" path="C:\\var\\lib\\kubelet\\pods\\acme-pod\\volumes\\kubernetes.io~csi\\pvc-payroll\\mount"` + "\n"
	require.NoError(t, errors.Join(os.WriteFile(logFile, []byte(log), 0o600), os.WriteFile(logFile+".crash.1", []byte("panic: password=hunter2\n"), 0o600)))
	services = scmtest.New()
	service, err := services.Create("csi-proxy", scm.Config{
		Command: `C:\k\csi-proxy.exe -log_file=` + logFile + ` -metrics-bind-address=` + strings.TrimPrefix(metrics.URL, "http://") + ` -proxy-password hunter2 -token=hunter2`,
	})
	require.NoError(t, err)
	service.Close()
	return n, services
}

// TestSupportBundle: the bundle has everything, and no secret.
func TestSupportBundle(t *testing.T) {
	n, services := brokenWithSecrets(t)
	file := filepath.Join(n.dir, "bundle.zip")
	r := runWith(t.Context(), services, n.dir, "", "support-bundle", "--file", file)
	if r.code != command.ExitOK || r.err != "" {
		t.Fatal(r)
	}
	files := unzip(t, file)
	for name, want := range map[string]string{
		"contents.txt": "What looks like a password, key or token is removed.",
		"version.txt":  "win-1\ncsi-proxyctl ",
		"versions.txt": "volume",
		"flags.txt":    "-proxy-password [removed] -token=[removed]",
		"doctor.txt":   "disk 4",
		"node.txt":     "node win-1  WINSIM-NODE-1",
		"node.json":    `"kind": "offline"`,
		"node.html":    "<!doctype html>",
		"log.txt":      `password="[removed]"`,
		"crash.txt":    "panic: password=[removed]",
		"metrics.txt":  "csi_proxy_connections",
	} {
		if !strings.Contains(strings.ToLower(files[name]), strings.ToLower(want)) {
			t.Errorf("%s has no %q: %.300s", name, want, files[name])
		}
		if name != "contents.txt" && !strings.Contains(r.out, "  "+name+" ") {
			t.Errorf("%s is not listed in\n%s", name, r.out)
		}
	}
	for name, text := range files {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s has the secret", name)
		}
		if len(text) > bundle.MaxPart {
			t.Errorf("%s has %d bytes", name, len(text))
		}
	}
	if !strings.Contains(files["log.txt"], "alice") || !strings.HasPrefix(files["log.txt"], "I1115 an old line") {
		t.Error("the log lacks a name, or begins in the middle of a line")
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others can read it", info.Mode(), err)
	}
}

// TestSupportBundle_NoDaemon: without an answer the bundle is written, and says what is missing.
func TestSupportBundle_NoDaemon(t *testing.T) {
	silent := startSilent(t)
	for _, test := range []struct{ dir, timeout string }{{"/none", "1m"}, {silent.dir, "500ms"}} {
		file := filepath.Join(t.TempDir(), "bundle.zip")
		r := run(t.Context(), test.dir, "", "support-bundle", "--file", file, "--timeout", test.timeout)
		if r.code != command.ExitOK {
			t.Fatal(r)
		}
		contents := unzip(t, file)["contents.txt"]
		_, missing, _ := strings.Cut(contents, "Not in the bundle:\n")
		for _, name := range []string{"node.json", "node.txt", "node.html", "log.txt", "metrics.txt", "flags.txt"} {
			if !strings.Contains(missing, "  "+name) {
				t.Errorf("%s is not missing in\n%s", name, contents)
			}
		}
		if !slices.Contains(strings.Split(r.out, "\n"), "Not in the bundle:") {
			t.Error(r.out)
		}
	}
}

// TestSupportBundle_LongLine: of a line that does not fit, nothing is kept, and the bundle says so.
func TestSupportBundle_LongLine(t *testing.T) {
	dir := t.TempDir()
	for name, log := range map[string]string{"with an end": strings.Repeat("x", bundle.MaxPart+1) + "\n", "without": strings.Repeat("x", bundle.MaxPart+1)} {
		logFile := filepath.Join(dir, "log")
		require.NoError(t, os.WriteFile(logFile, []byte(log), 0o600))
		r := run(t.Context(), "/none", "", "support-bundle", "--file", filepath.Join(dir, name), "--log-file", logFile)
		if r.code != command.ExitOK || !strings.Contains(r.out, "the last line has more than 4.0 MiB\n") {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// TestSupportBundle_File: a bundle replaces no file, and never writes through a link. A failure leaves nothing behind.
func TestSupportBundle_File(t *testing.T) {
	dir := t.TempDir()
	other, link := filepath.Join(dir, "other"), filepath.Join(dir, "link.zip")
	require.NoError(t, errors.Join(os.WriteFile(other, []byte("precious"), 0o600), os.Symlink(filepath.Join(dir, "none"), link)))
	for _, file := range []string{other, link, dir} {
		if r := run(t.Context(), "/none", "", "support-bundle", "--file", file); r.code != command.ExitFailure || r.out != "" || !strings.Contains(r.err, "it exists; pass another name") {
			t.Errorf("%s: %v", file, r)
		}
	}
	if content, err := os.ReadFile(other); err != nil || string(content) != "precious" {
		t.Errorf("%q, %v", content, err)
	}
	r := run(t.Context(), "/none", "", "support-bundle", "--file", "-")
	if _, err := zip.NewReader(strings.NewReader(r.out), int64(len(r.out))); err != nil || !strings.HasPrefix(r.err, "In the bundle:\n") {
		t.Errorf("standard output: %v, %s", err, r.err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if r := run(ended, "/none", "", "support-bundle", "--file", filepath.Join(dir, "interrupted.zip")); r.code == command.ExitOK {
		t.Error(r)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v; want two files", entries, err)
	}
}
