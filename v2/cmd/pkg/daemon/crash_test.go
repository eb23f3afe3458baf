package daemon_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/service"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestMain_Crash: a crash leaves its trace beside the log, and the one before stays, too. The next run warns of it.
func TestMain_Crash(t *testing.T) {
	const directory = "CSI_PROXY_TEST_CRASH"
	forms := map[string][]string{"console": nil}
	if runtime.GOOS == "windows" { // elsewhere nothing can be a service
		forms["service"] = []string{"-windows-service"}
	}
	m := &manager{}
	runIn := func(dir, form string, serve func(*daemon.Flags, service.Notify) error) result {
		return run(t, program(m, serve), append(forms[form], "-log_file="+filepath.Join(dir, "logs", "x.log"), "-logtostderr=false")...)
	}
	if dir := os.Getenv(directory); dir != "" { // this is the process that crashes
		runIn(dir, filepath.Base(dir), func(*daemon.Flags, service.Notify) error {
			go panic("on purpose")
			select {}
		})
	}
	for form := range forms {
		dir := filepath.Join(t.TempDir(), form)
		log := filepath.Join(dir, "logs", "x.log")
		read := func(name string) string {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Error(err)
			}
			return string(text)
		}
		for range 3 {
			crashing := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMain_Crash$")
			crashing.Env = append(os.Environ(), directory+"="+dir, "TMPDIR="+t.TempDir(), "TMP="+t.TempDir()) // it does not clean up
			if output, err := crashing.CombinedOutput(); err == nil {
				t.Fatalf("it does not crash: %s", output)
			}
			if got := read(log + ".crash"); strings.Count(got, "panic: on purpose") != 1 || !strings.Contains(got, "crash_test.go:") {
				t.Errorf("%s: the trace is %q", form, got)
			}
		}
		got := runIn(dir, form, func(*daemon.Flags, service.Notify) error { return nil })
		warned := got.stderr + strings.Join(m.heard, "\n")
		if want := "An earlier run crashed. Its trace is in " + log + ".crash.1."; strings.Count(warned, want) != 1 || !strings.Contains(read(log), `"An earlier run crashed" trace=`) {
			t.Errorf("%s: the next run warns %q", form, warned)
		}
		if before := read(log + ".crash.1"); strings.Count(before, "panic: on purpose") != 1 {
			t.Errorf("%s: the next run leaves %q", form, before)
		}
		files, err := filepath.Glob(filepath.Join(dir, "logs", "*"))
		if err != nil || len(files) != 2 {
			t.Errorf("%s: there are %q, %v", form, files, err)
		}
	}
}

// TestMain_CrashLink: who plants a link gets no trace of the daemon behind it.
func TestMain_CrashLink(t *testing.T) {
	dir := t.TempDir()
	log, victim := filepath.Join(dir, "x.log"), filepath.Join(dir, "victim")
	for _, content := range []string{"precious", ""} {
		require.NoError(t, os.WriteFile(victim, []byte(content), 0o600))
		require.Link(t, victim, log+".crash")
		got := run(t, program(&manager{}, func(*daemon.Flags, service.Notify) error { return nil }), "-log_file="+log, "-logtostderr=false")
		if !strings.Contains(got.stderr, "A crash would leave no trace: ") {
			t.Errorf("it warns %q", got.stderr)
		}
		text, err := os.ReadFile(victim)
		require.NoError(t, err)
		if string(text) != content {
			t.Errorf("the file behind the link has %q", text)
		}
		require.NoError(t, os.Remove(log+".crash"))
	}
}
