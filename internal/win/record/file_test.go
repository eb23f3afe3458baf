package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

func TestFile_Rotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not", "there", "calls.jsonl")
	const most = 40 << 10
	open := func() *File {
		f, err := Open(t.Context(), machine{conductor: &planter{}}, path, Options{MaxBytes: most, Failed: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := open()
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 200 {
				_, _ = f.Machine().VolumeIDs(t.Context())
			}
		})
	}
	callers.Wait()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	later, last := 0, uint64(0)
	for _, name := range []string{path, path + ".1"} {
		recording := readFile(t, name)
		// A file that fills up while the machine is being described has no description.
		if name == path && recording.Description == nil || recording.Lost > 0 {
			t.Errorf("%s has description %v, and lost %d", name, recording.Description != nil, recording.Lost)
		}
		for _, call := range recording.Calls {
			last = max(last, call.Seq)
		}
		if recording.Header.Later {
			later++
		}
	}
	if total := totalSize(t, path); total > most || later == 0 || last != 800 {
		t.Errorf("%d bytes in all files, %d of which continue another, up to call %d", total, later, last)
	}
	// The next start keeps what the last one has recorded.
	kept := readFile(t, path)
	if err := open().Close(); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, path+".1"); len(got.Calls) != len(kept.Calls) || len(readFile(t, path).Calls) != 0 {
		t.Errorf("after a restart the last recording has %d calls, want %d", len(got.Calls), len(kept.Calls))
	}
}

func readFile(t *testing.T, path string) *Recording {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	recording, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return recording
}

// totalSize is the size of all files of a recording.
func totalSize(t *testing.T, path string) (total int64) {
	t.Helper()
	names, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	return total
}

// run begins a recording, makes calls and ends it.
func run(t *testing.T, path string, most int64, calls int) error {
	t.Helper()
	f, err := Open(t.Context(), machine{conductor: &planter{}}, path, Options{MaxBytes: most})
	if err != nil {
		return err
	}
	for range calls {
		_, _ = f.Machine().VolumeIDs(t.Context())
	}
	return f.Close()
}

// contentsOf returns what is in a directory, by name.
func contentsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[file.Name()] = string(text)
	}
	return found
}

// TestOpen_Restarts: starts keep earlier recordings, the newest with the lowest number, while there is room.
func TestOpen_Restarts(t *testing.T) {
	const most, starts = 1 << 20, 5
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	for calls := range starts {
		if err := run(t, path, most, calls); err != nil {
			t.Fatal(err)
		}
	}
	for number := range starts {
		name := (&File{path: path}).name(number)
		if got, want := len(readFile(t, name).Calls), starts-1-number; got != want {
			t.Errorf("%s has %d calls, want %d", name, got, want)
		}
	}
	// A gap, as an operator leaves it, is filled, and nothing is replaced.
	if err := os.Remove(path + ".2"); err != nil {
		t.Fatal(err)
	}
	if err := run(t, path, most, starts); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{path: 5, path + ".1": 4, path + ".2": 3, path + ".3": 1, path + ".4": 0} {
		if got := len(readFile(t, name).Calls); got != want {
			t.Errorf("after a removal, %s has %d calls, want %d", name, got, want)
		}
	}
	// With a lower limit the oldest go.
	const less = 40 << 10
	for range 10 {
		if err := run(t, path, less, 0); err != nil {
			t.Fatal(err)
		}
		if total := totalSize(t, path); total > less {
			t.Errorf("the files have %d bytes, more than %d", total, less)
		}
	}
	if _, err := os.Stat(path + ".9"); err == nil {
		t.Error("there are still nine old files")
	}
}

// TestOpen_LargeOld: old files that a higher limit has left are removed.
func TestOpen_LargeOld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	for range 2 {
		if err := run(t, path, 4<<20, 2000); err != nil {
			t.Fatal(err)
		}
	}
	const most = 100 << 10
	if err := run(t, path, most, 1); err != nil {
		t.Fatal(err)
	}
	if total := totalSize(t, path); total > most {
		t.Errorf("the files have %d bytes, more than %d", total, most)
	}
}

// TestOpen_Many: there is a limit for the number of files, too.
func TestOpen_Many(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	for range maxOld + 5 {
		if err := run(t, path, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if files := contentsOf(t, filepath.Dir(path)); len(files) != maxOld+1 {
		t.Errorf("there are %d files", len(files))
	}
}

// TestOpen_Refused: a recording that cannot begin changes no file: if one of them is no recording, or if files that
// the description fills would rotate at every call.
func TestOpen_Refused(t *testing.T) {
	const other, small = "precious data", 4 << 10
	for _, test := range []struct {
		name string
		most int64
		want string
	}{
		{"", 0, "calls.jsonl has other content than recorded calls, and is not replaced; choose another file"},
		{".1", 0, "calls.jsonl.1 has other content"},
		{".7", 0, "calls.jsonl.7 has other content"},
		{".other", small, "raise the limit"},
	} {
		path := filepath.Join(t.TempDir(), "calls.jsonl")
		for range 3 {
			if err := run(t, path, 0, 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path+test.name, []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
		before := contentsOf(t, filepath.Dir(path))
		for range 2 {
			if err := run(t, path, test.most, 0); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%q: got %v, want %s", test.name, err, test.want)
			}
		}
		if after := contentsOf(t, filepath.Dir(path)); !maps.Equal(before, after) {
			t.Errorf("%q: there were %q, and are %q", test.name, before, after)
		}
	}
	if err := run(t, t.TempDir(), 0, 0); err == nil {
		t.Error("a directory was opened as a file")
	}
}

// TestOpen_Nothing: an empty file, and one that a full disk has cut off in its header, are replaced.
func TestOpen_Nothing(t *testing.T) {
	for _, text := range []string{"", firstBytes[:20], firstBytes + `"version":1`} {
		path := filepath.Join(t.TempDir(), "calls.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run(t, path, 0, 3); err != nil {
			t.Errorf("%q: %v", text, err)
		} else if files := contentsOf(t, filepath.Dir(path)); len(files) != 1 || len(readFile(t, path).Calls) != 3 {
			t.Errorf("%q: there are %q", text, files)
		}
	}
}

// TestFile_Other: a file that is no recording and that appears later is not replaced either.
func TestFile_Other(t *testing.T) {
	const most = 40 << 10
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	failed := error(nil)
	f, err := Open(t.Context(), machine{conductor: &planter{}}, path, Options{MaxBytes: most, Failed: func(err error) { failed = err }})
	if err != nil {
		t.Fatal(err)
	}
	const other = "precious data"
	if err := os.WriteFile(path+".1", []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	call := func() {
		for range 800 {
			_, _ = f.Machine().VolumeIDs(t.Context())
		}
	}
	call()
	if files := contentsOf(t, filepath.Dir(path)); files["calls.jsonl.1"] != other || len(files) != 2 || failed == nil {
		t.Errorf("there are %d files, %q, and it reports %v", len(files), files["calls.jsonl.1"], failed)
	}
	// Without it the recording goes on, and says what is missing.
	if err := os.Remove(path + ".1"); err != nil {
		t.Fatal(err)
	}
	call()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	// Durations have any number of digits, so another file may have begun after the last call.
	calls := append(readFile(t, path+".1").Calls, readFile(t, path).Calls...)
	if len(calls) == 0 || calls[len(calls)-1].Seq != 1600 || totalSize(t, path) > most {
		t.Errorf("the files have %d bytes and %d calls, want those up to 1600", totalSize(t, path), len(calls))
	}
}

// flaky is a writer that fails for some writes.
type flaky struct {
	bytes.Buffer
	fails bool
}

func (f *flaky) Write(b []byte) (int, error) {
	if f.fails {
		return 0, &fs.PathError{Op: "write", Path: `C:\Customer-Acme\calls.jsonl`, Err: syscall.ENOSPC}
	}
	return f.Buffer.Write(b)
}

func TestRecorder_Lost(t *testing.T) {
	for _, hash := range []bool{false, true} {
		recorderLost(t, hash)
	}
}

func recorderLost(t *testing.T, hash bool) {
	t.Helper()
	out, failures := &flaky{}, 0
	r := New(t.Context(), machine{conductor: &planter{}}, out, Options{Hash: hash, Failed: func(error) { failures++ }})
	call := func() { _, _ = r.Machine().VolumeIDs(t.Context()) }
	call()
	out.fails = true
	call()
	call()
	out.fails = false
	call()
	// The path of the recording is a name.
	if text := out.String(); strings.Contains(text, "Customer-Acme") == hash || !strings.Contains(text, syscall.ENOSPC.Error()) {
		t.Errorf("hash %t: got %s", hash, text)
	}
	recording, err := Read(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(recording.Calls) != 2 || recording.Lost != 2 || failures != 1 {
		t.Errorf("%d calls, %d lost, %d reports", len(recording.Calls), recording.Lost, failures)
	}
}

// TestFile_LongLine: a line that is longer than a file may be is lost, and the limit holds.
func TestFile_LongLine(t *testing.T) {
	const most = 60 << 10
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	f, err := Open(t.Context(), machine{conductor: &planter{}}, path, Options{MaxBytes: most})
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []int{100, most, most / 2, most/2 - 100, most / 3, most / 3, most / 3, 10 * most, 100, most / 2, most / 2, 100} {
		_, _ = f.Machine().FileInfo(t.Context(), win.Following(`C:\`+strings.Repeat("x", length)))
		f.again.Wait() // for the description of another file
		if total := totalSize(t, path); total > most {
			t.Errorf("after a line of %d bytes the files have %d", length, total)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	recording := readFile(t, path)
	if recording.Lost != 3 || recording.Calls[len(recording.Calls)-1].Seq != 12 {
		t.Errorf("%d lines are lost, and the last call is %d", recording.Lost, recording.Calls[len(recording.Calls)-1].Seq)
	}
}

// TestRecorder_Header: a file begins with its header, also if lines were lost or the header itself could not be
// written at first.
func TestRecorder_Header(t *testing.T) {
	for _, room := range []int{0, 1, 50, 1 << 20} {
		var files []*short
		full := &short{room: 1 << 20}
		r := New(t.Context(), machine{conductor: &planter{}}, full, Options{})
		r.next = func() (io.Writer, error) {
			if files = append(files, &short{room: 1 << 20}); len(files) == 1 {
				files[0].room = room
			}
			return files[len(files)-1], nil
		}
		call := func() { _, _ = r.Machine().VolumeIDs(t.Context()) }
		full.room = 0
		call() // is lost
		r.size = r.limit
		call()
		call()
		r.Close()
		last := files[len(files)-1]
		if recording, err := Read(bytes.NewReader(last.Bytes())); err != nil || recording.Lost == 0 || recording.Lost+uint64(len(recording.Calls)) != 3 {
			t.Errorf("room %d: got %+v, %v in\n%s", room, recording, err, last)
		}
	}
}

// short is a writer with a limit, as a disk that is full.
type short struct {
	bytes.Buffer
	room int
}

func (s *short) Write(b []byte) (int, error) {
	n, _ := s.Buffer.Write(b[:min(len(b), s.room)])
	s.room -= n
	if n < len(b) {
		return n, errors.New("disk full")
	}
	return n, nil
}

// TestRecorder_Short: a disk that is full within a line, and again within the note about it, costs only the
// lines that did not fit.
func TestRecorder_Short(t *testing.T) {
	const plenty = 1 << 20
	var length int
	for room := 0; room == 0 || room <= length+2; room++ {
		out := &short{room: plenty}
		r := New(t.Context(), machine{conductor: &planter{}}, out, Options{})
		call := func() { _, _ = r.Machine().VolumeIDs(t.Context()) }
		before := out.Len()
		call()
		length = out.Len() - before
		out.room = room
		call()
		out.room = 20 // for a part of the note
		call()
		if got, err := Read(bytes.NewReader(out.Bytes())); err != nil || len(got.Calls) < 1 {
			t.Fatalf("room %d, before there is space: %v", room, err)
		}
		out.room = plenty
		call()
		recording, err := Read(out)
		if err != nil {
			t.Fatalf("room %d: %v", room, err)
		}
		if calls := uint64(len(recording.Calls)); calls < 2 || calls+recording.Lost < 4 || recording.Truncated {
			t.Errorf("room %d: %d calls, %d lost, truncated %t", room, calls, recording.Lost, recording.Truncated)
		}
	}
}

func TestRecorder_Full(t *testing.T) {
	var (
		out    bytes.Buffer
		reason error
	)
	r := New(t.Context(), machine{conductor: &planter{}}, &out, Options{MaxBytes: 20 << 10, Failed: func(err error) { reason = err }})
	for range 500 {
		if _, err := r.Machine().VolumeIDs(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() > 20<<10 || reason == nil {
		t.Errorf("%d bytes are written, and it reports %v", out.Len(), reason)
	}
}

func TestRead(t *testing.T) {
	var out bytes.Buffer
	r := New(t.Context(), machine{conductor: &planter{}}, &out, Options{Program: "v1.2.3", Windows: "10.0.20348"})
	_, _ = r.Machine().VolumeIDs(t.Context())
	_, _ = r.Machine().DeviceNumber(t.Context(), win.PhysicalDrive(1))
	r.ControlCode(0x2d1080, nil, make([]byte, 5000), nil)
	text := out.String()
	header, _, _ := strings.Cut(text, "\n")
	for _, test := range []struct{ name, text, want string }{
		{"whole", text, "v1.2.3 10.0.20348: 2 calls, 1 raw, truncated false"},
		{"crash", text + `{"call":{"seq":3,"met`, "v1.2.3 10.0.20348: 2 calls, 1 raw, truncated true"},
		{"without the last end of line", strings.TrimSuffix(text, "\n"), "v1.2.3 10.0.20348: 2 calls, 1 raw, truncated false"},
		{"empty", "", "it is not a recording of calls: the first line has no header"},
		{"other JSON", `{"a":1}` + "\n", "it is not a recording of calls: the first line has no header"},
		{"text", "I1116 log line\n", "line 1 is not a line of a recording: invalid character 'I' looking for beginning of value"},
		{"cut in the header", header[:20], "it is not a recording of calls: the first line has no header"},
		{"newer", strings.Replace(text, `"version":1`, `"version":2`, 1), "the recording has format version 2, and this program reads versions up to 1; use a newer program"},
		{"damaged", strings.Replace(text, `{"call"`, `{"call`, 1), "line 3 is not a line of a recording: invalid character 's' after object key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			recording, err := Read(strings.NewReader(test.text))
			got := fmt.Sprint(err)
			if err == nil {
				got = fmt.Sprintf("%s %s: %d calls, %d raw, truncated %t", recording.Header.Program, recording.Header.Windows, len(recording.Calls), len(recording.Raw), recording.Truncated)
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	recording, _ := Read(strings.NewReader(text))
	if raw := recording.Raw[0]; len(raw.Out) != maxRaw || !raw.Cut || raw.After != 2 {
		t.Errorf("the raw line has %d bytes, cut %t, after call %d", len(raw.Out), raw.Cut, raw.After)
	}
}

func TestPlayer_Unknown(t *testing.T) {
	var out bytes.Buffer
	r := New(t.Context(), machine{conductor: &planter{}}, &out, Options{})
	_, _ = r.Machine().DeviceNumber(t.Context(), win.PhysicalDrive(1))
	text := out.String()
	for _, test := range []struct {
		disk uint32
		cut  string
		want string
	}{
		{2, "", `replay a recording: DeviceNumber {"d":"\\\\.\\PhysicalDrive2"}: the recording has no answer to it; record the operation again`},
		{1, "", `replay a recording: DeviceNumber {"d":"\\\\.\\PhysicalDrive1"}: the recording has 1 answers to it, and all are used; record the operation again`},
		{2, `{"call":{`, `replay a recording: DeviceNumber {"d":"\\\\.\\PhysicalDrive2"}: the recording has no answer to it; it is cut off; record the operation again`},
		{1, `{"call":{`, `replay a recording: DeviceNumber {"d":"\\\\.\\PhysicalDrive1"}: the recording has 1 answers to it, and all are used; it is cut off; record the operation again`},
	} {
		recording, err := Read(strings.NewReader(text + test.cut))
		if err != nil {
			t.Fatal(err)
		}
		var reports []error
		m := recording.Player(func(err error) { reports = append(reports, err) })
		if test.disk == 1 {
			if _, err := m.DeviceNumber(t.Context(), win.PhysicalDrive(1)); err != nil {
				t.Error(err)
			}
		}
		_, err = m.DeviceNumber(t.Context(), win.PhysicalDrive(test.disk))
		_, after := m.DeviceNumber(t.Context(), win.PhysicalDrive(1))
		if fmt.Sprint(err) != test.want || len(reports) != 1 || !errors.Is(after, err) {
			t.Errorf("got %v, then %v, and reports %v; want %s", err, after, reports, test.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	var out bytes.Buffer
	r := New(f.Context(), machine{conductor: &planter{}}, &out, Options{})
	m := r.Machine()
	_, _ = m.VolumeIDs(f.Context())
	_ = m.ReadDevice(f.Context(), win.PhysicalDrive(1), 0, make([]byte, 1024))
	f.Add(out.Bytes())
	f.Add([]byte(`{"recording":{"format":"csi-proxy calls","version":1}}` + "\n" + `{"call":{"seq":1,"method":"VolumeIDs","out":7}}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		recording, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		m := recording.Player(nil)
		_, _ = m.VolumeIDs(t.Context())
		_ = m.ReadDevice(t.Context(), win.PhysicalDrive(1), 0, make([]byte, 1024))
		if dir, err := m.OpenDirectory(t.Context(), win.Following(`C:\`)); err == nil {
			_ = dir.ListDirectory(t.Context(), "", func(win.Tree, []win.DirEntry) error { return nil })
			dir.Close()
		}
	})
}

// TestRead_Two: the files of one recording may follow each other in one, those of two may not.
func TestRead_Two(t *testing.T) {
	const call = `{"call":{"seq":%d,"method":"DiskDevices","out":[]}}` + "\n"
	header := func(started string, later bool) string {
		return fmt.Sprintf(`{"recording":{"format":"csi-proxy calls","version":1,"started":%q,"later":%t}}`+"\n", started, later)
	}
	first := header("2026-01-01T00:00:00Z", false) + fmt.Sprintf(call, 1)
	recording, err := Read(strings.NewReader(first + header("2026-01-01T00:00:00Z", true) + fmt.Sprintf(call, 2)))
	if err != nil || len(recording.Calls) != 2 {
		t.Errorf("one recording: %v, %v", recording, err)
	}
	for _, other := range []string{header("2026-01-01T00:00:00Z", false), header("2026-01-02T00:00:00Z", true)} {
		if _, err := Read(strings.NewReader(first + other + fmt.Sprintf(call, 1))); err == nil || !strings.Contains(err.Error(), "more than one recording") {
			t.Errorf("%s: %v", other, err)
		}
	}
}
