package winsim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// directory is an open directory.
type directory struct {
	node   *Node
	opened resolvedPath
	closed *bool

	// What it is called in faults: the directory in which it was found and its name
	// there, or without one a path.
	above *directory
	name  string
	path  win.Path
}

// open opens the entry as the given directory.
func (at resolvedPath) open(d directory) (win.Directory, error) {
	switch {
	case isLink(at.entry):
		return nil, winerr.ReparsePointEncounter
	case at.entry.children == nil:
		return nil, winerr.Directory
	}
	d.opened, d.closed = at, new(bool)
	d.node.openDirectories++
	return d, nil
}

// Close closes the directory. It panics if the directory is closed, to find the mistake in a
// test.
func (d directory) Close() {
	d.node.lock()
	defer d.node.mu.Unlock()
	if *d.closed {
		panic("winsim: the directory " + d.object("") + " is closed twice")
	}
	*d.closed = true
	d.node.openDirectories--
}

// OpenDirectories returns the number of open directories. Tests use it to find leaks.
func (n *Node) OpenDirectories() int {
	n.lock()
	defer n.mu.Unlock()
	return n.openDirectories
}

// object is the name of an entry for faults: its path when it was found. It is built on demand,
// because the paths of a deep tree take more memory than the tree.
func (d directory) object(name string) string {
	var names []string
	if name != "" {
		names = append(names, name)
	}
	at := &d
	for ; at.above != nil; at = at.above {
		if at.name != "" {
			names = append(names, at.name)
		}
	}
	if len(names) == 0 {
		return at.path.String()
	}
	names = append(names, strings.TrimSuffix(at.path.String(), winpath.Separator))
	slices.Reverse(names)
	return strings.Join(names, winpath.Separator)
}

// beginCall is Node.beginCallOn for an entry.
func (d directory) beginCall(ctx context.Context, call, name string, aliases ...string) error {
	return d.node.beginCallOn(ctx, call, func() []string { return append(aliases, d.object(name)) })
}

// lookUp begins a call on an entry that may be missing. Without an error, the caller unlocks
// the node.
func (d directory) lookUp(ctx context.Context, call, name string, aliases ...string) (resolvedPath, error) {
	if err := d.beginCall(ctx, call, name, aliases...); err != nil {
		return resolvedPath{}, err
	}
	d.node.lock()
	if *d.closed {
		d.node.mu.Unlock()
		panic("winsim: " + call + " in the directory " + d.object("") + ", which is closed")
	}
	at, err := d.find(name)
	if err != nil {
		d.node.mu.Unlock()
	}
	return at, err
}

// find looks up an entry. n.mu is held. NtCreateFile opens a directory again for an empty name.
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
	return d.opened.lookUp(d.opened.entry, name, true)
}

// usable returns the error of any request after the volume of the open directory has changed.
func (d directory) usable() error {
	fs, err := d.node.mounted(d.opened.volume)
	if err == nil && fs != d.opened.fs {
		err = winerr.FileInvalid
	}
	return err
}

// lookUpExisting is lookUp for an entry that must exist.
func (d directory) lookUpExisting(ctx context.Context, call, name string) (resolvedPath, error) {
	at, err := d.lookUp(ctx, call, name)
	if err == nil && at.entry == nil {
		d.node.mu.Unlock()
		err = winerr.FileNotFound
	}
	return at, err
}

// readName finds an existing entry of a directory for a call that only reads.
func readName[T any](ctx context.Context, d directory, call, name string, read func(resolvedPath) (T, error)) (T, error) {
	at, err := d.lookUpExisting(ctx, call, name)
	if err != nil {
		var none T
		return none, err
	}
	defer d.node.mu.Unlock()
	d.node.observe(call, at, false)
	return read(at)
}

func (d directory) FileInfo(ctx context.Context, name string) (win.FileInfo, error) {
	return readName(ctx, d, "FileInfo", name, resolvedPath.info)
}

func (d directory) Location(ctx context.Context, name string) (string, error) {
	return readName(ctx, d, "Location", name, resolvedPath.location)
}

func (d directory) ReparsePoint(ctx context.Context, name string) (win.ReparsePoint, error) {
	return readName(ctx, d, "ReparsePoint", name, resolvedPath.reparsePoint)
}

func (d directory) Open(ctx context.Context, name string) (win.Directory, error) {
	return readName(ctx, d, "OpenDirectory", name, func(at resolvedPath) (win.Directory, error) {
		return at.open(directory{node: d.node, above: &d, name: name})
	})
}

// CreateDirectory creates one directory.
func (d directory) CreateDirectory(ctx context.Context, name string) error {
	return d.create(ctx, "CreateDirectory", name, newDirectory())
}

// CreateDirectoryLink creates a directory symbolic link.
func (d directory) CreateDirectoryLink(ctx context.Context, name, target string) error {
	return d.create(ctx, "CreateDirectoryLink", name, newLink(winlayout.SymlinkTo(target)))
}

func (d directory) create(ctx context.Context, call, name string, e *entry) error {
	at, err := d.lookUp(ctx, call, name)
	if err != nil {
		return err
	}
	defer d.node.mu.Unlock()
	if at.entry == nil && at.suffix.canBeDirectory() && d.opened.entry.removed {
		return winerr.AccessDenied // deleted, but still open
	}
	return d.node.createEntry(call, at, e)
}

// createEntry adds an entry where there is none. n.mu is held.
func (n *Node) createEntry(call string, at resolvedPath, e *entry) error {
	switch {
	case at.entry != nil:
		return winerr.AlreadyExists
	case !at.suffix.canBeDirectory():
		return winerr.Directory
	}
	if err := at.volume.writable(); err != nil {
		return err
	}
	if err := e.link.checkFits(at.fs); err != nil {
		return err
	}
	n.changed()
	e.changedAt = n.clock.now()
	at.add(e)
	at.entry = e
	n.observe(call, at, true)
	return nil
}

// olderThanTheNode is when the files of a model were made.
var olderThanTheNode = epoch.AddDate(0, 0, -1)

// ChangedAt is when an entry was made or its reparse point changed.
func (d directory) ChangedAt(ctx context.Context, name string) (time.Time, error) {
	return readName(ctx, d, "ChangedAt", name, func(at resolvedPath) (time.Time, error) { return at.changedAt(), nil })
}

func (at resolvedPath) changedAt() time.Time {
	if changed := at.entry.file().changedAt; !changed.IsZero() {
		return changed
	}
	return olderThanTheNode
}

// RemoveLink deletes one name if it is a given link.
func (d directory) RemoveLink(ctx context.Context, name string, link win.ReparsePoint, changedAt time.Time) (removed bool, err error) {
	at, err := d.lookUpExisting(ctx, "RemoveLink", name)
	if err != nil {
		return false, err
	}
	defer d.node.mu.Unlock()
	at.fs.refresh(at.entry)
	switch err := at.volume.writable(); {
	case err != nil:
		return false, err
	case at.entry.inUse():
		return false, winerr.SharingViolation
	}
	if point, err := at.reparsePoint(); err != nil || point != link || !at.changedAt().Equal(changedAt) {
		if winerr.CodeOf(err) == winerr.NotAReparsePoint {
			return false, nil
		}
		return false, err
	}
	d.node.changed()
	d.node.observe("RemoveLink", at, true)
	return true, at.remove()
}

// Remove deletes one name.
func (d directory) Remove(ctx context.Context, name string) error {
	at, err := d.lookUpExisting(ctx, "Remove", name)
	if err != nil {
		return err
	}
	defer d.node.mu.Unlock()
	at.fs.refresh(at.entry)
	switch err := at.volume.writable(); {
	case err != nil:
		return err
	case at.entry.inUse():
		return winerr.SharingViolation
	case !isLink(at.entry) && len(at.entry.children) > 0:
		return winerr.DirNotEmpty
	}
	d.node.changed()
	d.node.observe("Remove", at, true)
	return at.remove()
}
