package scm_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// connect opens the service manager of this machine. The tests need an administrator and
// create services, so they run only on request.
func connect(t *testing.T) (manager scm.Manager, name string) {
	t.Helper()
	if os.Getenv("CSI_PROXY_TEST_SERVICE") == "" {
		t.Skip("CSI_PROXY_TEST_SERVICE is not set: services would be installed on this machine")
	}
	manager, err := scm.Connect()
	require.NoError(t, err)
	t.Cleanup(manager.Close)
	return manager, fmt.Sprintf("csi-proxyctl-test-%d", os.Getpid())
}

// tolerate ignores settings that Wine does not have.
func tolerate(t *testing.T, what string, err error) {
	t.Helper()
	if errors.Is(err, scm.ErrUnsupported) {
		t.Logf("%s: %v", what, err)
	} else if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// TestService installs, changes and removes a service without starting it.
func TestService(t *testing.T) {
	manager, name := connect(t)
	if _, err := manager.Open(name); !errors.Is(err, scm.ErrNotInstalled) {
		t.Fatalf("open what is not there: %v", err)
	}
	want := scm.Config{Command: `"C:\no such dir\daemon.exe" -windows-service "-x=a b"`, Start: scm.Manual, DisplayName: "A test", Description: "For a moment only."}
	service, err := manager.Create(name, want)
	tolerate(t, "create", err)
	t.Cleanup(func() {
		service.Close()
		if _, err := manager.Open(name); !errors.Is(err, scm.ErrNotInstalled) {
			t.Errorf("it is still there: %v", err)
		}
	})
	t.Cleanup(func() {
		if err := service.Delete(); err != nil {
			t.Error(err)
		}
	})
	for _, start := range []scm.StartType{scm.Delayed, scm.Automatic, scm.Disabled, scm.Manual} {
		want.Start = start
		tolerate(t, "configure", service.SetConfig(want))
		if got, err := service.Config(); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	recovery := scm.Recovery{Restart: 10 * time.Second, Reset: 24 * time.Hour, OnErrors: true}
	set := service.SetRecovery(recovery)
	tolerate(t, "set recovery", set)
	if got, err := service.Recovery(); set == nil && (err != nil || got != recovery) {
		t.Errorf("got recovery %+v, %v", got, err)
	}
	for _, sid := range []bool{true, false} {
		set := service.SetServiceSID(sid)
		tolerate(t, "set service SID", set)
		got, err := service.ServiceSID()
		tolerate(t, "service SID", err)
		if set == nil && err == nil && got != sid {
			t.Errorf("got service SID %v, want %v", got, sid)
		}
	}
	if status, err := service.Status(); err != nil || status.State != scm.Stopped || status.PID != 0 {
		t.Errorf("got %+v, %v", status, err)
	}
	if names, err := service.Dependents(); err != nil || len(names) > 0 {
		t.Errorf("got %v, %v", names, err)
	}
	require.NoError(t, service.Stop(), "stop what does not run:")
	require.NoError(t, service.Kill(), "end the process of what does not run:")
	if err := service.Start(); err == nil {
		t.Error("a program that does not exist was started")
	}
}

func TestEvents_Twice(t *testing.T) {
	manager, name := connect(t)
	for _, change := range []func(string) error{manager.RegisterEvents, manager.RegisterEvents, manager.RemoveEvents, manager.RemoveEvents} {
		require.NoError(t, change(name))
	}
}
