//go:build windows && wine

package daemon

import (
	"os"
	"path/filepath"
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
	files, _ := filepath.Glob(log + "*")
	if len(files) != 3 {
		t.Errorf("there are %q, want a log and two backups", files)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err == nil && len(text) == 0 && name == log {
			continue // the kill came between the rotation and the first line
		}
		if err != nil || len(text) > 1<<20 || !strings.HasSuffix(string(text), "\n") {
			t.Errorf("%s: %d bytes, %v, want at most 1 MiB, and whole lines", name, len(text), err)
		}
	}
}
