package journal

import (
	"errors"
	"slices"
	"testing"
)

var errFull = errors.New("the disk is full")

// fullFile takes half of a line.
type fullFile struct{ file }

func (f fullFile) Write(b []byte) (int, error) {
	n, _ := f.file.Write(b[:len(b)/2])
	return n, errFull
}

// TestJournal_Full: half a line on a full disk does not make the next run refuse the journal.
func TestJournal_Full(t *testing.T) {
	dir := t.TempDir()
	j, _, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{{Folder, "run-1"}, {Mapping, `\\files\data`}}
	if err := j.Add(want[0]); err != nil {
		t.Fatal(err)
	}
	disk := j.file
	j.file = fullFile{disk}
	if err := j.Add(Entry{Portal, "10.0.0.1:3260"}); !errors.Is(err, errFull) {
		t.Errorf("on a full disk: %v", err)
	}
	j.file = disk
	if err := j.Add(want[1]); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	next, left, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if !slices.Equal(left, want) {
		t.Errorf("the next run finds %v, want %v", left, want)
	}
}
