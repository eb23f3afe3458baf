package logfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/logfile"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// newConfig is a log in a directory that does not exist yet, with 100 bytes and 2 backups.
func newConfig(t *testing.T) logfile.Config {
	t.Helper()
	return logfile.Config{
		Path:     filepath.Join(t.TempDir(), "not", "there", "csi-proxy.log"),
		MaxBytes: 100,
		Backups:  2,
		Fallback: &bytes.Buffer{},
		Failed:   func(err error) { t.Errorf("it failed: %v", err) },
	}
}

func open(t *testing.T, cfg logfile.Config) *logfile.File {
	t.Helper()
	f := logfile.Open(cfg)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// put writes a message, which must succeed.
func put(t *testing.T, f *logfile.File, message string) {
	t.Helper()
	if n, err := f.Write([]byte(message)); n != len(message) || err != nil {
		t.Errorf("write %q: %d, %v", message, n, err)
	}
}

// line is a message of 40 bytes.
func line(i int) string { return fmt.Sprintf("%039d\n", i) }

// want checks all files of the log, the current one first; there must be no others.
func want(t *testing.T, cfg logfile.Config, contents ...string) {
	t.Helper()
	for i, content := range contents {
		path := cfg.Path
		if i > 0 {
			path = fmt.Sprintf("%s.%d", cfg.Path, i)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("%s has %q, %v, want %q", filepath.Base(path), got, err, content)
		}
	}
	if all, _ := filepath.Glob(cfg.Path + "*"); len(all) != len(contents) {
		t.Errorf("there are %q, want %d files", all, len(contents))
	}
}

// TestFile_Exchanges: files are exchanged before they would be larger than the limit, and messages stay whole.
func TestFile_Exchanges(t *testing.T) {
	lines := func(first, last int) (all []string) {
		for i := first; i <= last; i++ {
			all = append(all, line(i))
		}
		return all
	}
	joined := func(first, last int) string { return strings.Join(lines(first, last), "") }
	long, most, rest := strings.Repeat("x", 500)+"\n", strings.Repeat("a", 60), strings.Repeat("b", 40)
	for name, c := range map[string]struct {
		put    []string
		change func(*logfile.Config)
		want   []string
	}{
		"two lines fit":   {lines(0, 8), nil, []string{line(8), joined(6, 7), joined(4, 5)}},
		"a long message":  {[]string{line(0), long, line(1)}, nil, []string{line(1), long, line(0)}},
		"exactly full":    {[]string{most, rest, "c"}, nil, []string{"c", most + rest}},
		"without limit":   {lines(0, 9), func(cfg *logfile.Config) { cfg.MaxBytes = 0 }, []string{joined(0, 9)}},
		"without backups": {lines(0, 4), func(cfg *logfile.Config) { cfg.Backups = 0 }, []string{line(4)}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := newConfig(t)
			if c.change != nil {
				c.change(&cfg)
			}
			f := open(t, cfg)
			want(t, cfg, "")
			for _, message := range c.put {
				put(t, f, message)
			}
			want(t, cfg, c.want...)
		})
	}
}

// TestFile_Link: a link with the name of the log is not followed.
func TestFile_Link(t *testing.T) {
	cfg := newConfig(t)
	var failure error
	cfg.Failed = func(err error) { failure = err }
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.MkdirAll(filepath.Dir(cfg.Path), 0o700)))
	require.Link(t, victim, cfg.Path)
	put(t, open(t, cfg), line(0))
	if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" || failure == nil {
		t.Errorf("the file behind the link has %q, %v; the log reports %v", text, err, failure)
	}
}

// TestFile_ClockStep: the order of backups is that of their numbers, not of dates, which a step of the clock reverses.
func TestFile_ClockStep(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		cfg := newConfig(t)
		f := open(t, cfg)
		for i := range 9 {
			put(t, f, line(i))
			all, _ := filepath.Glob(cfg.Path + "*")
			for j, path := range all {
				date := time.Now().Add(time.Duration(j) * step)
				require.NoError(t, os.Chtimes(path, date, date))
			}
		}
		want(t, cfg, line(8), line(6)+line(7), line(4)+line(5))
	}
}

func TestFile_ContinuesAfterRestart(t *testing.T) {
	cfg := newConfig(t)
	for i := range 5 {
		f := open(t, cfg)
		put(t, f, line(i))
		require.NoError(t, f.Close())
	}
	want(t, cfg, line(4), line(2)+line(3), line(0)+line(1))
	// With fewer backups, those that are too many go.
	cfg.Backups = 1
	f := open(t, cfg)
	put(t, f, line(5))
	put(t, f, line(6))
	want(t, cfg, line(6), line(4)+line(5))
}

// TestFile_KilledWhileItExchanged: the file that was on its way to become a backup becomes one.
func TestFile_KilledWhileItExchanged(t *testing.T) {
	cfg := newConfig(t)
	f := open(t, cfg)
	for i := range 4 {
		put(t, f, line(i))
	}
	require.NoError(t, errors.Join(f.Close(), os.Rename(cfg.Path, cfg.Path+".0")))
	f = open(t, cfg)
	for i := range 3 {
		put(t, f, line(4+i))
	}
	want(t, cfg, line(6), line(4)+line(5), line(2)+line(3))
}

// TestFile_RemovesOldBackups: also those behind a gap, and nothing that is not a backup.
func TestFile_RemovesOldBackups(t *testing.T) {
	cfg := newConfig(t)
	f := open(t, cfg)
	for _, name := range []string{".4", ".17", ".007", ".old", ".4.zip"} {
		require.NoError(t, os.WriteFile(cfg.Path+name, nil, 0o600))
	}
	for i := range 3 {
		put(t, f, line(i))
	}
	left, _ := filepath.Glob(cfg.Path + ".*")
	for i := range left {
		left[i] = strings.TrimPrefix(left[i], cfg.Path)
	}
	if fmt.Sprint(left) != "[.007 .1 .4.zip .old]" {
		t.Errorf("there are %q", left)
	}
}

func TestFile_Concurrent(t *testing.T) {
	cfg := newConfig(t)
	cfg.MaxBytes, cfg.Backups = 4000, 1000
	f := open(t, cfg)
	var writers sync.WaitGroup
	const count, each = 8, 500
	for w := range count {
		writers.Go(func() {
			for i := range each {
				put(t, f, line(w*each+i))
			}
		})
	}
	writers.Wait()
	all, _ := filepath.Glob(cfg.Path + "*")
	seen := map[string]bool{}
	for _, path := range all {
		content, err := os.ReadFile(path)
		if err != nil || len(content) > 4000 {
			t.Errorf("%s: %d bytes, %v", path, len(content), err)
		}
		for l := range strings.Lines(string(content)) {
			if len(l) != 40 || seen[l] {
				t.Errorf("%s has %q, which is broken or there twice", path, l)
			}
			seen[l] = true
		}
	}
	if len(seen) != count*each || len(all) != count*each*40/4000 {
		t.Errorf("%d lines in %d files, want %d in %d", len(seen), len(all), count*each, count*each*40/4000)
	}
}

// TestFile_Fails: the path is a directory, as good as any other reason; then it is not.
func TestFile_Fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := newConfig(t)
		cfg.MaxBytes = 0
		var failures []error
		fallback := &bytes.Buffer{}
		cfg.Fallback, cfg.Failed = fallback, func(err error) { failures = append(failures, err) }
		require.NoError(t, os.MkdirAll(cfg.Path, 0o755))
		f := open(t, cfg)
		put(t, f, line(0))
		time.Sleep(2 * time.Second) // in the bubble; so it is tried again
		put(t, f, line(1))
		require.NoError(t, os.Remove(cfg.Path))
		put(t, f, line(2)) // too early
		if got := fallback.String(); got != line(0)+line(1)+line(2) || len(failures) != 1 {
			t.Errorf("the fallback has %q, and there were failures %v; want all lines and one failure", got, failures)
		}
		time.Sleep(2 * time.Second)
		put(t, f, line(3))
		content, err := os.ReadFile(cfg.Path)
		if err != nil || !strings.HasPrefix(string(content), "\n3 messages are missing here: ") || !strings.HasSuffix(string(content), "\n"+line(3)) {
			t.Errorf("after recovery it has %q, %v", content, err)
		}
		if fallback.Len() != 3*40 {
			t.Errorf("the fallback has %q", fallback)
		}
	})
}

func TestFile_Closed(t *testing.T) {
	cfg := newConfig(t)
	f := open(t, cfg)
	put(t, f, line(0))
	for range 2 {
		require.NoError(t, f.Close())
	}
	if _, err := f.Write([]byte("x")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
	want(t, cfg, line(0))
}

// TestFile_CannotRename: a backup's name is taken by a directory with something in it, which
// stands for a reader that has the file open on Windows.
func TestFile_CannotRename(t *testing.T) {
	cfg := newConfig(t)
	cfg.Backups = 1
	require.NoError(t, os.MkdirAll(filepath.Join(cfg.Path+".1", "in the way"), 0o755))
	f := open(t, cfg)
	for i := range 5 {
		put(t, f, line(i))
	}
	// It grows on, since nothing may be lost early.
	if got, err := os.ReadFile(cfg.Path); err != nil || string(got) != line(0)+line(1)+line(2)+line(3)+line(4) {
		t.Errorf("it has %q, %v", got, err)
	}
	put(t, f, line(5))
	got, err := os.ReadFile(cfg.Path)
	note, last, _ := strings.Cut(string(got), "\n")
	if err != nil || !strings.HasPrefix(note, "(emptied") || last != line(5) {
		t.Errorf("at twice its size it has %q, %v, want a note and the last line", got, err)
	}
}
