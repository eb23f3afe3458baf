package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	fsv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// crashes are the ways in which the test binary, as a service, ends itself. The first argument names one of them, and
// the second the event that it waits for. The exception is that of strict handle checks, in code that is not Go's.
var crashes = map[string]func(){
	"-crash-panic": func() { panic("on purpose") },
	"-crash-exception": func() {
		_, _, _ = windows.NewLazySystemDLL("kernel32.dll").NewProc("RaiseException").Call(uintptr(windows.STATUS_INVALID_HANDLE), 1, 0, 0)
	},
}

// TestMain lets the test binary play the program, for the service manager and for itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && crashes[os.Args[1]] != nil {
		go func() {
			event, err := windows.OpenEvent(windows.SYNCHRONIZE, false, windows.StringToUTF16Ptr(os.Args[2]))
			if err == nil {
				_, err = windows.WaitForSingleObject(event, windows.INFINITE)
			}
			if err != nil {
				panic(err)
			}
			crashes[os.Args[1]]()
		}()
		os.Exit(program().Main(os.Args[3:], os.Stdout, os.Stderr))
	}
	if slices.Contains(os.Args, "-windows-service") || os.Getenv("CSI_PROXY_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// wanted is the variable that enables these tests. They install services and serve on the daemon's
// pipes, so they need an administrator and a machine without a daemon.
const wanted = "CSI_PROXY_TEST_SERVICE"

// timeLimit is for one change of state. Loaded machines are slow to start processes.
const timeLimit = time.Minute

// installed is a service that runs the test binary.
type installed struct {
	t       *testing.T
	service *mgr.Service
	log     string
}

// install installs a service under a name of its own, until the end of the test.
func install(t *testing.T, args ...string) *installed {
	t.Helper()
	return installAs(t, nil, args...)
}

// installAs puts arguments before those of the program.
func installAs(t *testing.T, first []string, args ...string) *installed {
	t.Helper()
	if os.Getenv(wanted) == "" {
		t.Skipf("%s is not set", wanted)
	}
	manager, err := mgr.Connect()
	require.NoError(t, err)
	t.Cleanup(func() { _ = manager.Disconnect() })
	executable, err := os.Executable()
	require.NoError(t, err)
	i := &installed{t: t, log: filepath.Join(t.TempDir(), "logs", "csi-proxy.log")}
	name := fmt.Sprintf("csi-proxy-test-%d-%s", os.Getpid(), strings.ToLower(filepath.Base(t.Name())))
	i.service, err = manager.CreateService(name, executable, mgr.Config{StartType: mgr.StartManual},
		slices.Concat(first, []string{"-windows-service", "-log_file=" + i.log, "-logtostderr=false", "-api-groups=filesystem/v1"}, args)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, _ = i.service.Control(svc.Stop) // it may be stopped
		i.wait(svc.Stopped)
		if err := i.service.Delete(); err != nil {
			t.Error(err)
		}
		_ = i.service.Close()
	})
	return i
}

// wait waits for a state. There is no event for it that Go can wait for.
func (i *installed) wait(state svc.State) svc.Status {
	i.t.Helper()
	for deadline := time.Now().Add(timeLimit); ; time.Sleep(10 * time.Millisecond) {
		status, err := i.service.Query()
		require.NoError(i.t, err)
		if status.State == state {
			return status
		}
		if time.Now().After(deadline) {
			i.t.Fatalf("the service is %+v, want state %d; its log:\n%s", status, state, i.logged())
		}
	}
}

func (i *installed) logged() string {
	text, _ := os.ReadFile(i.log) // none says enough
	return string(text)
}

// ask makes a call to the daemon.
func ask(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	c, err := fsv1.New(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.PathExists(ctx, &filesystemv1.PathExistsRequest{Path: `C:\var\lib\kubelet`})
	return err
}

// TestService is the life of the service, twice: what a stop leaves must not be in the way.
func TestService(t *testing.T) {
	i := install(t, "-v=2")
	for range 2 {
		require.NoError(t, i.service.Start())
		status := i.wait(svc.Running)
		if want := svc.AcceptStop | svc.AcceptShutdown; status.Accepts != want {
			t.Errorf("it accepts %#x, want %#x", status.Accepts, want)
		}
		require.NoError(t, ask(t))
		process, err := windows.OpenProcess(windows.SYNCHRONIZE, false, status.ProcessId)
		require.NoError(t, err)
		wantSecondRefused(t, status.ProcessId)
		if _, err := i.service.Control(svc.Stop); err != nil {
			t.Fatal(err)
		}
		if status := i.wait(svc.Stopped); status.Win32ExitCode != 0 {
			t.Errorf("it has stopped as %+v", status)
		}
		// Every pipe is released before the service counts as stopped; the process follows.
		if err := ask(t); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a call to a stopped daemon: %v", err)
		}
		if event, err := windows.WaitForSingleObject(process, uint32(timeLimit.Milliseconds())); event != windows.WAIT_OBJECT_0 {
			t.Errorf("its process does not end: %#x, %v", event, err)
		}
		windows.CloseHandle(process)
	}
	for _, part := range []string{`"Starting"`, `"Serving"`, `"Request" method="/v1.Filesystem/PathExists"`, `"Stopped"`} {
		if n := strings.Count(i.logged(), part); n != 2 {
			t.Errorf("the log has %s %d times, want 2:\n%s", part, n, i.logged())
		}
	}
}

// wantSecondRefused starts the daemon once more, in a console.
func wantSecondRefused(t *testing.T, pid uint32) {
	t.Helper()
	second := exec.CommandContext(t.Context(), os.Args[0], "-api-groups=filesystem/v1")
	second.Env = append(os.Environ(), "CSI_PROXY_TEST_MAIN=1")
	output, err := second.CombinedOutput()
	if code := second.ProcessState.ExitCode(); code != daemon.ExitTaken || !strings.Contains(string(output), fmt.Sprintf("(pid %d) owns this pipe", pid)) {
		t.Errorf("a second daemon: exit code %d, %v\n%s", code, err, output)
	}
}

// TestService_Crash: a crash is in the file beside the log, whatever code made it, and the next start says so.
func TestService_Crash(t *testing.T) {
	for arg, want := range map[string]string{"-crash-panic": "panic: on purpose", "-crash-exception": "Exception 0xc0000008"} {
		t.Run(arg, func(t *testing.T) {
			if onWine := windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil; onWine && arg == "-crash-exception" {
				t.Skip("Wine ends the process before Go's runtime sees the exception")
			}
			name := fmt.Sprintf(`Global\csi-proxy-test-%d`, os.Getpid())
			event, err := windows.CreateEvent(nil, 0, 0, windows.StringToUTF16Ptr(name)) // for one waiter
			require.NoError(t, err)
			defer windows.CloseHandle(event)
			i := installAs(t, []string{arg, name})
			for range 2 {
				require.NoError(t, i.service.Start())
				i.wait(svc.Running)
				require.NoError(t, windows.SetEvent(event))
				if status := i.wait(svc.Stopped); status.Win32ExitCode == 0 {
					t.Errorf("it has stopped as %+v", status)
				}
				trace, err := os.ReadFile(i.log + ".crash")
				if err != nil || strings.Count(string(trace), want) != 1 || !strings.Contains(string(trace), "goroutine ") {
					t.Errorf("the trace is %q, %v; want %s", trace, err, want)
				}
			}
			if earlier, err := os.ReadFile(i.log + ".crash.1"); err != nil || strings.Count(string(earlier), want) != 1 || !strings.Contains(i.logged(), `"An earlier run crashed"`) {
				t.Errorf("the earlier trace is %q, %v; the log has\n%s", earlier, err, i.logged())
			}
		})
	}
}

func TestService_CannotStart(t *testing.T) {
	for name, c := range map[string]struct {
		arg, want string
	}{
		"flag":       {"-nonsense", "flag provided but not defined: -nonsense"},
		"descriptor": {"-pipe-security-descriptor=O:SY", "it has no access list"},
		"group":      {"-api-groups=nonsense", `\"nonsense\"`},
	} {
		t.Run(name, func(t *testing.T) {
			i := install(t, c.arg)
			// Wine's service manager may see the end of the process before its first answer, and then knows no exit code.
			err := i.service.Start()
			for end := time.Now().Add(timeLimit); errors.Is(err, windows.ERROR_SERVICE_REQUEST_TIMEOUT) && time.Now().Before(end); {
				err = i.service.Start()
			}
			require.NoError(t, err)
			status := i.wait(svc.Stopped)
			if status.Win32ExitCode != uint32(windows.ERROR_SERVICE_SPECIFIC_ERROR) || status.ServiceSpecificExitCode != daemon.ExitUsage {
				t.Errorf("it has stopped as %+v", status)
			}
			if !strings.Contains(i.logged(), c.want) {
				t.Errorf("the log does not have %s:\n%s", c.want, i.logged())
			}
		})
	}
}
