package logfile_test

import (
	"os"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestFile_HeldOpen: a reader that does not share deletion, as Go's do not, is in the way of
// renaming. What it has read so far stays; when it lets go, files are exchanged again.
func TestFile_HeldOpen(t *testing.T) {
	cfg := newConfig(t)
	f := open(t, cfg)
	put(t, f, line(8)+line(9))
	put(t, f, line(0))
	reader, err := os.Open(cfg.Path)
	require.NoError(t, err)
	for i := 1; i < 5; i++ {
		put(t, f, line(i))
	}
	want(t, cfg, line(0)+line(1)+line(2)+line(3)+line(4), line(8)+line(9))
	put(t, f, line(5))
	const note = "(emptied, because it could not be renamed)\n" // at twice its size
	want(t, cfg, note+line(5), line(8)+line(9))
	reader.Close()
	put(t, f, line(6))
	put(t, f, line(7))
	want(t, cfg, line(6)+line(7), note+line(5), line(8)+line(9))
}

// TestFile_BackupHeldOpen: the same of a backup. Only what has to make room is lost.
func TestFile_BackupHeldOpen(t *testing.T) {
	cfg := newConfig(t)
	cfg.Backups = 4
	f := open(t, cfg)
	for i := range 10 { // two in each of five files
		put(t, f, line(i))
	}
	reader, err := os.Open(cfg.Path + ".1")
	require.NoError(t, err)
	put(t, f, line(10))
	put(t, f, line(11))
	if got, err := os.ReadFile(cfg.Path); err != nil || string(got) != line(8)+line(9)+line(10)+line(11) {
		t.Errorf("it has %q, %v", got, err)
	}
	reader.Close()
	put(t, f, line(12))
	want(t, cfg, line(12), line(8)+line(9)+line(10)+line(11), line(6)+line(7), line(4)+line(5), line(2)+line(3))
}
