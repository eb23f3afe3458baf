package winsim

import (
	"context"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

type directory struct {
	files  *files
	opened resolvedPath
	closed *bool
}

// String is the real path of the directory.
func (d directory) String() string { return displayPath(d.opened.volume, d.opened.entry) }

func (t *files) openDirectory(at resolvedPath) (win.Directory, error) {
	switch {
	case isLink(at.entry):
		return nil, winerr.ReparsePointEncounter
	case at.entry.children == nil:
		return nil, winerr.Directory
	}
	t.openDirectories++
	return directory{files: t, opened: at, closed: new(bool)}, nil
}

// Close closes the directory. It panics if the directory is closed, to find the mistake in a
// test.
func (d directory) Close() {
	defer d.files.lock()()
	if *d.closed {
		panic("winsim: the directory " + d.String() + " is closed twice")
	}
	*d.closed = true
	d.files.openDirectories--
}

// OpenDirectories returns the number of open directories, to find leaks.
func (n *Node) OpenDirectories() int {
	defer n.lock()()
	return n.files.openDirectories
}

// on runs a call about an entry, which may be missing.
func (d directory) on(name string, do func(resolvedPath) error) error {
	defer d.files.lock()()
	if *d.closed {
		panic("winsim: a call in the directory " + d.String() + ", which is closed")
	}
	at, err := d.find(name)
	if err != nil {
		return err
	}
	return do(at)
}

// onExisting runs a call about an entry that must exist.
func (d directory) onExisting(name string, do func(resolvedPath) error) error {
	return d.on(name, func(at resolvedPath) error {
		if at.entry == nil {
			return winerr.FileNotFound
		}
		return do(at)
	})
}

// find looks up an entry. mu is held. NtCreateFile opens a directory again for an empty name.
func (d directory) find(name string) (resolvedPath, error) {
	if err := d.usable(); err != nil {
		return resolvedPath{}, err
	}
	if name == "" {
		return d.opened, nil
	}
	if l := d.opened.entry.link; l != nil && l.toOlder != 0 {
		return resolvedPath{}, l.toOlder
	}
	return d.opened.lookUp(d.opened.entry, name)
}

// usable returns the error of any request after the volume of the open directory has changed.
func (d directory) usable() error {
	fs, err := d.files.mounted(d.opened.volume)
	if err == nil && fs != d.opened.fs {
		err = winerr.FileInvalid
	}
	return err
}

func readName[T any](d directory, call, name string, ask func(resolvedPath) (T, error)) (T, error) {
	return read(d.onExisting, name, func(at resolvedPath) (T, error) {
		d.files.observe(call, at, false)
		return ask(at)
	})
}

func (d directory) FileInfo(_ context.Context, name string) (win.FileInfo, error) {
	return readName(d, "FileInfo", name, resolvedPath.info)
}

func (d directory) Location(_ context.Context, name string) (string, error) {
	return readName(d, "Location", name, resolvedPath.location)
}

func (d directory) ReparsePoint(_ context.Context, name string) (win.ReparsePoint, error) {
	return readName(d, "ReparsePoint", name, resolvedPath.reparsePoint)
}

func (d directory) Open(_ context.Context, name string) (win.Directory, error) {
	return readName(d, "OpenDirectory", name, d.files.openDirectory)
}

func (d directory) CreateDirectory(_ context.Context, name string) error {
	return d.create("CreateDirectory", name, newDirectory())
}

func (d directory) CreateDirectoryLink(_ context.Context, name, target string) error {
	return d.create("CreateDirectoryLink", name, newLink(winlayout.SymlinkTo(target)))
}

func (d directory) ReadFile(_ context.Context, name string) (string, error) {
	return readName(d, "ReadFile", name, func(at resolvedPath) (string, error) {
		if at.entry.children != nil {
			return "", winerr.AccessDenied
		}
		err := at.fs.load(at.entry)
		return string(at.entry.content[:min(len(at.entry.content), win.MaxFile)]), err
	})
}

func (d directory) ReplaceFile(_ context.Context, name, content string) error {
	return d.on(name, func(at resolvedPath) error {
		if at.entry != nil {
			if at.entry.children != nil || at.entry.readOnly || at.entry.held > 0 {
				return winerr.AccessDenied
			}
			if err := at.remove(); err != nil {
				return err
			}
			at.entry = nil
		}
		return d.files.createEntry("ReplaceFile", at, &entry{content: []byte(content)})
	})
}

func (d directory) create(call, name string, e *entry) error {
	return d.on(name, func(at resolvedPath) error {
		if at.entry == nil && d.opened.entry.removed {
			return winerr.AccessDenied // deleted, but still open
		}
		return d.files.createEntry(call, at, e)
	})
}

// createEntry adds an entry where there is none. t.mu is held.
func (t *files) createEntry(call string, at resolvedPath, e *entry) error {
	if at.entry != nil {
		return winerr.AlreadyExists
	}
	if err := at.insert(e); err != nil {
		return err
	}
	e.changedAt = t.date()
	at.entry = e
	t.observe(call, at, true)
	return nil
}

// olderThanTheNode is when the files of a model were made.
var olderThanTheNode = epoch.AddDate(0, 0, -1)

func (d directory) ChangedAt(_ context.Context, name string) (time.Time, error) {
	return readName(d, "ChangedAt", name, func(at resolvedPath) (time.Time, error) { return at.changedAt(), nil })
}

func (at resolvedPath) changedAt() time.Time {
	if changed := at.entry.changedAt; !changed.IsZero() {
		return changed
	}
	return olderThanTheNode
}

// changeable returns the error of a change of an entry that refuses it.
func (at resolvedPath) changeable() error {
	if err := at.volume.writable(); err != nil {
		return err
	}
	if at.entry.held > 0 {
		return winerr.SharingViolation
	}
	return nil
}

func (d directory) RemoveLink(_ context.Context, name string, link win.ReparsePoint, changedAt time.Time) (bool, error) {
	return read(d.onExisting, name, func(at resolvedPath) (bool, error) {
		at.fs.refresh(at.entry)
		if err := at.changeable(); err != nil {
			return false, err
		}
		if point, err := at.reparsePoint(); err != nil || point != link || !at.changedAt().Equal(changedAt) {
			if winerr.CodeOf(err) == winerr.NotAReparsePoint {
				return false, nil
			}
			return false, err
		}
		d.files.observe("RemoveLink", at, true)
		return true, at.remove()
	})
}

func (d directory) Remove(_ context.Context, name string) error {
	return d.onExisting(name, func(at resolvedPath) error {
		at.fs.refresh(at.entry)
		switch err := at.changeable(); {
		case err != nil:
			return err
		case !isLink(at.entry) && len(at.entry.children) > 0:
			return winerr.DirNotEmpty
		}
		d.files.observe("Remove", at, true)
		return at.remove()
	})
}
