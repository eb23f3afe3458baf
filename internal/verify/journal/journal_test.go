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
	want := []journal.Entry{{journal.Folder, "run-1"}, {journal.Mapping, `\\files\data`}, {journal.Portal, "10.0.0.1:3260"}, {journal.Table, "8"}, {journal.Service, "csi-proxy-verify-1-2"}, {journal.Zip, "csi-proxy-verify-20261116-133100.zip"}}
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

// TestClose_Folder: the folder goes with the journal if a run has made it, also if that run was killed, and if
// nothing else is in it.
func TestClose_Folder(t *testing.T) {
	run := journal.Entry{Kind: journal.Folder, Name: "run-1"}
	tests := map[string]struct{ killed, theirs, zip, left bool }{
		"made":                          {},
		"made by a run that was killed": {killed: true},
		"made, and has the zip":         {zip: true, left: true},
		"there before":                  {theirs: true, left: true},
		"there before, and killed":      {theirs: true, killed: true, left: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "verify")
			if test.theirs {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			j, _ := open(t, dir)
			if err := j.Add(run); err != nil {
				t.Fatal(err)
			}
			if test.killed { // it is closed with what is left
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
				var left []journal.Entry
				if j, left = open(t, dir); !slices.Equal(left, []journal.Entry{run}) {
					t.Errorf("the next run finds %v", left)
				}
			}
			if test.zip {
				if err := os.WriteFile(filepath.Join(dir, "field.zip"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, err := range []error{j.Remove(run), j.Clear(), j.Close()} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, journal.FileName)); !os.IsNotExist(err) {
				t.Errorf("the journal is left: %v", err)
			}
			if _, err := os.Stat(dir); (err == nil) != test.left {
				t.Errorf("the folder: %v", err)
			}
		})
	}
}

// TestOpen_NoParent makes one folder, which it can remove, and not those above it.
func TestOpen_NoParent(t *testing.T) {
	above := filepath.Join(t.TempDir(), "missing")
	_, _, err := journal.Open(filepath.Join(above, "verify"))
	if err == nil || !strings.Contains(err.Error(), "make the folder above it first") {
		t.Errorf("a folder in a missing one: %v", err)
	}
	if _, err := os.Stat(above); !os.IsNotExist(err) {
		t.Errorf("the folder above: %v", err)
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
		`{"kind":"service","name":"csi-proxy"}`,
		`{"kind":"service","name":"csi-proxy-verify-1"}`,
		`{"kind":"service","name":"kubelet"}`,
		`{"kind":"disk","name":"1"}`,
		`{"kind":"mapping","name":"Z:"}`,
		`{"kind":"mapping","name":"\\\\server"}`,
		`{"kind":"mapping","name":"\\\\server\\share\\directory"}`,
		`{"kind":"mapping","name":"\\\\?\\C:"}`,
		`{"kind":"mapping","name":"//server/share"}`,
		`{"kind":"mapping","name":""}`,
		`{"kind":"portal","name":"10.0.0.1"}`,
		`{"kind":"portal","name":":3260"}`,
		`{"kind":"portal","name":"10.0.0.1:0"}`,
		`{"kind":"table","name":"-1"}`,
		`{"kind":"table","name":"C:"}`,
		`{"kind":"table","name":"4294967296"}`,
		`{"kind":"home","name":".."}`,
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

// TestAdd_Refuses: what the next run would refuse is not written.
func TestAdd_Refuses(t *testing.T) {
	j, _ := open(t, t.TempDir())
	for _, e := range []journal.Entry{{"disk", "1"}, {journal.Folder, "Windows"}, {journal.Mapping, "Z:"}, {journal.Portal, "x"}, {journal.Table, ""}} {
		if err := j.Add(e); err == nil {
			t.Errorf("%v is in the journal", e)
		}
	}
	if left := j.Entries(); len(left) > 0 {
		t.Errorf("the journal has %v", left)
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
