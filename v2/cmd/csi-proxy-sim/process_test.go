//go:build unix

// Signals to a process and Unix sockets are what is tested here.

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/client"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	fsv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestMain lets the test binary play the program, so that it is tested as a process: its
// signals, its exit code, its sockets.
func TestMain(m *testing.M) {
	if os.Getenv("CSI_PROXY_SIM_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// sim is a running simulator.
type sim struct {
	t      testing.TB
	cmd    *exec.Cmd
	output *bytes.Buffer
}

func command(t testing.TB, args ...string) *sim {
	t.Helper()
	s := &sim{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0], args...), output: &bytes.Buffer{}}
	s.cmd.Env = append(os.Environ(), "CSI_PROXY_SIM_TEST_MAIN=1")
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	return s
}

// exit runs the program to its end.
func (s *sim) exit() (code int, output string) {
	s.t.Helper()
	if err := s.cmd.Run(); err != nil && s.cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return s.cmd.ProcessState.ExitCode(), s.output.String()
}

// timeLimit is far longer than anything here takes, even on a busy machine.
const timeLimit = 2 * time.Minute

// connect waits until the simulator answers. A socket takes connections before the others exist; when one
// answers, all do.
func connect(t testing.TB, dir string) *fsv1.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	c, err := fsv1.New(ctx, client.WithWait(), client.WithPipePath(filepath.Join(dir, "csi-proxy-filesystem-v1.sock")))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.IsSymlink(ctx, &filesystemv1.IsSymlinkRequest{Path: `C:\var\lib\kubelet`}, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestProcess_KilledAndRestarted: the sockets of a killed simulator are replaced, the
// client that was connected finds the new one by itself, and an interrupt ends cleanly.
func TestProcess_KilledAndRestarted(t *testing.T) {
	dir := serve.SocketDir(t)
	first := command(t, "-socket-dir", dir)
	require.NoError(t, first.cmd.Start())
	c := connect(t, dir)
	require.NoError(t, first.cmd.Process.Kill())
	_ = first.cmd.Wait() // killed, as we wanted
	if left, _ := filepath.Glob(dir + "/*.sock"); len(left) != 23 {
		t.Fatalf("a killed simulator leaves %d sockets, want 23", len(left))
	}

	second := command(t, "-socket-dir", dir, "--v=2")
	require.NoError(t, second.cmd.Start())
	connect(t, dir) // waits until it serves
	for deadline := time.Now().Add(timeLimit); ; {
		response, err := c.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: `C:\var\lib\kubelet`})
		if err == nil && response.Exists {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the old client does not find the new server: %v", err)
		}
	}

	third := command(t, "-socket-dir", dir)
	if code, output := third.exit(); code != daemon.ExitTaken || !strings.Contains(output, "another server") {
		t.Errorf("a third instance: exit code %d\n%s", code, output)
	}

	require.NoError(t, second.cmd.Process.Signal(syscall.SIGINT))
	if err := second.cmd.Wait(); err != nil {
		t.Errorf("after an interrupt: %v\n%s", err, second.output)
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if log := second.output.String(); strings.Count(log, `"Request"`) == 0 {
		t.Errorf("no request in the log at -v=2:\n%s", log)
	}
}

func TestProcess_Exits(t *testing.T) {
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "file.yaml")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	dir := serve.SocketDir(t)
	for name, c := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"help":                      {[]string{"--help"}, daemon.ExitOK, []string{"emulated Windows node", "-model", "-api-groups", "-socket-dir", "-files", "-v value", "default", "-help-all"}},
		"all flags":                 {[]string{"-help-all"}, daemon.ExitOK, []string{"-require-privacy", "-vmodule"}},
		"version":                   {[]string{"-version"}, daemon.ExitOK, []string{"csi-proxy-sim "}},
		"unknown flag":              {[]string{"-nonsense"}, daemon.ExitUsage, []string{"-nonsense", "-help"}},
		"argument":                  {[]string{"serve"}, daemon.ExitUsage, []string{`"serve"`}},
		"unknown group":             {[]string{"-api-groups", "disk,nonsense"}, daemon.ExitUsage, []string{`"nonsense"`, "disk/v1", "volume/v2alpha1"}},
		"empty group":               {[]string{"-api-groups", "disk,"}, daemon.ExitUsage, []string{"empty entry"}},
		"metrics without a port":    {[]string{"-metrics-bind-address=localhost"}, daemon.ExitUsage, []string{"-metrics-bind-address", "127.0.0.1:"}},
		"metrics on a wrong host":   {[]string{"-metrics-bind-address=999.0.0.1:80"}, daemon.ExitFailure, []string{"serve metrics", "999.0.0.1"}},
		"a service":                 {[]string{"-windows-service"}, daemon.ExitUsage, []string{"-windows-service"}},
		"no time to stop":           {[]string{"-stop-timeout=0s"}, daemon.ExitUsage, []string{"-stop-timeout"}},
		"too little memory":         {[]string{"-memory-limit=1MiB"}, daemon.ExitUsage, []string{"-memory-limit", "at least 32MiB"}},
		"relative working dir":      {[]string{"-working-dir", "var"}, daemon.ExitUsage, []string{"working directory", "not an absolute Windows path"}},
		"a whole drive":             {[]string{"-working-dir", `C:\`}, daemon.ExitUsage, []string{`working directory C:\ is the root of a drive`, "-allow-unsafe-working-dirs"}},
		"the kubelet in Windows":    {[]string{"-kubelet-path", `c:\windows\System32`}, daemon.ExitUsage, []string{"working directory", "-allow-unsafe-working-dirs"}},
		"unknown preset":            {[]string{"-preset", "mars"}, daemon.ExitUsage, []string{`"mars"`, "default"}},
		"missing model":             {[]string{"-model", "/no/such/file"}, daemon.ExitUsage, []string{"-model", "/no/such/file"}},
		"malformed model":           {[]string{"-model", file("volumes: []\nfilez: []\n")}, daemon.ExitUsage, []string{"file.yaml", "line 2", "filez"}},
		"model with a bad value":    {[]string{"-model", file("volumes:\n  - id: 1\n    letter: CC\n")}, daemon.ExitUsage, []string{"line 2", "volumes[0].id"}},
		"malformed faults":          {[]string{"-faults", file("faults:\n  - call: Nonsense\n    error: 5\n")}, daemon.ExitUsage, []string{"file.yaml", "line 2", "faults[0].call", "Nonsense"}},
		"files on drives":           {[]string{"-files", "drives"}, daemon.ExitUsage, []string{"-files", "Windows", "./drives"}},
		"files of another user":     {[]string{"-files", filepath.Dir(file("thesis"))}, daemon.ExitUsage, []string{"-files", "not empty", "choose another"}},
		"files below a file":        {[]string{"-files", "/dev/null/x"}, daemon.ExitUsage, []string{"-files", "/dev/null"}},
		"socket dir below a file":   {[]string{"-socket-dir", "/dev/null/x"}, daemon.ExitFailure, []string{"endpoint disk/v1alpha1", "/dev/null"}},
		"socket dir of a long name": {[]string{"-socket-dir", dir + strings.Repeat("/x", 60)}, daemon.ExitFailure, []string{"107"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, output := command(t, append([]string{"-socket-dir", dir}, c.args...)...).exit()
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, part := range c.want {
				if !strings.Contains(output, part) {
					t.Errorf("the output does not mention %s:\n%s", part, output)
				}
			}
			if strings.Contains(output, "goroutine") {
				t.Errorf("a stack for the user:\n%s", output)
			}
		})
	}
}

// TestProcess_Faults: what the fault file says reaches the clients.
func TestProcess_Faults(t *testing.T) {
	dir := serve.SocketDir(t)
	faults := filepath.Join(t.TempDir(), "faults.yaml")
	require.NoError(t, os.WriteFile(faults, []byte("faults:\n  - {call: FileInfo, object: '*\\broken', error: 1117}\n"), 0o600))
	s := command(t, "-socket-dir", dir, "-faults", faults)
	require.NoError(t, s.cmd.Start())
	c := connect(t, dir)
	_, err := c.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: `C:\var\lib\kubelet\broken`})
	if err == nil || !strings.Contains(err.Error(), "1117") {
		t.Errorf("got %v, want Windows error 1117", err)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, s.output)
	}
}

// TestProcess_Metrics: requests are counted, and the health is served.
func TestProcess_Metrics(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := probe.Addr().String()
	probe.Close()
	dir := serve.SocketDir(t)
	s := command(t, "-socket-dir", dir, "-metrics-bind-address", address)
	require.NoError(t, s.cmd.Start())
	c := connect(t, dir)
	if _, err := c.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: `C:\var\lib\kubelet`}); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(timeLimit); ; { // the other endpoints may still be on their way
		if code, _ := get(t, address, "/readyz"); code == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not become ready")
		}
	}
	_, metrics := get(t, address, "/metrics")
	for _, line := range []string{
		`csi_proxy_requests_total{code="OK",group="filesystem",method="PathExists",version="v1"} 1`,
		`csi_proxy_build_info{`,
		`go_goroutines `,
	} {
		if !strings.Contains(metrics, "\n"+line) {
			t.Errorf("there is no line %s in\n%s", line, metrics)
		}
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, s.output)
	}
	log := s.output.String()
	if strings.Contains(log, "password") {
		t.Errorf("a warning about a loopback address:\n%s", log)
	}
	if !strings.Contains(log, "Ready on the sockets in "+dir) || !strings.Contains(log, "csi-proxyctl node --endpoint-dir "+dir) {
		t.Errorf("no line that says where it is ready and what to type next:\n%s", log)
	}
}

func get(t *testing.T, address, path string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}
