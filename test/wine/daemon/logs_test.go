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
	// The kill can come after the rename, before the new file is made, or before its first line.
	files, _ := filepath.Glob(log + "*")
	backups := slices.DeleteFunc(slices.Clone(files), func(name string) bool { return name == log })
	if want := []string{log + ".1", log + ".2"}; !slices.Equal(backups, want) {
		t.Errorf("the backups are %q, want %q", backups, want)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		whole := strings.HasSuffix(string(text), "\n") || name == log && len(text) == 0
		if err != nil || len(text) > 1<<20 || !whole {
			t.Errorf("%s: %d bytes, %v, want at most 1 MiB, and whole lines", name, len(text), err)
		}
	}
}
