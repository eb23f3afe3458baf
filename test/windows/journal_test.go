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
	"slices"
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
	Device string `json:"device,omitempty"` // of a disk, which may have another number after a restart
}

func (e entry) String() string { return fmt.Sprintf("%s %s", e.Kind, e.Name) }

type kind string

const (
	folderKind  kind = "folder" // in that of the journal, with virtual disks and the journal of a service
	mappingKind kind = "mapping"
	portalKind  kind = "portal"
	serviceKind kind = "service"
	diskKind    kind = "disk"            // that the operator has named, with partitions of ours
	restartKind kind = "run for restart" // what is above waits for -after-restart
)

// openJournal opens the journal of a folder, which it makes if it is missing.
func openJournal(dir string) (*journal, error) {
	if err := mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("-dir: %w; make the folder above it first, or name another", err)
	}
	path := filepath.Join(dir, journalName)
	file, err := openAlone(path)
	if err != nil {
		return nil, fmt.Errorf("open the journal %s: %w", path, err)
	}
	j := &journal{file: file, dir: dir}
	content, err := io.ReadAll(file)
	// The last line counts. One that is incomplete does not: what it announces was not made.
	lines := bytes.Split(bytes.TrimRight(content[:bytes.LastIndexByte(content, '\n')+1], "\n"), []byte{'\n'})
	if last := lines[len(lines)-1]; err == nil && len(last) > 0 {
		err = json.Unmarshal(last, &j.entries)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("read the journal %s: %w; see what is left in the folder, then delete the journal", path, err)
	}
	return j, nil
}

// add announces what is about to be made. It returns when that is on disk.
func (j *journal) add(e entry) error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if slices.Contains(j.entries, e) {
		return nil
	}
	return j.write(append(slices.Clone(j.entries), e))
}

// remove forgets what is gone. If that cannot be written, the next run finds nothing to remove.
func (j *journal) remove(e entry) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.write(slices.DeleteFunc(slices.Clone(j.entries), func(other entry) bool { return other == e }))
}

// write adds a line with all entries, after one that a full disk may have cut.
func (j *journal) write(entries []entry) error {
	text, err := json.Marshal(entries)
	if err == nil {
		_, err = fmt.Fprintf(j.file, "\n%s\n", text)
	}
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	j.entries = entries
	return nil
}

// clean removes everything that the journal names, the last first: a service depends on earlier ones. It tries all
// entries. What it cannot remove stays in the journal.
func (j *journal) clean(remove func(entry) (said string, err error)) (err error) {
	j.mu.Lock()
	entries := slices.Clone(j.entries)
	j.mu.Unlock()
	for _, e := range slices.Backward(entries) {
		said, failure := remove(e)
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("%s is left: %w", e, failure))
			continue
		}
		if said != "" {
			fmt.Println(said)
		}
		j.remove(e)
	}
	return err
}

// close closes the journal. If nothing is left it deletes it, and the folder if that is empty then.
func (j *journal) close() error {
	err := j.file.Close()
	if err != nil || len(j.entries) > 0 {
		return err
	}
	if err := os.Remove(filepath.Join(j.dir, journalName)); err != nil {
		return err
	}
	_ = os.Remove(j.dir)
	return nil
}
