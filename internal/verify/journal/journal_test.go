package journal_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/journal"
)

func open(t *testing.T, dir string) (*journal.Journal, []journal.Entry) {
	t.Helper()
	j, left, err := journal.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j, left
}

func TestJournal(t *testing.T) {
	dir := t.TempDir()
	j, left := open(t, dir)
	if len(left) > 0 {
		t.Errorf("a new journal has %v", left)
	}
	want := []journal.Entry{{journal.Folder, "run-1"}, {journal.Mapping, `\\files\data`}, {journal.Portal, "10.0.0.1:3260"}, {journal.Table, "8"}, {journal.Zip, "csi-proxy-verify-20261116-133100.zip"}}
	for _, e := range append(want, want[0]) {
		if err := j.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	// A kill leaves the file as it is, and perhaps half a line.
	content, err := os.ReadFile(filepath.Join(dir, journal.FileName))
	if err != nil {
		t.Fatal(err)
	}
	killed := t.TempDir()
	if err := os.WriteFile(filepath.Join(killed, journal.FileName), append(content, `{"kind":"fol`...), 0o600); err != nil {
		t.Fatal(err)
	}
	next, left := open(t, killed)
	if !slices.Equal(left, want) {
		t.Errorf("the next run finds %v, want %v", left, want)
	}
	// It removes some of it, and is killed too.
	for _, e := range []journal.Entry{want[1], want[1], {journal.Mapping, "unknown"}} {
		if err := next.Remove(e); err != nil {
			t.Fatal(err)
		}
	}
	want = slices.Delete(slices.Clone(want), 1, 2)
	if got := next.Entries(); !slices.Equal(got, want) {
		t.Errorf("it has %v left, want %v", got, want)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	if next, left = open(t, killed); !slices.Equal(left, want) {
		t.Errorf("the run after it finds %v, want %v", left, want)
	}
	if err := next.Clear(); err != nil {
		t.Fatal(err)
	}
	if err := next.Add(journal.Entry{Kind: journal.Folder, Name: "run-2"}); err != nil {
		t.Fatal(err)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	last, left := open(t, killed)
	if len(left) != 1 || left[0].Name != "run-2" {
		t.Errorf("the run after that finds %v", left)
	}
	if err := last.Clear(); err != nil {
		t.Fatal(err)
	}
	if err := last.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(killed, journal.FileName)); !os.IsNotExist(err) {
		t.Errorf("an empty journal is left: %v", err)
	}
}

// TestOpen_Refuses: a journal cannot make a run delete what no run has made.
func TestOpen_Refuses(t *testing.T) {
	for _, content := range []string{
		`{"kind":"folder","name":"..\\Windows"}`,
		`{"kind":"folder","name":"C:\\Windows"}`,
		`{"kind":"folder","name":""}`,
		`{"kind":"folder","name":"run-1\\x"}`,
		`{"kind":"zip","name":"precious.zip"}`,
		`{"kind":"zip","name":"..\\csi-proxy-verify-20261116-133100.zip"}`,
		`{"kind":"disk","name":"1"}`,
		`{"kind":"mapping","name":"\\\\a\\` + strings.Repeat("b", 100_000) + `"}` + "\n" + `nonsense`,
		`nonsense`,
		strings.Repeat(" ", 1<<20+1),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, journal.FileName), []byte(content+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if j, left, err := journal.Open(dir); err == nil {
			t.Errorf("%.50s gives %v", content, left)
			_ = j.Close()
		}
	}
}

// TestOpen_Twice: two runs in a folder at once would remove what the other makes.
func TestOpen_Twice(t *testing.T) {
	if runtime.GOOS != "windows" {
		t.Skip("only Windows keeps others from opening the file, and runs need Windows")
	}
	dir := t.TempDir()
	open(t, dir)
	if _, _, err := journal.Open(dir); err == nil || !strings.Contains(err.Error(), "is another csi-proxy-verify at work") {
		t.Errorf("opened twice: %v", err)
	}
	if _, _, err := journal.Open(filepath.Join(dir, "missing")); err == nil || strings.Contains(err.Error(), "at work") {
		t.Errorf("in a folder that is missing: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"kind":"folder","name":"run-1"}` + "\n"))
	f.Add([]byte(`{"kind":"portal","name":"a:1"}` + "\n" + `{"kind":"portal","name":"a:1","gone":true}` + "\n" + `{"ki`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, journal.FileName), content, 0o600); err != nil {
			t.Fatal(err)
		}
		j, left, err := journal.Open(dir)
		if err != nil {
			return
		}
		defer j.Close()
		for _, e := range left {
			if e.Kind == journal.Folder && (strings.ContainsAny(e.Name, `/\:.`) || e.Name == "") {
				t.Errorf("%q is a folder", e.Name)
			}
		}
	})
}
