package winsim

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// show creates a new entry with its content in the real directory.
func (fs *fileSystem) show(e *entry) {
	if fs.mirrored != nil {
		fs.mirrored.show(e)
	}
}

func (t *realTree) show(e *entry) {
	if at, home, ok := t.pathOf(e); ok && !home {
		t.write(at, e)
	}
	if e.children == nil || isLink(e) {
		return
	}
	for _, child := range e.children {
		t.show(child)
	}
}

// write creates one name. What cannot be created, for example because of its name, is in memory
// only.
func (t *realTree) write(at realDir, e *entry) {
	e.lastStat = nil
	err := t.create(at, e)
	if err == nil {
		var now realStat
		if now, err = statReal(at); err == nil {
			now.loaded = true
			e.lastStat = &now
		}
	}
	if err != nil {
		t.m.reportOnce("show %s: %w", at.path, err)
	}
}

func (t *realTree) create(at realDir, e *entry) error {
	// A link that this machine cannot create becomes an empty directory or file.
	if isLink(e) && t.createLink(at, e) {
		return nil
	}
	if e.children != nil {
		err := at.Root.Mkdir(at.path, 0o700)
		if errors.Is(err, fs.ErrExist) {
			return nil // the next refresh finds another kind
		}
		return err
	}
	// Never write to an existing file or link.
	file, err := at.Root.OpenFile(at.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if !isLink(e) {
		_, err = file.Write(e.content)
	}
	return errors.Join(err, file.Close())
}

// rewrite replaces the real entry after a change of kind or content.
func (fs *fileSystem) rewrite(e *entry) {
	if fs.mirrored == nil {
		return
	}
	at, home, ok := fs.mirrored.pathOf(e)
	if !ok || home {
		return
	}
	remove := at.Root.Remove
	if e.children != nil && !isLink(e) && e.lastStat != nil && e.lastStat.kind == os.ModeDir {
		// A mounted folder that was shown as a directory. What another process wrote there was
		// never on the volume.
		remove = at.Root.RemoveAll
	}
	if err := remove(at.path); err != nil && !isMissing(err) {
		fs.mirrored.m.reportOnce("replace %s: %w", at.path, err)
	}
	fs.mirrored.write(at, e)
}

// hide removes an entry from the real directory before it is removed from memory. It does not
// follow links. The call returns its error.
func (fs *fileSystem) hide(e *entry) error {
	if fs.mirrored == nil {
		return nil
	}
	for _, b := range fs.mirrored.bases {
		if b.within(e) {
			fs.mirrored.empty(b)
		}
	}
	if e.lastStat == nil {
		return nil
	}
	at, home, ok := fs.mirrored.pathOf(e)
	if !ok || home {
		return nil
	}
	if err := removeReal(at, e); err != nil && !isMissing(err) {
		fs.mirrored.m.reportOnce("remove %s: %w", at.path, err)
		return realCode(err)
	}
	return nil
}

// within reports whether a mirrored directory of a drive is the entry or inside it. Such a
// directory is emptied but never removed.
func (b realDir) within(e *entry) bool {
	if len(b.prefix) == 0 {
		return false
	}
	names := winpath.Components(pathFrom(`C:\`, e))
	return len(names) <= len(b.prefix) && slices.EqualFunc(names, b.prefix[:len(names)], winpath.Equal)
}

// removeReal removes one name. It keeps a directory in which another process just created
// something.
func removeReal(at realDir, e *entry) error {
	instead := isLink(e) && e.lastStat != nil && e.lastStat.kind == fs.ModeDir // of a link
	if len(e.children) > 0 || instead {
		return at.Root.RemoveAll(at.path)
	}
	return at.Root.Remove(at.path)
}
