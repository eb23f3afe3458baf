package installation_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/installation"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/scm/scmtest"
)

// at once is time.After for tests.
func atOnce(time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	c <- time.Time{}
	return c
}

func installer(m *scmtest.Manager) *installation.Installer {
	return &installation.Installer{
		Manager: m, Name: "csi-proxy", After: atOnce,
		Check:    func(context.Context) []endpoint.Health { return nil },
		Progress: func(string) {},
	}
}

func TestInstall_Twice(t *testing.T) {
	m := scmtest.New()
	created, err := installer(m).Install(installation.Options{Binary: `C:\Program Files\csi-proxy.exe`})
	if err != nil || !created {
		t.Fatal(created, err)
	}
	want := scm.Config{
		Command:     `"C:\Program Files\csi-proxy.exe" -windows-service -log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false -v=2`,
		Start:       scm.Delayed,
		DisplayName: "CSI Proxy",
		Description: "Performs privileged storage operations for CSI drivers on this node.",
	}
	if m.Service.Settings != want {
		t.Errorf("got %+v, want %+v", m.Service.Settings, want)
	}
	if r := m.Service.Restarts; r.Restart != 10*time.Second || r.Reset != 24*time.Hour || !r.OnErrors {
		t.Errorf("got recovery %+v", r)
	}
	if m.Service.Preshutdown != 30*time.Second || !m.Events["csi-proxy"] {
		t.Errorf("got preshutdown %s, events %v", m.Service.Preshutdown, m.Events)
	}
	created, err = installer(m).Install(installation.Options{})
	if err != nil || created || m.Service.Configured != 0 {
		t.Errorf("again: created %v, written %d times, %v", created, m.Service.Configured, err)
	}
}

// TestInstall_KeepsFlags: what operators wrote stays, in the command lines that are in use.
func TestInstall_KeepsFlags(t *testing.T) {
	for before, want := range map[string]string{
		`C:\k\csi-proxy.exe -log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false -windows-service --v=4`: `"C:\k\csi-proxy.exe" -log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false -windows-service --v=4`,
		`"C:\my dir\csi-proxy.exe" --windows-service=true -v=2`:                                                     `"C:\my dir\csi-proxy.exe" --windows-service=true -v=2`,
		`C:\my dir\csi-proxy.exe -v=2`: `"C:\my dir\csi-proxy.exe" -windows-service -v=2`,
		`csi-proxy`:                    `"csi-proxy" -windows-service`,
	} {
		m := scmtest.New()
		_, _ = m.Create("csi-proxy", scm.Config{Command: before, Start: scm.Manual})
		if _, err := installer(m).Install(installation.Options{}); err != nil {
			t.Fatal(err)
		}
		if got := m.Service.Settings; got.Command != want || got.Start != scm.Delayed {
			t.Errorf("%s: got %+v, want %s", before, got, want)
		}
	}
}

func TestInstall_ReplacesWhatIsAskedFor(t *testing.T) {
	m := scmtest.New()
	_, _ = m.Create("csi-proxy", scm.Config{Command: `C:\old.exe -windows-service -v=2`})
	if _, err := installer(m).Install(installation.Options{Binary: `C:\new.exe`}); err != nil {
		t.Fatal(err)
	}
	if got, want := m.Service.Settings.Command, `"C:\new.exe" -windows-service -v=2`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := installer(m).Install(installation.Options{Flags: []string{`-log_file=C:\my logs\`, `-x="`}}); err != nil {
		t.Fatal(err)
	}
	if got, want := m.Service.Settings.Command, `"C:\new.exe" -windows-service "-log_file=C:\my logs\\" "-x=\""`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestInstall_Fails(t *testing.T) {
	if _, err := installer(scmtest.New()).Install(installation.Options{}); err == nil {
		t.Error("installed without a program")
	}
	for _, method := range []string{"Open", "Config", "SetConfig", "SetRecovery", "SetPreshutdown", "RegisterEvents"} {
		m := scmtest.New()
		_, _ = m.Create("csi-proxy", scm.Config{Command: "old"})
		m.Fail[method] = errors.New("failed")
		if _, err := installer(m).Install(installation.Options{}); !errors.Is(err, m.Fail[method]) {
			t.Errorf("%s: got %v", method, err)
		}
	}
}

func TestStartAndStop_Twice(t *testing.T) {
	m := scmtest.New()
	_, _ = m.Create("csi-proxy", scm.Config{})
	i := installer(m)
	for range 2 {
		if err := i.Start(t.Context()); err != nil || m.Service.Now.State != scm.Running {
			t.Errorf("start: %v, %v", m.Service.Now, err)
		}
	}
	state, err := i.Status(t.Context())
	if err != nil || state.State != "running" || state.PID != uint32(os.Getpid()) || state.Restarts {
		t.Errorf("status: %+v, %v", state, err)
	}
	for range 2 {
		if err := i.Stop(t.Context()); err != nil || m.Service.Now.State != scm.Stopped {
			t.Errorf("stop: %v, %v", m.Service.Now, err)
		}
	}
	if err := installer(scmtest.New()).Start(t.Context()); !errors.Is(err, scm.ErrNotInstalled) {
		t.Errorf("start of nothing: %v", err)
	}
}

// TestStart_EndsAgain: a service that cannot start is an error with its exit code.
func TestStart_EndsAgain(t *testing.T) {
	m := scmtest.New()
	_, _ = m.Create("csi-proxy", scm.Config{})
	m.Service.OnStart = func() { m.Service.Now = scm.Status{State: scm.Stopped, ExitCode: 3} }
	if err := installer(m).Start(t.Context()); err == nil {
		t.Error("no error")
	}
}

func TestStop_InTime(t *testing.T) {
	m := scmtest.New()
	_, _ = m.Create("csi-proxy", scm.Config{})
	m.Service.Now.State = scm.Running
	m.Service.OnStop = func() { m.Service.Now.State = scm.StopPending } // for ever
	ctx, cancel := context.WithCancel(t.Context())
	i := installer(m)
	i.After = func(time.Duration) <-chan time.Time { cancel(); return nil }
	if err := i.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestUninstall_Twice(t *testing.T) {
	m := scmtest.New()
	_, _ = m.Create("csi-proxy", scm.Config{})
	m.Service.Now.State = scm.Running
	m.Events["csi-proxy"] = true
	for _, want := range []bool{true, false} {
		removed, err := installer(m).Uninstall(t.Context())
		if err != nil || removed != want || m.Service != nil || len(m.Events) > 0 {
			t.Errorf("removed %v, want %v: %v", removed, want, err)
		}
	}
}

func TestLogFile(t *testing.T) {
	for command, want := range map[string]string{
		`C:\k\csi-proxy.exe -log_file=C:\x.log -v=2`: `C:\x.log`,
		`"C:\k k\csi-proxy.exe" --log_file C:\x.log`: `C:\x.log`,
		`csi-proxy.exe "-log_file=C:\x.log"`:         `C:\x.log`,
		`csi-proxy.exe -v=2`:                         ``,
	} {
		if got := installation.LogFile(command); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}
