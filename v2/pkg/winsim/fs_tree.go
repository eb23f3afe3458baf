package winsim

import (
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// entry is a file or a directory. Names keep their case; lookups ignore it.
type entry struct {
	name      string
	shortName string // generated 8.3 name, or ""
	parent    *entry // nil for the root of a volume
	readOnly  bool
	removed   bool              // deleted, but maybe still open
	held      int               // open without sharing: Remove fails with ERROR_SHARING_VIOLATION (32)
	children  map[string]*entry // nil for a file; keys are folded names
	aliases   map[string]*entry // children by short name
	content   []byte            // of a file
	link      *link             // nil without a reparse point
	changedAt time.Time         // zero if it is older than the node
	lastStat  *realStat         // nil if it is not mirrored
}

func newDirectory() *entry { return &entry{children: map[string]*entry{}} }

func (e *entry) info() win.FileInfo {
	info := win.FileInfo{Directory: e.children != nil, ReadOnly: e.readOnly}
	if e.link != nil {
		info.Tag = e.link.Tag
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

func (e *entry) anyInUse() bool {
	if e.held > 0 {
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
	parent *entry // nil for the root of a volume
	name   string
	entry  *entry // nil if missing
}

// lookUp finds a name in a directory. NTFS reads a name as file:stream:type, so dir::$INDEX_ALLOCATION is the directory.
// Names at the seam should not contain a colon; if a check is missing, the call reaches the file whatever the stream is.
// https://learn.microsoft.com/openspecs/windows_protocols/ms-fscc/c54dec26-1551-4d3a-a0ea-4fa40f848eb3
func (at resolvedPath) lookUp(dir *entry, name string) (resolvedPath, error) {
	name, _, _ = strings.Cut(name, ":")
	at = resolvedPath{volume: at.volume, fs: at.fs, parent: dir, name: name}
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
// as is.
func (fs *fileSystem) addFile(f File, e *entry) *ModelError {
	names, err := fileNames(f.Path)
	if err != nil {
		return problem("path", "%v", err)
	}
	at := resolvedPath{fs: fs, entry: fs.root}
	for _, name := range names {
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
	for _, name := range names {
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	return names, nil
}
