package winsim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

// The methods below are how a test arranges and inspects a node. They are not counted
// as calls and no fault hits them.

// Mkdir makes a directory and its missing parents; links on the way are followed.
func (n *Node) Mkdir(path string) error { return n.create(File{Path: path}) }

// WriteFile makes or replaces a file; missing parents are created.
func (n *Node) WriteFile(path, content string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := n.walk(path, true)
	if err == nil && at.entry != nil && at.entry.children == nil {
		at.entry.content = []byte(content)
		return nil
	}
	return n.insert(path, &entry{content: []byte(content)})
}

// ReadFile returns the content of a file.
func (n *Node) ReadFile(path string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := n.existing(path, true)
	switch {
	case err != nil:
		return "", winerr.Wrap("read", path, err)
	case at.entry.children != nil:
		return "", winerr.New(winerr.Invalid, "read", path, "it is a directory")
	}
	return string(at.entry.content), nil
}

// Symlink makes a directory symbolic link at path. The target may be anything:
// absolute, relative, on a server, missing.
func (n *Node) Symlink(path, target string) error {
	return n.createLink(File{Path: path, Symlink: target}, target)
}

// Junction makes a junction at path to an absolute path on a local drive.
func (n *Node) Junction(path, target string) error {
	return n.createLink(File{Path: path, Junction: target}, target)
}

// MountFolder makes a mounted folder at path that shows a volume of the node.
func (n *Node) MountFolder(path, volumeID string) error {
	return n.createLink(File{Path: path, Volume: volumeID}, volumeID)
}

// SetVolumeState changes how a volume answers from now on.
func (n *Node) SetVolumeState(volumeID string, state VolumeState) error {
	if !state.known() {
		return winerr.New(winerr.Invalid, "set state of volume", volumeID, "%q is not a state", state)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.volumeByID(volumeID)
	if v == nil {
		return winerr.New(winerr.NotFound, "set state of volume", volumeID, "the node has no such volume")
	}
	v.state = state
	return nil
}

// Exists reports whether anything has this name, a dangling link included.
func (n *Node) Exists(path string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := n.walk(path, false)
	return err == nil && at.entry != nil
}

// RemoveAll removes a name with everything in it, whatever it is; a missing name is a
// success.
func (n *Node) RemoveAll(path string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := n.walk(path, false)
	switch {
	case errors.Is(err, winerr.NotFound) || (err == nil && at.entry == nil):
		return nil
	case err == nil && at.parent == nil:
		err = winerr.AccessDenied
	}
	if err != nil {
		return winerr.Wrap("remove", path, err)
	}
	at.remove()
	return nil
}

// Hold keeps a file or directory open, as a virus scanner would, so that removing it
// fails with a sharing violation until release is called. Releasing twice is harmless.
func (n *Node) Hold(path string) (release func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := n.existing(path, false)
	if err != nil {
		return nil, winerr.Wrap("hold", path, err)
	}
	held := at.entry
	held.held++
	return sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		held.held--
	}), nil
}

// Tree describes everything below path, one line per entry, without following links:
// for comparing the state of a node before and after.
func (n *Node) Tree(path string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := n.existing(path, false)
	if err != nil {
		return fmt.Sprintf("%s: %v\n", path, err)
	}
	var b strings.Builder
	at.entry.describe(&b, path)
	return b.String()
}

func (e *entry) describe(b *strings.Builder, path string) {
	b.WriteString(path)
	switch {
	case e.link != nil && e.link.Tag == win.TagSymlink:
		fmt.Fprintf(b, " -> %s", e.link.Target())
	case e.link != nil:
		fmt.Fprintf(b, " => %s", e.link.Target())
	case e.children == nil:
		fmt.Fprintf(b, " %q", e.content)
	}
	if e.readOnly {
		b.WriteString(" read-only")
	}
	b.WriteString("\n")
	for _, key := range slices.Sorted(maps.Keys(e.children)) {
		child := e.children[key]
		child.describe(b, winpath.Join(path, child.name))
	}
}

// createLink is create for a link that leads to target.
func (n *Node) createLink(f File, target string) error {
	if target == "" {
		return winerr.New(winerr.Invalid, "create link", f.Path, "the target is empty")
	}
	if err := f.validate(n.volumeIDs()); err != nil {
		return winerr.New(winerr.Invalid, "create link", f.Path, "%s", err.Problem)
	}
	return n.create(f)
}

func (n *Node) volumeIDs() map[string]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	ids := map[string]bool{}
	for _, v := range n.volumes {
		ids[v.guid] = true
	}
	return ids
}

// create makes what f describes, with missing parents. An existing directory is kept
// if a directory is wanted.
func (n *Node) create(f File) error {
	var made *entry
	switch {
	case f.Symlink != "":
		made = newLink(symlinkTo(f.Symlink))
	case f.Junction != "":
		made = newLink(win.ReparsePoint{Tag: win.TagMountPoint, Substitute: `\??\` + f.Junction, Print: f.Junction})
	case f.Volume != "":
		made = newLink(win.ReparsePoint{Tag: win.TagMountPoint, Substitute: `\??\Volume{` + normalGUID(f.Volume) + `}\`})
	case f.Content != "" || f.EmptyFile:
		made = &entry{content: []byte(f.Content)}
	default:
		made = newDirectory()
	}
	made.readOnly = f.ReadOnly
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.insert(f.Path, made)
}

// insert adds an entry at a path, with missing parents. n.mu is held.
func (n *Node) insert(path string, e *entry) error {
	clean, err := winpath.Clean(path)
	if err != nil {
		return winerr.As(winerr.Invalid, "create", "", err, "")
	}
	if parent, ok := winpath.Parent(clean); ok {
		if at, err := n.walk(parent, true); winerr.CodeOf(err) == winerr.PathNotFound || (err == nil && at.entry == nil) {
			if err := n.insert(parent, newDirectory()); err != nil {
				return err
			}
		}
	}
	at, err := n.vacant(clean)
	wantsDirectory := e.link == nil && e.children != nil
	if at.entry != nil && wantsDirectory && at.entry.children != nil {
		at.entry.readOnly = at.entry.readOnly || e.readOnly
		return nil
	}
	if err != nil {
		return winerr.Wrap("create", clean, err)
	}
	at.add(e)
	return nil
}

// remove takes an entry out of its directory.
func (at place) remove() { delete(at.parent.children, winpath.Fold(at.name)) }
