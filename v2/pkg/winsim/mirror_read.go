package winsim

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// realStat is the last known state of an entry in the real directory.
type realStat struct {
	kind     fs.FileMode // its type; 0 for a file
	size     int64
	modified time.Time
	text     string // of a link
	// changedRecently is set if the file changed so shortly before that another change may
	// leave the same time.
	changedRecently bool
	// loaded is set if the content in memory is up to date.
	loaded bool
}

const (
	// timestampResolution is longer than the time resolution of any file system.
	timestampResolution = 2 * time.Second
	// maxContent is the size limit of files that are read into memory.
	maxContent = 64 * mebibyte
)

func (s realStat) equal(other realStat) bool {
	return s.kind == other.kind && s.text == other.text &&
		(s.kind != 0 || !s.changedRecently && s.size == other.size && s.modified.Equal(other.modified))
}

// statReal reads the state of a real name. Pipes and devices count as empty files and are never
// opened.
func statReal(at realDir) (realStat, error) {
	info, err := at.Root.Lstat(at.path)
	if err != nil {
		return realStat{}, err
	}
	s := realStat{kind: info.Mode().Type()}
	switch s.kind {
	case fs.ModeDir:
	case fs.ModeSymlink:
		s.text, err = at.Root.Readlink(at.path)
	case 0:
		s.size, s.modified = info.Size(), info.ModTime()
		s.changedRecently = time.Since(s.modified) < timestampResolution
	default: // pipes and devices
	}
	return s, err
}

// refreshName updates a name of a directory from the real directory.
func (fs *fileSystem) refreshName(dir *entry, name string) {
	if fs.mirrored == nil || dir.removed {
		return
	}
	if known := dir.child(name); known != nil {
		fs.refreshEntry(known)
	}
	if dir.child(name) != nil {
		return
	}
	for _, found := range fs.mirrored.list(dir) {
		if winpath.Equal(found, name) {
			fs.importReal(dir, found)
			return
		}
	}
}

func (fs *fileSystem) refresh(dir *entry) {
	if fs.mirrored == nil || dir.removed || dir.children == nil || isLink(dir) {
		return
	}
	known := make([]*entry, 0, len(dir.children))
	for _, child := range dir.children {
		known = append(known, child)
	}
	for _, child := range known {
		fs.refreshEntry(child)
	}
	for _, found := range fs.mirrored.list(dir) {
		if dir.child(found) == nil {
			fs.importReal(dir, found)
		}
	}
}

// refreshAll is refresh for the whole tree, with contents.
func (fs *fileSystem) refreshAll() { fs.refreshBelow(fs.root, true) }

func (fs *fileSystem) refreshBelow(dir *entry, contents bool) {
	if fs.mirrored == nil {
		return
	}
	fs.refresh(dir)
	for _, child := range dir.children {
		if contents {
			_ = fs.load(child) // too large to read
		}
		if child.children != nil && !isLink(child) {
			fs.refreshBelow(child, contents)
		}
	}
}

// list returns the sorted real names in a directory; none if it is not mirrored.
func (t *realTree) list(dir *entry) []string {
	at, _, ok := t.pathOf(dir)
	if !ok {
		return nil
	}
	return t.namesIn(at)
}

// namesIn returns the names in a real directory that belong to the node.
func (t *realTree) namesIn(at realDir) []string {
	opened, err := at.Root.Open(at.path)
	if err != nil {
		return nil
	}
	defer opened.Close()
	names, err := opened.Readdirnames(-1)
	if err != nil {
		t.m.reportOnce("list %s: %w", at.path, err)
	}
	names = slices.DeleteFunc(names, at.reserved)
	slices.Sort(names)
	return names
}

func (fs *fileSystem) refreshEntry(e *entry) {
	at, home, ok := fs.mirrored.pathOf(e)
	if !ok || home {
		return
	}
	now, err := statReal(at)
	switch {
	case isMissing(err):
		if e.lastStat != nil { // else it was never written
			fs.forget(e)
		}
	case err != nil || e.lastStat != nil && e.lastStat.equal(now):
	case isLink(e) && e.lastStat != nil && e.lastStat.kind == 0 && now.kind == 0 && now.size == 0: // replaces a link
	case now.kind == os.ModeDir && e.children != nil && !isLink(e),
		now.kind == 0 && e.children == nil && !isLink(e):
		e.lastStat = &now
	default: // another kind
		name := e.name
		parent := e.parent
		fs.forget(e)
		fs.importReal(parent, name)
	}
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func (fs *fileSystem) forget(e *entry) {
	gone := resolvedPath{fs: fs, parent: e.parent, name: e.name, entry: e}
	gone.detach()
	e.markRemoved()
}

// importReal adds what another process created.
func (fs *fileSystem) importReal(dir *entry, name string) {
	if !isWindowsName(name) {
		fs.mirrored.m.reportOnce("%q is not a valid Windows name; the node ignores it", name)
		return
	}
	made := &entry{name: name, parent: dir}
	at, _, ok := fs.mirrored.pathOf(made)
	if !ok {
		return
	}
	now, err := statReal(at)
	if err != nil {
		return
	}
	switch now.kind {
	case os.ModeDir:
		made = newDirectory()
	case os.ModeSymlink:
		made = fs.mirrored.m.linkFrom(at, now.text)
	default: // a file; load reads its content
	}
	made.lastStat = &now
	resolvedPath{fs: fs, parent: dir, name: name}.attach(made)
}

func isWindowsName(name string) bool {
	return utf8.ValidString(name) && !strings.Contains(name, winpath.Separator) && checkName(name) == nil
}

// load reads the content of a file that another process wrote.
func (fs *fileSystem) load(e *entry) error {
	if fs.mirrored == nil || e.lastStat == nil || e.lastStat.kind != 0 || e.lastStat.loaded || e.children != nil || isLink(e) {
		return nil
	}
	at, _, ok := fs.mirrored.pathOf(e)
	if !ok {
		return nil
	}
	content, err := readReal(at, e.lastStat.size)
	if err != nil {
		return err
	}
	e.content, e.lastStat.loaded = content, true
	return nil
}

// readReal reads a regular file. If it has become a link or a pipe meanwhile, readReal fails
// without blocking.
func readReal(at realDir, size int64) ([]byte, error) {
	if size > maxContent {
		return nil, fmt.Errorf("%s: %d bytes exceed the limit of %d", at.path, size, maxContent)
	}
	before, err := at.Root.Lstat(at.path)
	if err != nil {
		return nil, err
	}
	file, err := at.Root.OpenFile(at.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	opened, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() || !os.SameFile(before, opened) {
		return nil, fmt.Errorf("%s: replaced while the node read it", at.path)
	}
	return io.ReadAll(io.LimitReader(file, maxContent))
}

func (e *entry) length() int64 {
	if e.lastStat != nil && e.lastStat.kind == 0 && !e.lastStat.loaded {
		return e.lastStat.size
	}
	return int64(len(e.content))
}

// tagForeignLink is IO_REPARSE_TAG_LX_SYMLINK: a Linux link, which Windows does not follow.
// https://learn.microsoft.com/openspecs/windows_protocols/ms-fscc/c8e77b37-3909-4fe6-a4ea-2b9d423b1ee4
const tagForeignLink win.ReparseTag = 0xa000001d
