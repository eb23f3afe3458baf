package winsim

import (
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// entry is a file, a directory or a named stream. Names keep their case; lookups ignore it.
type entry struct {
	name      string
	shortName string // generated 8.3 name, or ""
	parent    *entry // nil for the root of a volume; the file of a stream
	readOnly  bool
	isStream  bool
	removed   bool              // deleted, but maybe still open
	held      int               // open without sharing: Remove fails with ERROR_SHARING_VIOLATION (32)
	children  map[string]*entry // nil for a file; keys are folded names
	aliases   map[string]*entry // children by short name
	streams   map[string]*entry // named ones; keys are folded names
	content   []byte            // of a file
	link      *link             // nil without a reparse point
	changedAt time.Time         // zero if it is older than the node
	lastStat  *realStat         // nil if it is not mirrored
}

func newDirectory() *entry { return &entry{children: map[string]*entry{}} }

// file returns the file or directory of a stream, and any other entry itself.
func (e *entry) file() *entry {
	if e.isStream {
		return e.parent
	}
	return e
}

// info describes the file even if e is a stream of it, except that no stream is a directory.
func (e *entry) info() win.FileInfo {
	file := e.file()
	info := win.FileInfo{Directory: e.children != nil, ReadOnly: file.readOnly}
	if file.link != nil {
		info.Tag = file.link.Tag
	}
	return info
}

// child finds an entry by its long or short name. It does not allocate: it runs for every
// component of every path.
func (e *entry) child(name string) *entry {
	var buffer [128]byte
	folded := winpath.AppendFold(buffer[:0], name)
	if found := e.children[string(folded)]; found != nil {
		return found
	}
	return e.aliases[string(folded)]
}

// inUse reports whether the entry or one of its streams is open.
// https://learn.microsoft.com/windows/win32/fileio/file-streams
func (e *entry) inUse() bool {
	for _, stream := range e.streams {
		if stream.held > 0 {
			return true
		}
	}
	return e.held > 0
}

func (e *entry) anyInUse() bool {
	if e.inUse() {
		return true
	}
	for _, child := range e.children {
		if child.anyInUse() {
			return true
		}
	}
	return false
}

// resolvedPath is the result of walking a path: where a name is or would be.
type resolvedPath struct {
	volume *volume
	fs     *fileSystem
	parent *entry // nil for the root of a volume; the file of a named stream
	name   string
	entry  *entry // nil if missing
	suffix suffix // of a name with a colon
}

// lookUp finds a name in a directory. Last is false if the path continues after it.
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

// checkName refuses names that NTFS refuses. Win32 refuses more, so it reaches "NUL" or "dir."
// only with the prefix \\?\.
func checkName(name string) error {
	isBad := func(r rune) bool { return r < 0x20 || strings.ContainsRune(`<>"/|?*:`, r) }
	if name == "" || name == "." || name == ".." ||
		winpath.UTF16Len(name) > winpath.MaxComponent || strings.ContainsFunc(name, isBad) {
		return winerr.InvalidName
	}
	return nil
}

func (at resolvedPath) add(e *entry) {
	at.attach(e)
	at.fs.show(e)
}

// attach is add without the mirror.
func (at resolvedPath) attach(e *entry) {
	e.name, e.parent, e.removed = at.name, at.parent, false
	at.parent.children[winpath.Fold(at.name)] = e
	if at.fs.shortNames {
		at.parent.giveShortName(e, at.parent.newShortName(e.name))
	}
}

// detach takes an entry out of its directory, whichever name found it.
func (at resolvedPath) detach() {
	if at.entry.isStream {
		delete(at.parent.streams, winpath.Fold(at.entry.name))
		return
	}
	at.parent.giveShortName(at.entry, "")
	delete(at.parent.children, winpath.Fold(at.entry.name))
}

// remove deletes an entry with its content. It fails only for a mirrored one.
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

func (fs *fileSystem) addFiles(files []File) *ModelError {
	for i, f := range files {
		err := f.validate(nil)
		if err == nil {
			err = fs.addFile(f, f.entry())
		}
		if err != nil {
			return err.at("files", i)
		}
	}
	return nil
}

// addFile adds a file of the model, with missing parents. Its path starts at the root. With the prefix \\?\ it is used
// as is, and can name a stream of a file before it.
func (fs *fileSystem) addFile(f File, e *entry) *ModelError {
	names, err := fileNames(f.Path)
	if err != nil {
		return problem("path", "%v", err)
	}
	at := resolvedPath{fs: fs, entry: fs.root}
	for i, name := range names {
		if at.entry == nil {
			at.entry = newDirectory()
			at.add(at.entry)
		}
		if at.entry.children == nil || isLink(at.entry) {
			return problem("path", "a parent of %s is not a directory", f.Path)
		}
		if file, stream, ok := strings.Cut(name, ":"); ok && i == len(names)-1 {
			if file != "" {
				at.entry = at.entry.child(file)
			}
			if at.entry == nil || e.children != nil || checkName(stream) != nil {
				return problem("path", "%s is not a stream of a file before it", f.Path)
			}
			at.entry.addStream(stream, e)
			return nil
		}
		at = resolvedPath{fs: fs, parent: at.entry, name: name, entry: at.entry.child(name)}
	}
	switch {
	case at.entry != nil && at.entry.children != nil && !isLink(at.entry) && e.children != nil && !isLink(e):
		at.entry.readOnly = at.entry.readOnly || e.readOnly
		return nil
	case at.parent == nil || at.entry != nil && (len(at.entry.children) > 0 || at.entry.children == nil || isLink(at.entry)):
		return problem("path", "%s already exists", f.Path)
	case at.entry != nil:
		at.detach()
	}
	at.add(e)
	if f.Short != "" {
		at.parent.giveShortName(e, winpath.Fold(f.Short))
	}
	return nil
}

func fileNames(path string) ([]string, error) {
	verbatim, ok := strings.CutPrefix(path, `\\?\`)
	if !ok {
		clean, err := winpath.Clean(`C:\` + strings.TrimPrefix(path, `\`))
		return winpath.Components(clean), err
	}
	names := strings.Split(verbatim, winpath.Separator)
	for i, name := range names {
		if i == len(names)-1 {
			name = strings.ReplaceAll(name, ":", "") // of a stream
			if name == "" {
				return nil, winerr.InvalidName
			}
		}
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	return names, nil
}
