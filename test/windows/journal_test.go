package windows_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// journal names what a run makes and would survive it, before it is made. The next run removes it if this one is
// killed. Only one process can have it open, and only administrators can write it. A nil journal notes nothing.
type journal struct {
	file *os.File
	dir  string

	mu      sync.Mutex
	entries []entry
}

const journalName = "csi-proxy-verify.journal"

// entry is one thing.
type entry struct {
	Kind   kind   `json:"kind"`
	Name   string `json:"name"`
	Detail string `json:"detail,omitempty"` // of a disk, what distinguishes it from others; of a restart, the flags
}

func (e entry) String() string { return fmt.Sprintf("%s %s", e.Kind, e.Name) }

type kind string

const (
	dirKind     kind = "empty folder" // of the journal, if a run has made it
	folderKind  kind = "folder"       // in that of the journal, with virtual disks and the journal of a service
	mappingKind kind = "mapping"
	portalKind  kind = "portal"
	serviceKind kind = "service"
	diskKind    kind = "disk"    // that the operator has named, with partitions of ours
	restartKind kind = "restart" // what is above waits for -after-restart
)

var runFolder = regexp.MustCompile(`^run-\d+$`)

// check fails for an entry that no run writes: what the journal names is removed.
func (e entry) check() error {
	switch e.Kind {
	case dirKind, mappingKind, portalKind, diskKind:
		return nil
	case folderKind, restartKind:
		if runFolder.MatchString(e.Name) {
			return nil
		}
	case serviceKind:
		if strings.HasPrefix(e.Name, servicePrefix) {
			return nil
		}
	}
	return fmt.Errorf("%q is not what csi-proxy-verify makes", e)
}

// lineBegin begins each line.
const lineBegin = `{"kind":"`

// openJournal opens the journal of a folder, which it makes if it is missing.
func openJournal(dir string) (*journal, error) {
	made := mkdir(dir)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return nil, fmt.Errorf("-dir: %w; make the folder above it first, or name another", made)
	}
	path := filepath.Join(dir, journalName)
	file, err := openAlone(path)
	if err != nil {
		return nil, fmt.Errorf("open the journal %s: %w", path, err)
	}
	j := &journal{file: file, dir: dir}
	content, err := io.ReadAll(file)
	// A line that is incomplete does not count: what it announces was not made.
	for text := range bytes.Lines(content[:bytes.LastIndexByte(content, '\n')+1]) {
		var l struct {
			entry
			Gone bool `json:"gone"`
		}
		text = bytes.TrimSpace(text)
		switch {
		case err != nil || strings.HasPrefix(lineBegin, string(text)): // empty, or cut
		case json.Unmarshal(text, &l) == nil:
			err = l.check()
			j.apply(l.entry, l.Gone)
		case !bytes.HasPrefix(text, []byte(lineBegin)):
			err = fmt.Errorf("%.40q is not a line of a journal", text)
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("read the journal %s: %w; see what is left in the folder, then delete the journal", path, err)
	}
	if made == nil {
		return j, j.add(entry{Kind: dirKind, Name: "."})
	}
	return j, nil
}

func (j *journal) apply(e entry, gone bool) {
	j.entries = slices.DeleteFunc(j.entries, func(other entry) bool { return other == e })
	if !gone {
		j.entries = append(j.entries, e)
	}
}

// add announces what is about to be made. It returns when that is on disk.
func (j *journal) add(e entry) error { return j.write(e, false) }

// remove forgets what is gone. If that cannot be written, the next run finds nothing to remove.
func (j *journal) remove(e entry) { _ = j.write(e, true) }

// write adds a line, after one that a full disk may have cut.
func (j *journal) write(e entry, gone bool) error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if slices.Contains(j.entries, e) != gone {
		return nil
	}
	text, err := json.Marshal(struct {
		entry
		Gone bool `json:"gone,omitempty"`
	}{e, gone})
	if err == nil {
		_, err = fmt.Fprintf(j.file, "\n%s\n", text)
	}
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	j.apply(e, gone)
	return nil
}

// find returns the entries of a kind.
func (j *journal) find(k kind) []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(j.entries), func(e entry) bool { return e.Kind != k })
}

// close closes the journal. If nothing is left it deletes it, and the folder if a run has made it and it is empty.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.file.Close()
	made := slices.ContainsFunc(j.entries, func(e entry) bool { return e.Kind == dirKind })
	if err != nil || len(j.entries) > 1 || len(j.entries) == 1 && !made {
		return err
	}
	if err := os.Remove(filepath.Join(j.dir, journalName)); err != nil || !made {
		return err
	}
	if err := os.Remove(j.dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
