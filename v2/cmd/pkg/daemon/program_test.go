package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/service"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// manager stands for the service manager: it runs a service to its end, and notes what it hears.
type manager struct {
	name     string
	stop     time.Duration
	exitCode uint32
	heard    []string
}

func (m *manager) run(s service.Service) (uint32, error) {
	m.name, m.stop = s.Name, s.StopTimeout
	note := func(what string) func() { return func() { m.heard = append(m.heard, what) } }
	err := s.Serve(context.Background(), service.Notify{
		Progress: note("progress"),
		Ready:    note("ready"),
		Warn:     func(text string) { note("warning: " + text)() },
	})
	if err != nil {
		m.exitCode = s.Failed(err)
	}
	return m.exitCode, nil
}

// program is one that can be a service, with a flag, and does what a test wants.
func program(m *manager, serve func(*daemon.Flags, service.Notify) error) daemon.Program {
	return daemon.Program{
		Name:       "program",
		Summary:    "program is for tests.",
		Register:   func(set *flag.FlagSet) { set.String("own", "", "its own") },
		Facts:      func() []any { return []any{"fact", "true"} },
		RunService: m.run,
		Serve: func(_ context.Context, flags *daemon.Flags, notify service.Notify) error {
			return serve(flags, notify)
		},
	}
}

// result is what a run of a program has left.
type result struct {
	code           int
	stdout, stderr string
}

// run runs a program in a directory of its own. The flags of klog are global, so the state is
// restored afterwards.
func run(t *testing.T, p daemon.Program, args ...string) result {
	t.Helper()
	t.Cleanup(klog.CaptureState().Restore)
	t.Chdir(t.TempDir())
	var stdout, stderr bytes.Buffer
	code := p.Main(args, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// quiet keeps the log out of the output of tests.
const quiet = "-log_file=" + os.DevNull

// TestMain_CommandLines: these are in use on nodes, and must work as they are.
func TestMain_CommandLines(t *testing.T) {
	for line, path := range map[string]string{
		`-windows-service -log_file=C:\etc\kubernetes\logs\csi-proxy.log -logtostderr=false`:            `C:\etc\kubernetes\logs\csi-proxy.log`,
		`-log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false -windows-service --v=4`:        `C:\var\log\csi-proxy\csi-proxy.log`,
		`--windows-service=true --log_file C:\x.log --logtostderr=false --own x -alsologtostderr=false`: `C:\x.log`,
	} {
		t.Run(line, func(t *testing.T) {
			m := &manager{}
			got := run(t, program(m, func(_ *daemon.Flags, notify service.Notify) error {
				notify.Progress()
				notify.Ready()
				if on := klog.V(4).Enabled(); on != strings.Contains(line, "--v=4") {
					t.Errorf("level 4 of the log is on: %v", on)
				}
				return nil
			}), strings.Fields(line)...)
			if got != (result{}) {
				t.Errorf("%+v, want success and no word", got)
			}
			if fmt.Sprint(m.heard) != "[progress ready]" || !strings.HasPrefix(m.name, "program ") || m.stop != 20*time.Second {
				t.Errorf("the service manager knows %+v", m)
			}
			log, err := os.ReadFile(path)
			for _, part := range []string{`"Starting" program="program" version=`, `service=true`, `args=["`, `fact="true"`, `"Stopped"`} {
				if !strings.Contains(string(log), part) {
					t.Errorf("%s is not in the log: %s, %v", part, log, err)
				}
			}
		})
	}
}

func TestMain_Fails(t *testing.T) {
	taken := winerr.New(winerr.Exists, "listen on", "x", "another process (pid 4) owns this pipe")
	for name, c := range map[string]struct {
		err  error
		args string
		code int
		want string
	}{
		"at something":        {errors.New("it is broken"), "", daemon.ExitFailure, "program: it is broken\n"},
		"at a value":          {daemon.UsageError{Err: errors.New("-own is odd")}, "", daemon.ExitUsage, "program: -own is odd\nRun 'program -help' for the flags.\n"},
		"at a taken endpoint": {fmt.Errorf("endpoint disk/v1: %w", taken), "", daemon.ExitTaken, "program: endpoint disk/v1: listen on x: another process (pid 4) owns this pipe\n"},
		"at an unknown flag":  {nil, " -nonsense -own x", daemon.ExitUsage, "program: flag provided but not defined: -nonsense\nRun 'program -help' for the flags.\n"},
		"at an argument":      {nil, " serve", daemon.ExitUsage, "program: unexpected argument \"serve\"; only flags are allowed\nRun 'program -help' for the flags.\n"},
		"at a duration":       {nil, " -stop-timeout=-1s", daemon.ExitUsage, "program: -stop-timeout: -1s is not a positive duration\nRun 'program -help' for the flags.\n"},
		"at a number":         {nil, " -log_file_max_backups=-1", daemon.ExitUsage, "program: invalid value \"-1\" for flag -log_file_max_backups: parse error\nRun 'program -help' for the flags.\n"},
		"at too many backups": {nil, " -log_file_max_backups=18446744073709551615", daemon.ExitUsage, "program: -log_file_max_backups=18446744073709551615: at most 1000\nRun 'program -help' for the flags.\n"},
		"at too large a log":  {nil, " -log_file_max_size=17592186044416", daemon.ExitUsage, "program: -log_file_max_size=17592186044416: at most 1048576 MiB\nRun 'program -help' for the flags.\n"},
	} {
		t.Run(name+" in a console", func(t *testing.T) {
			m := &manager{}
			got := run(t, program(m, func(*daemon.Flags, service.Notify) error { return c.err }), strings.Fields(quiet+" -logtostderr=false -stderrthreshold=FATAL"+c.args)...)
			if got != (result{code: c.code, stderr: c.want}) || m.name != "" {
				t.Errorf("%+v, want code %d and %q, and no service", got, c.code, c.want)
			}
		})
		// The flags for the service and its log may stand before or behind what is wrong.
		const log = "-log_file=x.log -logtostderr=false "
		for _, order := range []string{log + "-windows-service%s", log + "%s -windows-service", log + "%s --windows-service=1", "%s -windows-service --logtostderr=0 -log_file x.log"} {
			if !strings.HasSuffix(order, "%s") && name == "at an argument" {
				continue // the flag package stops at an argument
			}
			t.Run(fmt.Sprintf(name+" in a service with "+order, ""), func(t *testing.T) {
				m := &manager{}
				args := strings.Fields("-stderrthreshold=FATAL " + fmt.Sprintf(order, c.args))
				got := run(t, program(m, func(*daemon.Flags, service.Notify) error { return c.err }), args...)
				if got.code != c.code || m.exitCode != uint32(c.code) {
					t.Errorf("%+v, and the manager knows %+v, want code %d", got, m, c.code)
				}
				log, err := os.ReadFile("x.log")
				first, _, _ := strings.Cut(strings.TrimPrefix(c.want, "program: "), "\n")
				if !strings.Contains(strings.ReplaceAll(string(log), `\`, ""), first) {
					t.Errorf("the log has %q, %v, want %q", log, err, first)
				}
			})
		}
	}
}

func TestMain_Panics(t *testing.T) {
	got := run(t, program(&manager{}, func(*daemon.Flags, service.Notify) error { panic("on purpose") }), "-log_file=x.log", "-logtostderr=false", "-stderrthreshold=FATAL")
	if got.code != daemon.ExitFailure || got.stderr != "program: internal error; see the csi-proxy log: panic: on purpose\n" {
		t.Errorf("%+v, want a failure", got)
	}
	if log, err := os.ReadFile("x.log"); !strings.Contains(string(log), "program_test.go") {
		t.Errorf("the log has no stack: %s, %v", log, err)
	}
}

func TestMain_NotStartedByServiceManager(t *testing.T) {
	p := program(&manager{}, func(*daemon.Flags, service.Notify) error { t.Error("it serves"); return nil })
	p.RunService = func(service.Service) (uint32, error) { return 0, service.ErrNotStarted }
	got := run(t, p, "-windows-service")
	if got.code != daemon.ExitUsage || !strings.HasPrefix(got.stderr, "program: -windows-service: ") || !strings.Contains(got.stderr, "omit the flag") {
		t.Errorf("%+v, want a word about the flag", got)
	}
	p.RunService = func(service.Service) (uint32, error) { return 0, errors.New("out of order") }
	if got := run(t, p, "-windows-service"); got.code != daemon.ExitFailure || got.stderr != "program: out of order\n" {
		t.Errorf("%+v, want the failure", got)
	}
}

// TestMain_ServiceWithoutLog: without -logtostderr=false a service has no log at all.
func TestMain_ServiceWithoutLog(t *testing.T) {
	m := &manager{}
	run(t, program(m, func(*daemon.Flags, service.Notify) error { return nil }), "-windows-service", quiet)
	if len(m.heard) != 1 || !strings.Contains(m.heard[0], "-logtostderr=false") {
		t.Errorf("the event log has %q", m.heard)
	}
}

// TestMain_UnsafeDirs: who insists is warned at each start.
func TestMain_UnsafeDirs(t *testing.T) {
	for _, args := range [][]string{
		{`-working-dir=C:\Windows`, "-allow-unsafe-working-dirs"},
		{`-working-dir=D:\data`, "-allow-unsafe-working-dirs"},
		{`-working-dir=C:\Windows`}, // Serve refuses it
	} {
		m := &manager{}
		run(t, program(m, func(*daemon.Flags, service.Notify) error { return nil }), append(args, quiet, "-logtostderr=false", "-windows-service")...)
		if warned := strings.Contains(strings.Join(m.heard, "\n"), `users need: C:\Windows. `); warned != (len(args) == 2 && strings.Contains(args[0], "Windows")) {
			t.Errorf("%q: heard %q", args, m.heard)
		}
	}
}

// TestMain_LogFileFails: it is not a reason not to serve.
func TestMain_LogFileFails(t *testing.T) {
	dir := t.TempDir()
	for _, mode := range []string{"-windows-service=false", "-windows-service"} {
		m, served := &manager{}, false
		got := run(t, program(m, func(*daemon.Flags, service.Notify) error { served = true; return nil }), mode, "-logtostderr=false", "-log_file="+dir)
		if got.code != daemon.ExitOK || !served || !strings.Contains(got.stderr, `"Starting"`) {
			t.Errorf("%s: %+v, want that it serves, with the log on standard error", mode, got)
		}
		if !strings.Contains(got.stderr+strings.Join(m.heard, " "), "Cannot write the log file, will retry: open "+dir) {
			t.Errorf("%s: %+v, %q, want a warning", mode, got, m.heard)
		}
	}
}

func TestMain_LogFileIsExchanged(t *testing.T) {
	got := run(t, program(&manager{}, func(*daemon.Flags, service.Notify) error {
		var writers sync.WaitGroup
		for range 4 {
			writers.Go(func() {
				for range 1200 {
					klog.InfoS("Message", "text", strings.Repeat("x", 1000))
				}
			})
		}
		writers.Wait()
		return nil
	}), "-log_file=x.log", "-logtostderr=false", "-log_file_max_size=1", "-log_file_max_backups=2")
	files, _ := filepath.Glob("x.log*")
	if got.code != daemon.ExitOK || fmt.Sprint(files) != "[x.log x.log.1 x.log.2]" {
		t.Errorf("%+v, and there are %q", got, files)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Size() > 1<<20 {
			t.Errorf("%s: %v, %v, want at most 1 MiB", file, info.Size(), err)
		}
	}
}

// TestMain_LogToStderr: the flag's default is klog's, and stays so.
func TestMain_LogToStderr(t *testing.T) {
	run(t, program(&manager{}, func(*daemon.Flags, service.Notify) error { return nil }), "-log_file=x.log", "-v=0", "-stderrthreshold=FATAL")
	if _, err := os.Stat("x.log"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("with the default of -logtostderr there is a log file, %v", err)
	}
}

func TestMain_Refuses(t *testing.T) {
	p := program(&manager{}, func(*daemon.Flags, service.Notify) error { t.Error("it serves"); return nil })
	p.Refuse = func() error { return errors.New("not here") }
	for _, args := range []string{"", "-windows-service", "-log_file=x.log -logtostderr=false"} {
		if got := run(t, p, strings.Fields(args)...); got != (result{code: daemon.ExitFailure, stderr: "program: not here\n"}) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if got := run(t, p, "-windows-service", "-version"); got.code != daemon.ExitOK || !strings.HasPrefix(got.stdout, "program ") {
		t.Errorf("-version: %+v", got)
	}
	if got := run(t, p, "-help-all"); got.code != daemon.ExitOK || !strings.Contains(got.stdout, "-windows-service") {
		t.Errorf("-help-all: %+v", got)
	}
}
