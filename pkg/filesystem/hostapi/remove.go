package api

import (
	"errors"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

const opRemove = "remove"

func (h host) Rmdir(path string, force bool) error {
	if err := refuseRoot(opRemove, path); err != nil {
		return err
	}
	info, err := h.m.FileInfo(h.ctx, path)
	switch {
	case errors.Is(err, winerr.NotFound):
		return nil
	case err != nil:
		return winerr.Wrap(opRemove, path, err)
	case info.Directory || info.Tag.NameSurrogate():
		return h.removeEntry(path, info, force)
	case !force:
		return winerr.New(winerr.Invalid, opRemove, path, "it is a file, not a directory; set force to remove it")
	default:
		return h.remove(path)
	}
}

func (h host) RmdirContents(path string) error {
	const op = "remove contents of"
	if err := refuseRoot(op, path); err != nil {
		return err
	}
	info, err := h.m.FileInfo(h.ctx, path)
	switch {
	case err != nil:
		return winerr.Wrap(op, path, err)
	case info.Tag.NameSurrogate():
		// The contents would be those of another directory or of a whole volume.
		return winerr.New(winerr.InUse, op, path, "it is a link or a mounted folder; unmount or remove it with Rmdir")
	case !info.Directory:
		return winerr.New(winerr.Invalid, op, path, "it is a file, not a directory")
	}
	return h.removeContents(path)
}

// refuseRoot keeps a whole drive from being wiped by one wrong argument.
func refuseRoot(op, path string) error {
	if _, ok := winpath.Parent(path); ok {
		return nil
	}
	return winerr.New(winerr.Denied, op, path, "it is the root of a drive")
}

// removeEntry removes one name. Only a real directory is entered, and only when
// the whole tree is to go; a link goes without what it leads to.
func (h host) removeEntry(path string, info win.FileInfo, tree bool) error {
	switch {
	case info.Tag == win.TagMountPoint:
		if err := h.dismantleMount(path); err != nil {
			return err
		}
	case info.Tag.NameSurrogate() || !info.Directory || !tree:
	default:
		return h.removeTree(path)
	}
	return h.remove(path)
}

// removeTree empties a directory and removes it. Entries that appear meanwhile
// are removed too, but not for ever: somebody who keeps writing wins.
func (h host) removeTree(path string) error {
	const rounds = 5
	for range rounds {
		// Not a directory: somebody put a link or a file in its place, which goes
		// as a name, like any other.
		if err := h.removeContents(path); err != nil && winerr.CodeOf(err) != winerr.Directory {
			return err
		}
		if err := h.remove(path); winerr.CodeOf(err) != winerr.DirNotEmpty {
			return err
		}
	}
	return winerr.As(winerr.Busy, opRemove, path, winerr.DirNotEmpty, "somebody keeps creating files in it")
}

// removeContents removes the entries of a directory batch by batch, so that
// memory does not grow with the size of the tree.
func (h host) removeContents(path string) error {
	err := h.m.ListDirectory(h.ctx, path, func(entries []win.DirEntry) error {
		for _, entry := range entries {
			if err := h.removeEntry(winpath.Join(path, entry.Name), entry.FileInfo, true); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, winerr.NotFound) {
		return nil // somebody else removed it: that is what was wanted
	}
	return winerr.Wrap("list directory", path, err)
}

// dismantleMount tells the mount manager that the folder no longer shows a
// volume, so that its database stays clean. Failing that, removing the folder
// itself also undoes the mount, so a dead volume does not keep its folder.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-deletevolumemountpointw
func (h host) dismantleMount(path string) error {
	point, err := h.m.ReparsePoint(h.ctx, path)
	if err == nil {
		if _, mounted := point.MountedVolume(); !mounted {
			return nil // a junction
		}
		err = h.m.DeleteMountPoint(h.ctx, path)
	}
	if winerr.CodeOf(err) == 0 && err != nil {
		return winerr.Wrap("unmount", path, err) // the caller has left
	}
	return nil
}

// remove deletes one name. Virus scanners and indexers hold new files open for
// some milliseconds, and a name whose last handle is just closing answers "access
// denied", so both are tried again for a while.
func (h host) remove(path string) error {
	const patience = 2 * time.Second
	wait, waited := 5*time.Millisecond, time.Duration(0)
	for {
		err := h.m.Remove(h.ctx, path)
		switch code := winerr.CodeOf(err); {
		case err == nil || errors.Is(err, winerr.NotFound):
			return nil
		case code == winerr.DirNotEmpty:
			return winerr.As(winerr.InUse, opRemove, path, err, "set force to remove it with its contents")
		case waited >= patience || (code != winerr.SharingViolation && code != winerr.AccessDenied):
			return winerr.Wrap(opRemove, path, err)
		}
		if err := h.m.Sleep(h.ctx, wait); err != nil {
			return winerr.Wrap(opRemove, path, err)
		}
		waited += wait
		wait = min(2*wait, 250*time.Millisecond)
	}
}
