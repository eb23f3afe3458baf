package winsim

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Mkdir creates a directory and its missing parents. On a share, \\server\share\dir, it acts as another client of the
// server: the node needs no mapping.
func (n *Node) Mkdir(path string) error { return n.Create(File{Path: path}) }

// WriteFile creates or replaces a file, with missing parents.
func (n *Node) WriteFile(path, content string) error {
	defer n.lock()()
	at, err := n.files.find("create", path, true)
	if err == nil && at.entry != nil && at.entry.children == nil {
		if err := at.volume.writable(); err != nil {
			return winerr.Wrap("write", path, err)
		}
		at.entry.content = []byte(content)
		at.fs.rewrite(at.entry)
		return nil
	}
	return n.files.insert(path, &entry{content: []byte(content)}, "")
}

// ReadFile returns the content of a file.
func (n *Node) ReadFile(path string) (string, error) {
	defer n.lock()()
	at, err := n.files.find("read", path, true)
	switch {
	case err != nil:
		return "", err
	case at.entry == nil:
		return "", winerr.Wrap("read", path, winerr.FileNotFound)
	case at.entry.children != nil:
		return "", winerr.New(winerr.Invalid, "read", path, "it is a directory")
	}
	if err := at.fs.load(at.entry); err != nil {
		return "", winerr.New(winerr.Internal, "read", path, "%w", err)
	}
	return string(at.entry.content), nil
}

// Symlink creates a directory symbolic link at path. The target can be of any form, or missing.
func (n *Node) Symlink(path, target string) error {
	return n.createLink(File{Path: path, Symlink: target}, target)
}

// Junction creates a junction at path. The target is a path on a local drive, or starts with \\?\.
func (n *Node) Junction(path, target string) error {
	return n.createLink(File{Path: path, Junction: target}, target)
}

// MountFolder creates a mounted folder at path for a volume of the node.
func (n *Node) MountFolder(path, volumeID string) error {
	return n.createLink(File{Path: path, Volume: volumeID}, volumeID)
}

// SetVolumeState changes the state of a volume.
func (n *Node) SetVolumeState(volumeID string, state VolumeState) error {
	if state.check() != nil {
		return winerr.New(winerr.Invalid, "set state of volume", volumeID, "unknown state %q", state)
	}
	defer n.lock()()
	v := n.volumes.volumeByID(volumeID)
	if v == nil {
		return winerr.New(winerr.NotFound, "set state of volume", volumeID, "volume not found")
	}
	v.State = state
	return nil
}

// Exists reports whether the path exists. A dangling link does.
func (n *Node) Exists(path string) bool {
	defer n.lock()()
	_, err := n.files.locate("look up", path)
	return err == nil
}

// RemoveAll deletes a file or directory with its content. A missing path is no error.
func (n *Node) RemoveAll(path string) error {
	const op = "remove"
	defer n.lock()()
	at, err := n.files.locate(op, path)
	switch {
	case errors.Is(err, winerr.NotFound):
		return nil
	case err == nil && at.parent == nil:
		return winerr.Wrap(op, path, winerr.AccessDenied)
	case err != nil:
		return err
	}
	at.fs.refresh(at.entry)
	return winerr.Wrap(op, path, at.remove())
}

// Hold keeps a file or directory open until release is called, as a virus scanner does: deleting it, mounting on it and
// unmounting fail with ERROR_SHARING_VIOLATION (32). With the name of an iSCSI target, a logout fails with
// ISDSC_DEVICE_BUSY_ON_SESSION (0xefff0040).
func (n *Node) Hold(path string) (release func(), err error) {
	defer n.lock()()
	var held *int
	if t := n.initiator.target(path); t != nil {
		held = &t.held
	} else if at, err := n.files.locate("hold", path); err == nil {
		held = &at.entry.held
	} else {
		return nil, err
	}
	*held++
	return sync.OnceFunc(func() {
		defer n.lock()()
		*held--
	}), nil
}

// Tree lists everything below path, one line per entry, without following links, to compare before and after.
func (n *Node) Tree(path string) string {
	defer n.lock()()
	at, err := n.files.locate("list", path)
	if err != nil {
		return err.Error() + "\n"
	}
	_ = at.fs.load(at.entry) // on failure only the length is known
	at.fs.refreshBelow(at.entry, true)
	var b strings.Builder
	at.entry.describe(&b, path)
	return b.String()
}

func (e *entry) describe(b *strings.Builder, path string) {
	b.WriteString(path)
	switch {
	case e.children != nil || isLink(e):
	case e.length() != int64(len(e.content)): // too large to be read
		fmt.Fprintf(b, " (%d bytes)", e.length())
	default:
		fmt.Fprintf(b, " %q", e.content)
	}
	if e.link != nil {
		b.WriteString(e.link.describe())
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

func (l *link) describe() string {
	switch {
	case l.malformed || l.Tag != win.TagSymlink && l.Tag != win.TagMountPoint:
		return fmt.Sprintf(" tag %#x", uint32(l.Tag))
	case l.Tag == win.TagSymlink:
		return " -> " + l.Target()
	default:
		return " => " + l.Target()
	}
}

func (n *Node) createLink(f File, target string) error {
	if target == "" {
		return winerr.New(winerr.Invalid, "create", f.Path, "the target is empty")
	}
	return n.Create(f)
}

// Create adds what f describes, with missing parents. An existing directory stays if f is one.
func (n *Node) Create(f File) error {
	const op = "create"
	defer n.lock()()
	if err := f.validate(n.hasVolume); err != nil {
		return winerr.New(winerr.Invalid, op, f.Path, "%s", err.Problem)
	}
	if isUNC(f.Path) && f == (File{Path: f.Path}) {
		return n.network.mkdir(f.Path)
	}
	return n.files.insert(f.Path, f.entry(), f.Short)
}

// hasVolume reports whether the node has a volume. mu is held.
func (n *Node) hasVolume(guid string) bool { return n.volumes.byGUID[guid] != nil }

func (f File) entry() *entry {
	var made *entry
	switch {
	case f.Symlink != "":
		made = newLink(symlinkTo(f.Symlink))
	case f.FileSymlink != "":
		made = &entry{link: &link{ReparsePoint: symlinkTo(f.FileSymlink)}}
	case f.Junction != "":
		made = newLink(win.ReparsePoint{Tag: win.TagMountPoint, Substitute: `\??\` + strings.TrimPrefix(f.Junction, `\\?\`), Print: f.Junction})
	case f.Volume != "":
		made = newLink(winlayout.MountedFolder(win.VolumeID(`\\?\Volume{` + normalGUID(f.Volume) + `}\`)))
		made.link.announced = true // as mountvol does, unlike a junction to a volume
	case f.Hex != "":
		content, _ := hex.DecodeString(f.Hex)
		made = &entry{content: content}
	case f.Content != "" || f.EmptyFile:
		made = &entry{content: []byte(f.Content)}
	default:
		made = newDirectory()
	}
	if f.Tag != 0 {
		made.link, _ = taggedLink(win.ReparseTag(f.Tag), f.TagData)
	}
	made.readOnly = f.ReadOnly
	return made
}

// insert adds an entry at a Win32 path, with missing parents. It keeps an existing directory if
// e is a directory. A short name replaces the one that Windows would give. t.mu is held.
func (t *files) insert(path string, e *entry, short string) error {
	const op = "create"
	name, err := win32Path(path)
	if err != nil {
		return winerr.As(winerr.Invalid, op, "", err, "")
	}
	if t.started {
		e.changedAt = t.date()
	}
	at, err := t.walkCreating(name)
	switch {
	case err != nil:
	case short != "" && at.parent != nil && at.parent.child(short) != nil:
		err = winerr.AlreadyExists
	default:
		err = at.insert(e)
	}
	if err == nil {
		at.entry = e
		t.volumes.announce(at)
		if short != "" && e.parent != nil {
			e.parent.giveShortName(e, winpath.Fold(short))
		}
	}
	return winerr.Wrap(op, path, err)
}

func (at resolvedPath) insert(e *entry) error {
	switch {
	case at.entry != nil && at.entry.children != nil && e.children != nil && e.link == nil:
		at.entry.readOnly = at.entry.readOnly || e.readOnly
		return nil
	case at.parent == nil:
		return winerr.AccessDenied // the root of a drive
	case at.entry != nil:
		return winerr.AlreadyExists
	}
	if err := at.volume.writable(); err != nil {
		return err
	}
	if err := e.link.checkFits(at.fs); err != nil {
		return err
	}
	at.add(e)
	return nil
}
