package api

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

const opRemove = "remove"

func (h host) Rmdir(path string, force bool) error {
	if err := refuseRoot(opRemove, path); err != nil {
		return err
	}
	entry, info, err := h.find(opRemove, path)
	if errors.Is(err, winerr.NotFound) {
		return nil
	}
	if err != nil {
		return winerr.Wrap(opRemove, path, err)
	}
	defer entry.Close()
	switch {
	case info.Directory || info.Tag.NameSurrogate():
		return h.doomed(entry).remove(info, force)
	case !force:
		return winerr.New(winerr.Invalid, opRemove, path, "it is a file, not a directory; set force to remove it")
	default:
		return h.doomed(entry).removeName()
	}
}

func (h host) RmdirContents(path string) error {
	const op = "remove contents of"
	if err := refuseRoot(op, path); err != nil {
		return err
	}
	entry, info, err := h.find(op, path)
	if err != nil {
		return winerr.Wrap(op, path, err)
	}
	defer entry.Close()
	switch {
	case info.Tag.NameSurrogate():
		// The contents would be those of another directory or of a whole volume.
		return winerr.New(winerr.InUse, op, path, "it is a link or a mounted folder; unmount or remove it with Rmdir")
	case !info.Directory:
		return winerr.New(winerr.Invalid, op, path, "it is a file, not a directory")
	}
	return h.doomed(entry).removeContents()
}

// find opens the directory of what is to be removed and looks at it.
func (h host) find(op, path string) (entry policy.Entry, info win.FileInfo, err error) {
	if entry, err = h.files.Open(h.ctx, op, path, policy.Remove); err != nil {
		return entry, info, err
	}
	if info, err = entry.Dir.FileInfo(h.ctx, entry.Name); err != nil {
		entry.Close()
	}
	return entry, info, err
}

// refuseRoot keeps a whole drive from being wiped by one wrong argument.
func refuseRoot(op, path string) error {
	if _, ok := winpath.Parent(path); ok {
		return nil
	}
	return winerr.New(winerr.Denied, op, path, "it is the root of a drive")
}

// doomed is a name on its way out, in an open directory, so that nobody can lead the
// removal elsewhere by replacing a directory with a link.
type doomed struct {
	host
	in    win.Tree
	name  string  // in that directory
	whole string  // its path, if no directory above it is doomed
	above *doomed // the directory, if it is doomed, too
	depth int
}

// maxDepth ends the descent into trees that are deeper than any path can name. Each level
// keeps a directory open, and some memory.
const maxDepth = 20_000

func (h host) doomed(e policy.Entry) doomed {
	return doomed{host: h, in: e.Dir, name: e.Name, whole: e.Path}
}

// path is put together only for messages: a tree can be so deep that its paths would take
// more memory than everything else.
func (d doomed) path() string {
	var names []string
	for ; d.above != nil; d = *d.above {
		names = append(names, d.name)
	}
	slices.Reverse(names)
	return strings.Join(append([]string{d.whole}, names...), winpath.Separator)
}

// fail wraps an error of the machine.
func (d doomed) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return winerr.Wrap(op, d.path(), err)
}

// remove removes one name. Only a real directory is entered, and only when the whole
// tree is to go; a link goes without what it leads to.
func (d doomed) remove(info win.FileInfo, tree bool) error {
	switch {
	case info.Tag == win.TagMountPoint:
		if err := d.dismantleMount(); err != nil {
			return err
		}
	case info.Tag.NameSurrogate() || !info.Directory || !tree:
	default:
		return d.removeTree()
	}
	return d.removeName()
}

// removeTree empties a directory and removes it. Entries that appear meanwhile
// are removed too, but not for ever: somebody who keeps writing wins.
func (d doomed) removeTree() error {
	const rounds = 5
	for range rounds {
		// Not a directory: somebody put a link or a file in its place, which goes
		// as a name, like any other.
		if err := d.removeContents(); err != nil && winerr.CodeOf(err) != winerr.Directory {
			return err
		}
		if err := d.removeName(); winerr.CodeOf(err) != winerr.DirNotEmpty {
			return err
		}
	}
	return winerr.As(winerr.Busy, opRemove, d.path(), winerr.DirNotEmpty, "somebody keeps creating files in it")
}

// removeContents removes the entries of a directory batch by batch, so that memory does
// not grow with the number of files, only with the depth of the tree.
func (d doomed) removeContents() error {
	if d.depth >= maxDepth {
		return winerr.New(winerr.InUse, opRemove, d.path(), "directories are nested more than %d deep there; remove them from the inside", maxDepth)
	}
	err := d.in.ListDirectory(d.ctx, d.name, func(dir win.Tree, entries []win.DirEntry) error {
		for _, entry := range entries {
			inner := doomed{host: d.host, in: dir, name: entry.Name, above: &d, depth: d.depth + 1}
			if err := inner.remove(entry.FileInfo, true); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, winerr.NotFound) {
		return nil // somebody else removed it: that is what was wanted
	}
	return d.fail("list directory", err)
}

// dismantleMount tells the mount manager that the folder no longer shows a
// volume, so that its database stays clean. Failing that, removing the folder
// itself also undoes the mount, so a dead volume does not keep its folder.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-deletevolumemountpointw
func (d doomed) dismantleMount() error {
	point, err := d.in.ReparsePoint(d.ctx, d.name)
	if err == nil {
		if _, mounted := point.MountedVolume(); !mounted {
			return nil // a junction
		}
		err = d.in.DeleteMountPoint(d.ctx, d.name)
	}
	if winerr.CodeOf(err) == 0 && err != nil {
		return d.fail("unmount", err) // the caller has left
	}
	return nil
}

// removeName deletes one name. Virus scanners and indexers hold new files open for
// some milliseconds, and a name whose last handle is just closing answers "access
// denied", so both are tried again for a while.
func (d doomed) removeName() error {
	const patience = 2 * time.Second
	wait, waited := 5*time.Millisecond, time.Duration(0)
	for {
		err := d.in.Remove(d.ctx, d.name)
		switch code := winerr.CodeOf(err); {
		case err == nil || errors.Is(err, winerr.NotFound):
			return nil
		case code == winerr.DirNotEmpty:
			return winerr.As(winerr.InUse, opRemove, d.path(), err, "set force to remove it with its contents")
		case waited >= patience || (code != winerr.SharingViolation && code != winerr.AccessDenied):
			return d.fail(opRemove, err)
		}
		if err := d.m.Sleep(d.ctx, wait); err != nil {
			return d.fail(opRemove, err)
		}
		waited += wait
		wait = min(2*wait, 250*time.Millisecond)
	}
}
