package winsim

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

// directory is win.Tree on an open directory, or on the whole node if none is open.
type directory struct {
	node   *Node
	open   *entry     // nil: names are paths
	volume *volume    // of the open directory
	above  *directory // in which it was found, if that was open
	name   string     // there; without one, its path
}

func (n *Node) directory() directory { return directory{node: n} }

// object is what faults know an entry by: its path when it was found. It is put together
// anew each time, because the paths of a deep tree take more memory than the tree.
func (d directory) object(name string) string {
	names := []string{name}
	for at := &d; at != nil && at.open != nil; at = at.above {
		names = append(names, at.name)
	}
	slices.Reverse(names)
	return strings.Join(names, winpath.Separator)
}

// find looks an entry up. The node's mutex is held.
func (d directory) find(name string) (place, error) {
	if d.open == nil {
		return d.node.existing(name, false)
	}
	at := place{volume: d.volume, parent: d.open, name: name, entry: d.open.children[winpath.Fold(name)]}
	if at.entry == nil {
		return at, winerr.FileNotFound
	}
	return at, nil
}

// changeable is find for calls that change what they find.
func (d directory) changeable(name string) (place, error) {
	at, err := d.find(name)
	if err == nil {
		err = at.volume.writable()
	}
	return at, err
}

func (d directory) ReparsePoint(ctx context.Context, name string) (win.ReparsePoint, error) {
	if err := d.node.enter(ctx, "ReparsePoint", d.object(name)); err != nil {
		return win.ReparsePoint{}, err
	}
	d.node.lock()
	defer d.node.mu.Unlock()
	at, err := d.find(name)
	switch {
	case err != nil:
		return win.ReparsePoint{}, err
	case at.entry.link == nil:
		return win.ReparsePoint{}, winerr.NotAReparsePoint
	}
	return *at.entry.link, nil
}

// listBatch is how many entries one emulated call returns, about what fits into a
// buffer of 64 KiB on Windows.
const listBatch = 256

func (d directory) ListDirectory(ctx context.Context, name string, each func(win.Tree, []win.DirEntry) error) error {
	opened, entries, err := d.list(ctx, name)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(entries, listBatch) {
		if err := d.node.enter(ctx, "ListDirectory", d.object(name)); err != nil {
			return err
		}
		if err := each(opened, batch); err != nil {
			return err
		}
	}
	return nil
}

func (d directory) list(ctx context.Context, name string) (opened directory, entries []win.DirEntry, err error) {
	if err := d.node.enter(ctx, "ListDirectory", d.object(name)); err != nil {
		return directory{}, nil, err
	}
	d.node.lock()
	defer d.node.mu.Unlock()
	at, err := d.find(name)
	switch {
	case err != nil:
		return directory{}, nil, err
	case at.entry.children == nil || isLink(at.entry):
		return directory{}, nil, winerr.Directory
	}
	for _, key := range slices.Sorted(maps.Keys(at.entry.children)) {
		child := at.entry.children[key]
		entries = append(entries, win.DirEntry{Name: child.name, FileInfo: child.info()})
	}
	return directory{node: d.node, open: at.entry, volume: at.volume, above: &d, name: name}, entries, nil
}

func (d directory) Remove(ctx context.Context, name string) error {
	if err := d.node.enter(ctx, "Remove", d.object(name)); err != nil {
		return err
	}
	d.node.lock()
	defer d.node.mu.Unlock()
	at, err := d.changeable(name)
	switch {
	case err != nil:
		return err
	case at.parent == nil:
		return winerr.AccessDenied
	case at.entry.held > 0:
		return winerr.SharingViolation
	case !isLink(at.entry) && len(at.entry.children) > 0:
		return winerr.DirNotEmpty
	}
	at.remove()
	return nil
}

func (d directory) DeleteMountPoint(ctx context.Context, name string) error {
	if err := d.node.enter(ctx, "DeleteMountPoint", d.object(name)); err != nil {
		return err
	}
	d.node.lock()
	defer d.node.mu.Unlock()
	at, err := d.changeable(name)
	if err != nil {
		return err
	}
	if at.entry.link == nil {
		return winerr.NotAReparsePoint
	}
	if _, mounted := at.entry.link.MountedVolume(); !mounted {
		return winerr.InvalidParameter
	}
	at.entry.link = nil
	return nil
}
