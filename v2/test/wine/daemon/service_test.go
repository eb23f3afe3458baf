//go:build windows && wine

package daemon

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/kubernetes-csi/csi-proxy/client"
	fsv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// service is one that is installed.
type service struct {
	*mgr.Service
	t *testing.T
}

// install installs a program as a service, until the end of the test.
func install(t *testing.T, name string, config mgr.Config, executable string, args ...string) service {
	t.Helper()
	manager, err := mgr.Connect()
	require.NoError(t, err)
	t.Cleanup(func() { _ = manager.Disconnect() })
	handle, err := manager.CreateService(name, executable, config, args...)
	require.NoError(t, err)
	s := service{handle, t}
	t.Cleanup(func() {
		_, _ = s.Control(svc.Stop) // it may be stopped
		s.wait(svc.Stopped)
		if err := s.Delete(); err != nil {
			t.Errorf("delete service %s: %v", name, err)
		}
		_ = s.Close()
		// The manager may still have the process of a service that has just stopped.
		eventually(t, "service "+name+" is gone", func() bool {
			left, err := manager.OpenService(name)
			if err == nil {
				_ = left.Close()
			}
			return err != nil
		})
	})
	return s
}

// installDaemon installs the daemon, with a log file.
func installDaemon(t *testing.T, args ...string) (s service, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "csi-proxy.log")
	return install(t, fmt.Sprintf("csi-proxy-%d", os.Getpid()), mgr.Config{StartType: mgr.StartManual}, *program,
		append([]string{"-windows-service", "-v=2", "-log_file=" + log, "-logtostderr=false"}, args...)...), log
}

// start starts the service, and returns a handle of its process.
func (s service) start() windows.Handle {
	s.t.Helper()
	require.NoError(s.t, s.Start())
	status := s.wait(svc.Running)
	process, err := windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_TERMINATE, false, status.ProcessId)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { windows.CloseHandle(process) })
	return process
}

func (s service) stop() {
	s.t.Helper()
	if _, err := s.Control(svc.Stop); err != nil {
		s.t.Fatal(err)
	}
}

// wait waits for a state.
func (s service) wait(state svc.State) (status svc.Status) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("service %s comes to state %d", s.Name, state), func() bool {
		var err error
		if status, err = s.Query(); err != nil {
			s.t.Fatal(err)
		}
		return status.State == state
	})
	return status
}

// wantStopped waits for the end of a service without an error. When it counts as stopped its
// pipes are free; its process is as good as gone.
func (s service) wantStopped(process windows.Handle) {
	s.t.Helper()
	if status := s.wait(svc.Stopped); status.Win32ExitCode != 0 {
		s.t.Errorf("it has stopped as %+v", status)
	}
	wantPipesFree(s.t)
	if event, err := windows.WaitForSingleObject(process, uint32(timeLimit.Milliseconds())); event != windows.WAIT_OBJECT_0 {
		s.t.Errorf("its process does not end: %#x, %v", event, err)
	}
}

// metricsAddress is the address that the daemon got when it asked for any: the ports of Wine are those of the
// machine, with all that runs there. It waits for the line of the log.
func metricsAddress(t *testing.T, log string) (address string) {
	t.Helper()
	eventually(t, "the log has the address of the metrics", func() bool {
		text, _ := os.ReadFile(log) // it may come later
		found := servingMetrics.FindSubmatch(text)
		if found != nil {
			address = string(found[1])
		}
		return found != nil
	})
	return address
}

var servingMetrics = regexp.MustCompile(`"Serving metrics" address="(.+?)"`)

// TestService_Watched: the life of the service, with other flags, as those who watch over it see it. Package csi-proxy has tests of a
// second one, of crashes, and of flags that are wrong.
func TestService_Watched(t *testing.T) {
	const group = fsv1.GroupName
	s, log := installDaemon(t, "-metrics-bind-address=127.0.0.1:0", "-api-groups="+group+"/v1", "-stop-timeout=5s")
	process := s.start()
	for _, e := range grpcapi.Endpoints() {
		if e.Group == group && e.Version == "v1" {
			wantServing(t, e)
		} else if conn, err := winio.DialPipe(client.PipePath(e.Group, version(t, e)), nil); err == nil {
			conn.Close()
			t.Errorf("%s is served", e.Name())
		}
	}
	wantWork(t, connect(t), `\watched`)
	address := metricsAddress(t, log)
	for path, want := range map[string]string{
		"/healthz": "ok",
		"/readyz":  "ok",
		"/metrics": `csi_proxy_requests_total{code="OK",group="filesystem",method="Mkdir",version="v1"} 1`,
	} {
		response, err := http.Get("http://" + address + path)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !slices.Contains(strings.Split(string(body), "\n"), want) {
			t.Errorf("%s answers %s, %v, want a line %s:\n%s", path, response.Status, err, want, body)
		}
	}
	s.stop()
	s.wantStopped(process)
	text, err := os.ReadFile(log)
	first, _, _ := strings.Cut(string(text), "\n")
	for _, part := range []string{`"Starting"`, "version=", "-api-groups=" + group, "sanPolicy="} {
		if !strings.Contains(first, part) {
			t.Errorf("the first line of the log has no %s: %v\n%s", part, err, first)
		}
	}
}
