package installation_test

import (
	"context"
	"errors"
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
)

// machine is a node whose daemon is a file and serves if its content is healthy.
type machine struct {
	*scmtest.Manager
	binary, next string
	lingering    int // checks during which pipes stay owned after a stop
	steps        []string
}

func newMachine(t *testing.T, next string) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{Manager: scmtest.New(), binary: filepath.Join(dir, "csi-proxy.exe"), next: filepath.Join(dir, "csi-proxy-v2.exe")}
	for file, content := range map[string]string{m.binary: "healthy old", m.next: next} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	}
	_, _ = m.Create("csi-proxy", scm.Config{Command: `"` + m.binary + `" -windows-service`})
	m.Service.Now = scm.Status{State: scm.Running}
	return m
}

func (m *machine) content(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(content)
}

func (m *machine) check(context.Context) []endpoint.Health {
	serves := m.Service.Now.State == scm.Running
	if !serves && m.lingering > 0 {
		m.lingering--
		serves = true
	}
	content, _ := os.ReadFile(m.binary)
	all := []endpoint.Health{}
	for _, name := range endpoint.All() {
		h := endpoint.Health{Name: name, State: endpoint.Missing}
		half := strings.HasPrefix(string(content), "half") && name.Group != "disk"
		if serves && (half || strings.HasPrefix(string(content), "healthy")) {
			h.State = endpoint.Serving
		}
		all = append(all, h)
	}
	return all
}

func (m *machine) upgrade(ctx context.Context) error {
	i := installer(m.Manager)
	i.Check = m.check
	i.Progress = func(text string) { m.steps = append(m.steps, strings.Fields(text)[0]) }
	return i.Upgrade(ctx, m.next)
}

func TestUpgrade(t *testing.T) {
	m := newMachine(t, "healthy new")
	m.lingering = 3
	require.NoError(t, m.upgrade(t.Context()))
	if got, old := m.content(t, m.binary), m.content(t, m.binary+".old"); got != "healthy new" || old != "healthy old" {
		t.Errorf("the program is %q, the old one %q", got, old)
	}
	if m.Service.Now.State != scm.Running || m.lingering != 0 {
		t.Errorf("the service is %s; pipes stay owned for %d checks", m.Service.Now.State, m.lingering)
	}
	if want := []string{"copying", "stopping", "waiting", "replacing", "starting", "waiting"}; !slices.Equal(m.steps, want) {
		t.Errorf("got steps %v, want %v", m.steps, want)
	}
	require.NoError(t, os.WriteFile(m.next, []byte("healthy newer"), 0o600))
	if err := m.upgrade(t.Context()); err != nil || m.content(t, m.binary) != "healthy newer" || m.content(t, m.binary+".old") != "healthy new" {
		t.Errorf("a second upgrade: %v", err)
	}
	if _, err := os.Stat(m.binary + ".new"); err == nil {
		t.Error("a copy is left behind")
	}
}

// TestUpgrade_RollsBack: if the new program has any problem, the old one runs again.
func TestUpgrade_RollsBack(t *testing.T) {
	tests := map[string]struct {
		next  string
		spoil func(m *machine)
	}{
		"it serves nothing": {next: "ill"},
		"it serves less":    {next: "half"},
		"it ends again at once": {next: "healthy new", spoil: func(m *machine) {
			m.Service.OnStart = func() {
				if content, _ := os.ReadFile(m.binary); string(content) == "healthy new" {
					m.Service.Now = scm.Status{State: scm.Stopped, ExitCode: 2}
				}
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, test.next)
			if test.spoil != nil {
				test.spoil(m)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			i := installer(m.Manager)
			looks := 0
			i.Check = func(ctx context.Context) []endpoint.Health {
				if looks++; looks > 20 {
					cancel() // as after a timeout
				}
				return m.check(ctx)
			}
			err := i.Upgrade(ctx, m.next)
			if err == nil || !strings.Contains(err.Error(), "was rolled back") {
				t.Errorf("got %v", err)
			}
			if got := m.content(t, m.binary); got != "healthy old" {
				t.Errorf("the program is %q", got)
			}
			if m.Service.Now.State != scm.Running {
				t.Errorf("the service is %s", m.Service.Now.State)
			}
		})
	}
}

// TestUpgrade_PipesStayTaken: while another process owns a pipe, the program is not replaced.
func TestUpgrade_PipesStayTaken(t *testing.T) {
	m := newMachine(t, "healthy new")
	m.lingering = 1 << 30
	ctx, cancel := context.WithCancel(t.Context())
	i := installer(m.Manager)
	looks := 0
	i.Check = func(ctx context.Context) []endpoint.Health {
		if looks++; looks > 5 {
			cancel()
		}
		return m.check(ctx)
	}
	i.Progress = func(text string) { m.steps = append(m.steps, strings.Fields(text)[0]) }
	if err := i.Upgrade(ctx, m.next); err == nil || m.content(t, m.binary) != "healthy old" || m.Service.Now.State != scm.Running {
		t.Errorf("got %v, program %q, service %s", err, m.content(t, m.binary), m.Service.Now.State)
	}
	if want := []string{"copying", "stopping", "waiting", "rolling", "starting", "waiting"}; !slices.Equal(m.steps, want) {
		t.Errorf("got steps %v, want %v: nothing is replaced", m.steps, want)
	}
}

// TestUpgrade_OfWhatHangs: the rollback kills a program that hangs.
func TestUpgrade_OfWhatHangs(t *testing.T) {
	for name, spoil := range map[string]func(m *machine){
		"the new one at its start": func(m *machine) {
			m.Service.OnStart = func() {
				if m.content(t, m.binary) == "healthy new" {
					m.Service.Now.State = scm.StartPending
				}
			}
		},
		"the old one at its end": func(m *machine) {
			m.Service.OnStop = func() { m.Service.Now.State = scm.StopPending }
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, "healthy new")
			spoil(m)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			i := installer(m.Manager)
			i.Check = m.check
			pauses := 0
			i.After = func(d time.Duration) <-chan time.Time {
				if pauses++; pauses == 20 {
					interrupt()
					return nil
				}
				return atOnce(d)
			}
			err := i.Upgrade(ctx, m.next)
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "was rolled back") {
				t.Errorf("got %v", err)
			}
			if got := m.content(t, m.binary); got != "healthy old" || m.Service.Now.State != scm.Running || m.Service.Killed != 1 {
				t.Errorf("the program is %q, the service %s, killed %d times", got, m.Service.Now.State, m.Service.Killed)
			}
		})
	}
}

// starts reports whether the service has a program.
func (m *machine) starts(t *testing.T) bool {
	t.Helper()
	return strings.HasPrefix(m.content(t, m.binary), "healthy")
}

// TestUpgrade_PowerCut ends the machine before each change of a file, then repeats the upgrade: there is always a program
// that starts. The new one is healthy or not, so that rolling back is cut too.
func TestUpgrade_PowerCut(t *testing.T) {
	for _, next := range []string{"healthy new", "ill"} {
		for cut := 1; ; cut++ {
			m := newMachine(t, next)
			i, changes := installer(m.Manager), 0
			i.Check = m.check
			i.Change = func(do func() error) error {
				if changes++; changes >= cut {
					return errors.New("the power is off")
				}
				return do()
			}
			err := i.Upgrade(t.Context(), m.next)
			if changes < cut {
				if cut < 6 || (err == nil) != (next != "ill") {
					t.Errorf("%s: %d changes, %v", next, changes, err)
				}
				break
			}
			if !m.starts(t) && m.content(t, m.binary) != next {
				t.Errorf("%s, change %d: the program is %q", next, cut, m.content(t, m.binary))
			}
			require.NoError(t, os.WriteFile(m.next, []byte("healthy newer"), 0o600))
			m.Service.Now.State = scm.Running
			if err := m.upgrade(t.Context()); err != nil || m.content(t, m.binary) != "healthy newer" {
				t.Errorf("%s, change %d: again: %v, the program is %q", next, cut, err, m.content(t, m.binary))
			}
		}
	}
}

// TestUpgrade_HalfDone: an upgrade by an earlier version has left no program, or one of zeros, and the old one beside it.
func TestUpgrade_HalfDone(t *testing.T) {
	for name, content := range map[string]string{"missing": "", "zeros": "\x00\x00\x00"} {
		t.Run(name, func(t *testing.T) {
			for _, next := range []string{"healthy new", "ill"} {
				m := newMachine(t, next)
				require.NoError(t, os.Rename(m.binary, m.binary+".old"))
				require.NoError(t, os.WriteFile(m.binary+".new", []byte("half"), 0o600))
				if content != "" {
					require.NoError(t, os.WriteFile(m.binary, []byte(content), 0o600))
				}
				if got := installation.HalfUpgraded(m.binary); got != m.binary+".old" {
					t.Errorf("the old program is %q", got)
				}
				m.Service.Now.State = scm.Running // so that a program that is ill is rolled back
				err := m.upgrade(t.Context())
				want := map[bool]string{true: "healthy new", false: "healthy old"}[err == nil]
				if got := m.content(t, m.binary); got != want || (err == nil) != (next != "ill") {
					t.Errorf("%s: %v, the program is %q", next, err, got)
				}
				if got := installation.HalfUpgraded(m.binary); got != "" {
					t.Errorf("it is half: %s", got)
				}
			}
		})
	}
}

// TestUpgrade_StopIsRefused: the old program keeps running and is not stopped again.
func TestUpgrade_StopIsRefused(t *testing.T) {
	m := newMachine(t, "healthy new")
	m.Fail["Stop"] = errors.New("access is denied")
	err := m.upgrade(t.Context())
	if !errors.Is(err, m.Fail["Stop"]) || m.content(t, m.binary) != "healthy old" || m.Service.Now.State != scm.Running {
		t.Errorf("got %v, program %q, service %s", err, m.content(t, m.binary), m.Service.Now.State)
	}
}

// TestUpgrade_NothingIsHealthy: the error says that the old program does not answer either.
func TestUpgrade_NothingIsHealthy(t *testing.T) {
	m := newMachine(t, "ill")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	i := installer(m.Manager)
	i.Check = m.check
	i.After = func(d time.Duration) <-chan time.Time {
		if m.content(t, m.binary) == "ill" { // now the old one does not serve either
			cancel()
			if err := os.WriteFile(m.binary+".old", []byte("spoilt"), 0o600); err != nil {
				t.Error(err)
			}
		}
		return atOnce(d)
	}
	err := i.Upgrade(ctx, m.next)
	if err == nil || !strings.Contains(err.Error(), "the old program is not healthy") || m.content(t, m.binary) != "spoilt" {
		t.Errorf("got %v, program %q", err, m.content(t, m.binary))
	}
}

func TestUpgrade_NothingIsStoppedForABadFile(t *testing.T) {
	m := newMachine(t, "")
	for _, file := range []string{m.next, filepath.Dir(m.next), m.next + ".none"} {
		m.next = file
		if err := m.upgrade(t.Context()); err == nil || m.Service.Now.State != scm.Running {
			t.Errorf("%s: %v, the service is %s", file, err, m.Service.Now.State)
		}
	}
}

// TestUpgrade_PlantedCopy: who can create files beside the program plants the file that the upgrade copies to. The copy
// keeps neither that file, whose owner could go on writing to it, nor follows a link.
func TestUpgrade_PlantedCopy(t *testing.T) {
	t.Run("a file", func(t *testing.T) {
		m := newMachine(t, "healthy new")
		planted, err := os.OpenFile(m.binary+".new", os.O_CREATE|os.O_RDWR, 0o777)
		require.NoError(t, err)
		defer planted.Close()
		err = m.upgrade(t.Context())
		_, _ = planted.WriteAt([]byte("EVIL!!!"), 0)
		// On Windows a file that is open cannot be removed: the upgrade ends, and the old program stays.
		if got := m.content(t, m.binary); got != "healthy new" && (err == nil || got != "healthy old") {
			t.Errorf("got %v, and the program is %q", err, got)
		}
	})
	t.Run("a link", func(t *testing.T) {
		m := newMachine(t, "healthy new")
		victim := filepath.Join(t.TempDir(), "victim")
		require.NoError(t, errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.Symlink(victim, m.binary+".new")))
		err := m.upgrade(t.Context())
		if got, bystander := m.content(t, m.binary), m.content(t, victim); got != "healthy new" || bystander != "precious" {
			t.Errorf("got %v, the program is %q, and the file behind the link %q", err, got, bystander)
		}
	})
}

func TestUpgrade_OfAStoppedService(t *testing.T) {
	m := newMachine(t, "ill")
	m.Service.Now.State = scm.Stopped
	if err := m.upgrade(t.Context()); err != nil || m.content(t, m.binary) != "ill" || m.Service.Now.State != scm.Stopped {
		t.Errorf("got %v, the service is %s", err, m.Service.Now.State)
	}
	m.Service = nil
	if err := m.upgrade(t.Context()); !errors.Is(err, scm.ErrNotInstalled) {
		t.Errorf("of no service: %v", err)
	}
}
