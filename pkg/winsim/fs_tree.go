package winsim

import (
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// entry is a file or directory, or a named stream of one. Names keep their case and are
// found without it.
type entry struct {
	name      string
	shortName string // generated besides, or ""
	parent    *entry // nil for the root of a volume; of a stream the file it belongs to
	readOnly  bool
	isStream  bool
	removed   bool              // it has no name any more, but may be open
	held      int               // open without sharing: Remove answers 32
	children  map[string]*entry // nil for a file; keys are folded names
	aliases   map[string]*entry // the same by their short names
	streams   map[string]*entry // named ones; keys are folded names
	content   []byte            // of a file
	link      *link             // nil without a reparse point
	lastStat  *realStat         // of a mirrored one, unless it could not be shown
}

func newDirectory() *entry { return &entry{children: map[string]*entry{}} }

// file is the file or directory that a stream belongs to; everything else is one itself.
func (e *entry) file() *entry {
	if e.isStream {
		return e.parent
	}
	return e
}

// info is of the file even if a stream of it was opened, except that no stream is a
// directory.
func (e *entry) info() win.FileInfo {
	file := e.file()
	info := win.FileInfo{Directory: e.children != nil, ReadOnly: file.readOnly}
	if file.link != nil {
		info.Tag = file.link.Tag
	}
	return info
}

// child finds a name in a directory, the long one or the short one. It makes no garbage:
// it runs for every component of every path.
func (e *entry) child(name string) *entry {
	var buffer [128]byte
	folded := winpath.AppendFold(buffer[:0], name)
	if found := e.children[string(folded)]; found != nil {
		return found
	}
	return e.aliases[string(folded)]
}

// inUse reports whether somebody has it open, or one of its streams.
// https://learn.microsoft.com/windows/win32/fileio/file-streams
func (e *entry) inUse() bool {
	for _, stream := range e.streams {
		if stream.held > 0 {
			return true
		}
	}
	return e.held > 0
}

// resolvedPath is the result of walking a path: where a name is, or would be.
type resolvedPath struct {
	volume *volume
	fs     *fileSystem
	parent *entry // nil for the root of a volume; of a named stream its file
	name   string
	entry  *entry // nil if there is none of that name
	suffix suffix // what the name said besides
}

// lookUp is the place of a name in a directory. Last tells whether names follow it in a path.
func (at resolvedPath) lookUp(dir *entry, name string, last bool) (resolvedPath, error) {
	at = resolvedPath{volume: at.volume, fs: at.fs, parent: dir, name: name}
	if strings.IndexByte(name, ':') >= 0 {
		return at.lookUpStream(last)
	}
	if err := checkName(name); err != nil {
		return resolvedPath{}, err
	}
	at.fs.refreshName(dir, name)
	at.entry = dir.child(name)
	return at, nil
}

// checkName refuses what NTFS would refuse. Win32 refuses more, and so does not reach
// "NUL" or "dir." without the prefix \\?\.
func checkName(name string) error {
	isBad := func(r rune) bool { return r < 0x20 || strings.ContainsRune(`<>"/|?*:`, r) }
	if name == "" || name == "." || name == ".." ||
		winpath.UTF16Len(name) > winpath.MaxComponent || strings.ContainsFunc(name, isBad) {
		return winerr.InvalidName
	}
	return nil
}

// add puts an entry where nothing was.
func (at resolvedPath) add(e *entry) {
	at.attach(e)
	at.fs.show(e)
}

// attach is add in memory only.
func (at resolvedPath) attach(e *entry) {
	e.name, e.parent, e.removed = at.name, at.parent, false
	at.parent.children[winpath.Fold(at.name)] = e
	if at.fs.shortNames {
		at.parent.giveShortName(e, at.parent.newShortName(e.name))
	}
}

// detach takes an entry out of its directory, by whatever name it was found.
func (at resolvedPath) detach() {
	if at.entry.isStream {
		delete(at.parent.streams, winpath.Fold(at.entry.name))
		return
	}
	at.parent.giveShortName(at.entry, "")
	delete(at.parent.children, winpath.Fold(at.entry.name))
}

// remove takes an entry out of its directory for good, with all that is in it. It fails only
// in a real directory.
func (at resolvedPath) remove() error {
	if err := at.fs.hide(at.entry); err != nil {
		return err
	}
	at.detach()
	at.entry.markRemoved()
	return nil
}

func (e *entry) markRemoved() {
	e.removed = true
	for _, child := range e.children {
		child.markRemoved()
	}
	clear(e.children)
	e.aliases = nil
}

// addFile adds an entry of the model to a tree, with missing parents; its path begins at the
// root.
func (fs *fileSystem) addFile(f File) *ModelError {
	clean, err := winpath.Clean(`C:\` + strings.TrimPrefix(f.Path, `\`))
	if err != nil {
		return problem("path", "%v", err)
	}
	if err := f.validate(nil); err != nil {
		return err
	}
	at := resolvedPath{fs: fs, entry: fs.root}
	for _, name := range winpath.Components(clean) {
		if at.entry == nil {
			at.entry = newDirectory()
			at.add(at.entry)
		}
		if at.entry.children == nil || isLink(at.entry) {
			return problem("path", "a parent of %s is not a directory", f.Path)
		}
		at = resolvedPath{fs: fs, parent: at.entry, name: name, entry: at.entry.child(name)}
	}
	switch {
	case at.parent == nil || at.entry != nil && (len(at.entry.children) > 0 || at.entry.children == nil || isLink(at.entry)):
		return problem("path", "%s already exists", f.Path)
	case at.entry != nil:
		at.detach()
	}
	at.add(f.entry())
	return nil
}
