package installation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/installation"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm/scmtest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
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
		Access:   func(string) (installation.Access, error) { return installation.Access{Owner: sddl.Administrators}, nil },
	}
}

// file creates a program file.
func file(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("program"), 0o600)))
	return path
}

func TestInstall_Twice(t *testing.T) {
	m := scmtest.New()
	binary := file(t, "Program Files/csi-proxy.exe")
	i := installer(m)
	i.Beside = binary // by default, but not that of the second time
	outcome, err := i.Install(installation.Options{})
	if err != nil || outcome != (installation.Outcome{Created: true}) {
		t.Fatal(outcome, err)
	}
	want := scm.Config{
		Command:     `"` + binary + `" -windows-service -log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false -v=2`,
		Start:       scm.Automatic,
		DisplayName: "CSI Proxy",
		Description: "Performs privileged storage operations for CSI drivers on this node.",
	}
	if m.Service.Settings != want {
		t.Errorf("got %+v, want %+v", m.Service.Settings, want)
	}
	if r := m.Service.Restarts; r.Restart != 10*time.Second || r.Reset != 24*time.Hour || !r.OnErrors {
		t.Errorf("got recovery %+v", r)
	}
	if !m.Service.SID || !m.Events["csi-proxy"] {
		t.Errorf("got service SID %v, events %v", m.Service.SID, m.Events)
	}
	i.Beside = file(t, "csi-proxy.exe")
	outcome, err = i.Install(installation.Options{})
	if err != nil || outcome != (installation.Outcome{}) || m.Service.Configured != 0 {
		t.Errorf("again: %+v, written %d times, %v", outcome, m.Service.Configured, err)
	}
}

// TestInstall_SaysThatARestartIsNeeded: only if the command line or the SID of a running service changes.
func TestInstall_SaysThatARestartIsNeeded(t *testing.T) {
	m := scmtest.New()
	_, _ = m.Create("csi-proxy", scm.Config{Command: `"C:\k\csi-proxy.exe" -windows-service`, Start: scm.Manual})
	for _, test := range []struct {
		state scm.State
		sid   bool
		flags []string
		want  bool
	}{
		{scm.Stopped, false, nil, false},
		{scm.Running, true, nil, false},
		{scm.Running, true, []string{"-v=4"}, true},
		{scm.Stopped, true, []string{"-v=5"}, false},
		{scm.Running, false, nil, true},
	} {
		m.Service.Now.State = test.state
		m.Service.SID = test.sid
		outcome, err := installer(m).Install(installation.Options{Flags: test.flags})
		if err != nil || outcome.Created || outcome.Outdated != test.want {
			t.Errorf("%s, %v, %v: got %+v, %v", test.state, test.sid, test.flags, outcome, err)
		}
		if !m.Service.SID {
			t.Error("it has no SID")
		}
	}
}

// TestInstall_LeavesOutWhatIsNotSupported: it reports and skips the setting.
func TestInstall_LeavesOutWhatIsNotSupported(t *testing.T) {
	for _, method := range []string{"Create", "SetConfig", "SetRecovery", "SetServiceSID"} {
		m := scmtest.New()
		m.Fail[method] = fmt.Errorf("a setting: %w", scm.ErrUnsupported)
		i := installer(m)
		progress := ""
		i.Progress = func(text string) { progress += text }
		for _, options := range []installation.Options{{Binary: file(t, "csi-proxy.exe")}, {Flags: []string{"-v=3"}}} {
			if _, err := i.Install(options); err != nil || m.Service == nil {
				t.Errorf("%s: got %v", method, err)
			}
		}
		if !strings.Contains(progress, "skipped: a setting") {
			t.Errorf("%s: progress %q", method, progress)
		}
	}
	m := scmtest.New()
	_, _ = m.Create("csi-proxy", scm.Config{})
	m.Fail["Recovery"], m.Fail["ServiceSID"] = scm.ErrUnsupported, scm.ErrUnsupported
	if _, err := installer(m).Status(t.Context()); err != nil {
		t.Errorf("status: %v", err)
	}
}

// TestInstall_KeepsFlagsAndStart: the flags of command lines in use stay, and so does the operator's start type.
func TestInstall_KeepsFlagsAndStart(t *testing.T) {
	for before, want := range map[string]string{
		`C:\k\csi-proxy.exe -log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false -windows-service --v=4`: `"C:\k\csi-proxy.exe" -log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false -windows-service --v=4`,
		`"C:\my dir\csi-proxy.exe" --windows-service=true -v=2`:                                                     `"C:\my dir\csi-proxy.exe" --windows-service=true -v=2`,
		`C:\my dir\csi-proxy.exe -v=2`: `"C:\my dir\csi-proxy.exe" -windows-service -v=2`,
		`csi-proxy`:                    `"csi-proxy" -windows-service`,
	} {
		for _, start := range []scm.StartType{scm.Manual, scm.Automatic, scm.Delayed, scm.Disabled} {
			m := scmtest.New()
			_, _ = m.Create("csi-proxy", scm.Config{Command: before, Start: start})
			if _, err := installer(m).Install(installation.Options{}); err != nil {
				t.Fatal(err)
			}
			if got := m.Service.Settings; got.Command != want || got.Start != start {
				t.Errorf("%s, %s: got %+v, want %s", before, start, got, want)
			}
		}
	}
}

// TestInstall_NotInteractive: a service that may use a desktop no longer may.
func TestInstall_NotInteractive(t *testing.T) {
	m := scmtest.New()
	i := installer(m)
	if _, err := i.Install(installation.Options{Binary: file(t, "csi-proxy.exe")}); err != nil || m.Service.Settings.Interactive {
		t.Fatalf("%+v, %v", m.Service.Settings, err)
	}
	m.Service.Settings.Interactive = true
	if state, err := i.Status(t.Context()); err != nil || !state.Interactive || !state.ServiceSID {
		t.Errorf("got %+v, %v", state, err)
	}
	if _, err := i.Install(installation.Options{}); err != nil || m.Service.Settings.Interactive {
		t.Errorf("%+v, %v", m.Service.Settings, err)
	}
}

func TestInstall_ReplacesWhatIsAskedFor(t *testing.T) {
	m := scmtest.New()
	_, _ = m.Create("csi-proxy", scm.Config{Command: `C:\csi-proxy.exe -windows-service -v=2`})
	binary := file(t, "csi-proxy-v2.exe")
	if _, err := installer(m).Install(installation.Options{Binary: binary}); err != nil {
		t.Fatal(err)
	}
	if got, want := m.Service.Settings.Command, `"`+binary+`" -windows-service -v=2`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := installer(m).Install(installation.Options{Flags: []string{`-log_file=C:\my logs\`, `-x="`}}); err != nil {
		t.Fatal(err)
	}
	if got, want := m.Service.Settings.Command, `"`+binary+`" -windows-service "-log_file=C:\my logs\\" "-x=\""`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestInstall_Fails(t *testing.T) {
	if _, err := installer(scmtest.New()).Install(installation.Options{}); err == nil {
		t.Error("installed without a program")
	}
	for _, binary := range []string{"csi-proxy.exe", file(t, "csi-proxy.exe") + ".none", t.TempDir()} {
		m := scmtest.New()
		if _, err := installer(m).Install(installation.Options{Binary: binary}); err == nil || m.Service != nil {
			t.Errorf("installed %s as the program: %v", binary, err)
		}
	}
	for _, method := range []string{"Open", "Config", "SetConfig", "SetRecovery", "ServiceSID", "SetServiceSID", "RegisterEvents"} {
		m := scmtest.New()
		_, _ = m.Create("csi-proxy", scm.Config{Command: "csi-proxy.exe"})
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

// TestStart_EndsAgain: the error has the exit code of a service that cannot start.
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
	if err := i.Stop(ctx); !errors.Is(err, context.Canceled) || m.Service.Killed > 0 {
		t.Errorf("got %v, killed %d times", err, m.Service.Killed)
	}
}

// TestStartAndStop_WhilePending: a pending change ends first.
func TestStartAndStop_WhilePending(t *testing.T) {
	for _, state := range []scm.State{scm.StartPending, scm.StopPending} {
		for want, change := range map[scm.State]func(*installation.Installer, context.Context) error{
			scm.Running: (*installation.Installer).Start, scm.Stopped: (*installation.Installer).Stop,
		} {
			m := scmtest.New()
			_, _ = m.Create("csi-proxy", scm.Config{})
			m.Service.Now.State = state
			if err := change(installer(m), t.Context()); err != nil || m.Service.Now.State != want {
				t.Errorf("from %s: %s, %v, want %s", state, m.Service.Now.State, err, want)
			}
		}
	}
}

// TestStop_OfWhatOthersNeed: the error names the dependents, at once, and nothing stops. On AKS the kubelet is one, so that
// the chart cannot take over.
func TestStop_OfWhatOthersNeed(t *testing.T) {
	for name, change := range map[string]func(*installation.Installer) error{
		"stop":      func(i *installation.Installer) error { return i.Stop(t.Context()) },
		"uninstall": func(i *installation.Installer) error { _, err := i.Uninstall(t.Context()); return err },
		"upgrade":   func(i *installation.Installer) error { return i.Upgrade(t.Context(), "csi-proxy-new.exe") },
	} {
		m := scmtest.New()
		_, _ = m.Create("csi-proxy", scm.Config{Command: "csi-proxy.exe"})
		m.Service.Now.State = scm.Running
		m.Service.Depending = []string{"Kubelet"}
		i := installer(m)
		i.After = func(time.Duration) <-chan time.Time { t.Error("it waits"); return nil }
		if err := change(i); err == nil || !strings.Contains(err.Error(), "sc.exe stop Kubelet") || !strings.Contains(err.Error(), "takeOver.services") || m.Service.Now.State != scm.Running {
			t.Errorf("%s: got %v, the service is %s", name, err, m.Service.Now.State)
		}
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
		`C:\k\csi-proxy.exe -log_file=C:\x.log -v=2`:                `C:\x.log`,
		`"C:\k k\csi-proxy.exe" --log_file C:\x.log`:                `C:\x.log`,
		`csi-proxy.exe "-log_file=C:\x.log"`:                        `C:\x.log`,
		`csi-proxy.exe "-log_file=C:\my logs\x.log" -v=2`:           `C:\my logs\x.log`,
		`csi-proxy.exe -log_file="C:\my logs\x.log"`:                `C:\my logs\x.log`,
		`csi-proxy.exe -log_file "C:\my logs\x.log"`:                `C:\my logs\x.log`,
		`csi-proxy.exe "-x=-log_file=C:\no.log" -log_file=C:\x.log`: `C:\x.log`,
		`csi-proxy.exe -log_file=C:\x.log -log_file=C:\y.log`:       `C:\y.log`,
		`csi-proxy.exe -v=2`:                                        ``,
		`csi-proxy.exe -log_file`:                                   ``,
	} {
		if got := installation.LogFile(command); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}

func TestWorkingDirs(t *testing.T) {
	for command, want := range map[string][]string{
		`csi-proxy.exe -v=2`:              {`C:\kubelet`},
		`csi-proxy.exe -working-dir=D:\a`: {`C:\kubelet`, `D:\a`},
		`csi-proxy.exe -kubelet-path=D:\k "-working-dir=D:\a b" --working-dir D:\c`: {`D:\k`, `D:\a b`, `D:\c`},
		`csi-proxy.exe -kubelet-path=D:\k -kubelet-path D:\l`:                       {`D:\l`},
	} {
		if got := installation.WorkingDirs(command, `C:\kubelet`); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}
