//go:build windows && wine

package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLogs_Rotate: the log is renamed when it is full, while the daemon writes it.
func TestLogs_Rotate(t *testing.T) {
	log := filepath.Join(t.TempDir(), "logs", "csi-proxy.log")
	daemon := start(t, "-v=2", "-log_file="+log, "-logtostderr=false", "-log_file_max_size=1", "-log_file_max_backups=2")
	cs := call(t.Context(), connect(t), 32, false)
	defer cs.Wait()
	defer cs.stop()
	eventually(t, "the second backup is made", func() bool {
		_, err := os.Stat(log + ".2")
		return err == nil
	})
	cs.stop()
	cs.Wait()
	daemon.kill() // or it writes of clients that went away, while we look
	// The kill can come in a rotation: after the log became .0, before the new one is made or has a line, or
	// before .0 became .1. The next start goes on from there (TestFile_KilledWhileItExchanged).
	files, _ := filepath.Glob(log + "*")
	files = slices.DeleteFunc(files, func(name string) bool { return name == log+".crash" }) // it is empty
	backups := slices.DeleteFunc(slices.Clone(files), func(name string) bool { return name == log })
	finished, begun := []string{log + ".1", log + ".2"}, log+".0"
	if !slices.Equal(backups, finished) && (len(backups) < 2 || backups[0] != begun || !slices.Contains(backups, log+".2")) {
		t.Errorf("the backups are %q, want %q, or some of these and %q", backups, finished, begun)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		whole := strings.HasSuffix(string(text), "\n") || name == log && len(text) == 0
		if err != nil || len(text) > 1<<20 || !whole {
			t.Errorf("%s: %d bytes, %v, want at most 1 MiB, and whole lines", name, len(text), err)
		}
	}
}
