// Package journal writes down what a run makes, before it makes it, so that the next run can remove it
// if this one is killed.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// FileName is the name of the journal in the folder of a run.
const FileName = "csi-proxy-verify.journal"

// Kind is a kind of thing that a run makes.
type Kind string

// The kinds.
const (
	Folder  Kind = "folder"  // in the folder of the journal, with the virtual disks in it
	Mapping Kind = "mapping" // of a share
	Portal  Kind = "portal"  // of an iSCSI server
	Table   Kind = "table"   // a partition table on a disk that the operator has named
	Service Kind = "service" // installed for a question
	Zip     Kind = "zip"     // in the folder of the journal, until it is complete
)

// home says that a run has made the folder of the journal itself. It is removed with the journal, if nothing
// else is in it.
var home = Entry{Kind: "home", Name: "."}

func (e Entry) isHome() bool { return e == home }

// Entry is one thing.
type Entry struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

func (e Entry) String() string { return fmt.Sprintf("%s %s", e.Kind, e.Name) }

// names is what the names of entries look like. Others are never removed, whatever a journal says.
var names = map[Kind]func(name string) bool{
	home.Kind: func(name string) bool { return name == home.Name },
	Folder:    regexp.MustCompile(`^run-[0-9]{1,20}$`).MatchString,
	Mapping:   isShare,
	Portal:    isPortal,
	Table:     func(name string) bool { _, err := strconv.ParseUint(name, 10, 32); return err == nil },
	Service:   regexp.MustCompile(`^csi-proxy-verify-[0-9]{1,20}-[0-9]{1,4}$`).MatchString,
	Zip:       regexp.MustCompile(`^csi-proxy-verify-[0-9]{8}-[0-9]{6}\.zip$`).MatchString,
}

// isShare reports whether a name is \\server\share, in the one spelling that runs use.
func isShare(name string) bool {
	path, err := unc.Parse("", name)
	return err == nil && path.Share() == name
}

func isPortal(name string) bool {
	host, port, err := net.SplitHostPort(name)
	if err != nil || host == "" {
		return false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0
}

// check fails for what no run makes.
func (e Entry) check() error {
	switch is := names[e.Kind]; {
	case is == nil:
		return fmt.Errorf("%q is not a kind of entry", e.Kind)
	case !is(e.Name):
		return fmt.Errorf("%q is not a %s of csi-proxy-verify", e.Name, e.Kind)
	}
	return nil
}

// maxJournal is the largest journal that is read.
const maxJournal = 1 << 20

// Journal is an open journal. While it is open no other process can open it.
type Journal struct {
	file file
	path string

	mu      sync.Mutex // a question that hangs goes on beside the others
	entries []Entry
	size    int64 // of the complete lines
}

// file is an *os.File, or one that fails in a test.
type file interface {
	io.WriteSeeker
	Truncate(size int64) error
	Sync() error
	Close() error
}

// Open opens the journal of a folder, and returns what an earlier run has left. It makes the folder if it is
// missing. It fails if another run has the journal open. On Windows it also fails if the journal belongs to someone
// who is neither an administrator nor the present user: the next run removes what it names.
func Open(dir string) (_ *Journal, left []Entry, err error) {
	made := true
	switch err := Mkdir(dir); {
	case errors.Is(err, fs.ErrExist):
		made = false
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("%w: make the folder above it first, or name another", err)
	case err != nil:
		return nil, nil, err
	}
	path := filepath.Join(dir, FileName)
	file, err := openAlone(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open the journal %s: %w", path, err)
	}
	left, size, err := read(file)
	if err == nil {
		err = cut(file, size)
	}
	if err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("read the journal %s: %w; look what is left in the folder, then delete the journal", path, err)
	}
	j := &Journal{file: file, path: path, entries: left, size: size}
	if made {
		if err := j.Add(home); err != nil {
			return nil, nil, errors.Join(err, j.Close())
		}
	}
	return j, j.Entries(), nil
}

// line is a line of the file: an entry is about to be made, or is gone.
type line struct {
	Entry
	Gone bool `json:"gone,omitempty"`
}

// cut shortens the file to size bytes, where the next line begins.
func cut(file file, size int64) error {
	if err := file.Truncate(size); err != nil {
		return err
	}
	_, err := file.Seek(size, io.SeekStart)
	return err
}

// read returns the entries of a journal that are not gone, each once. A last line that was not written
// completely does not count: what it announces was not made. size is that of the lines before it.
func read(r io.Reader) (entries []Entry, size int64, err error) {
	content, err := io.ReadAll(io.LimitReader(r, maxJournal+1))
	if err != nil {
		return nil, 0, err
	}
	if len(content) > maxJournal {
		return nil, 0, fmt.Errorf("it has more than %d bytes", maxJournal)
	}
	content = content[:bytes.LastIndexByte(content, '\n')+1]
	for text := range bytes.Lines(content) {
		var e line
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, 0, err
		}
		if err := e.check(); err != nil {
			return nil, 0, err
		}
		entries = e.apply(entries)
	}
	return entries, int64(len(content)), nil
}

// apply returns the entries after the line.
func (l line) apply(entries []Entry) []Entry {
	switch at := slices.Index(entries, l.Entry); {
	case l.Gone && at >= 0:
		return slices.Delete(entries, at, at+1)
	case !l.Gone && at < 0:
		return append(entries, l.Entry)
	}
	return entries
}

// Add announces what is about to be made. It returns when that is on disk. The next run would refuse an entry that
// is not valid, so it fails for one.
func (j *Journal) Add(e Entry) error {
	if err := e.check(); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.write(line{e, false})
}

// Remove forgets an entry that has been removed, if the journal names it: what gets its name afterwards
// belongs to another.
func (j *Journal) Remove(e Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Contains(j.entries, e) {
		return nil
	}
	return j.write(line{e, true})
}

func (j *Journal) write(l line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	text = append(text, '\n')
	if _, err = j.file.Write(text); err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		// A full disk may have taken half a line. The next line must not become a part of it.
		return errors.Join(fmt.Errorf("write the journal: %w", err), cut(j.file, j.size))
	}
	j.size += int64(len(text))
	j.entries = l.apply(j.entries)
	return nil
}

// Entries returns what the journal names, each once.
func (j *Journal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(j.entries), Entry.isHome)
}

// Clear forgets all entries, after they have been removed.
func (j *Journal) Clear() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	made := slices.ContainsFunc(j.entries, Entry.isHome)
	if err := cut(j.file, 0); err != nil {
		return err
	}
	j.entries, j.size = nil, 0
	if made {
		return j.write(line{home, false})
	}
	return nil
}

// Close closes the journal. If nothing is left, it deletes it, and the folder if a run has made it and nothing
// else is in it.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.file.Close(); err != nil {
		return err
	}
	if slices.ContainsFunc(j.entries, func(e Entry) bool { return !e.isHome() }) {
		return nil
	}
	if err := os.Remove(j.path); err != nil {
		return err
	}
	if len(j.entries) == 0 {
		return nil
	}
	// Windows and Unix both report of a folder that is not empty that something exists.
	if err := os.Remove(filepath.Dir(j.path)); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
