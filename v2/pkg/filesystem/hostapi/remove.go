package api

import (
	"context"
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

func (b boundHost) Rmdir(path string, force bool) error { return b.Unlink(path, force, nil) }

func (b boundHost) Unlink(path string, force bool, note func(target string)) error {
	ctx, h := b.ctx, b.host
	if err := refuseRoot(opRemove, path); err != nil {
		return err
	}
	entry, info, err := h.files.Find(ctx, opRemove, path, policy.Remove)
	if errors.Is(err, winerr.NotFound) {
		return nil
	}
	if err != nil {
		return winerr.Wrap(opRemove, path, err)
	}
	defer entry.Close()
	if info.Tag == win.TagSymlink && note != nil {
		if point, err := entry.Dir.ReparsePoint(ctx, entry.Name); err == nil { // one that cannot be read leads nowhere
			note(point.Target())
		}
	}
	switch {
	case info.Directory || info.Tag.NameSurrogate():
		return h.removal(entry).remove(ctx, info, force)
	case !force:
		return winerr.New(winerr.Invalid, opRemove, path, "it is a file, not a directory; set force to remove it")
	default:
		return h.removal(entry).removeName(ctx)
	}
}

func (b boundHost) RmdirContents(path string) error {
	ctx, h := b.ctx, b.host
	const op = "remove contents of"
	if err := refuseRoot(op, path); err != nil {
		return err
	}
	entry, info, err := h.files.Find(ctx, op, path, policy.Remove)
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
	return h.removal(entry).removeContents(ctx)
}

// refuseRoot keeps a whole drive from being wiped by one wrong argument.
func refuseRoot(op, path string) error {
	if _, ok := winpath.Parent(path); ok {
		return nil
	}
	return winerr.New(winerr.Denied, op, path, "it is the root of a drive")
}

// removal is a name to remove from an open directory. The handle of the directory keeps
// others from redirecting the removal by replacing a directory with a link.
type removal struct {
	clock  win.Clock
	in     win.Tree
	name   string   // in that directory
	root   string   // the whole path, if the directory itself is not removed
	parent *removal // the directory, if it is removed as well
	depth  int
}

// maxDepth ends the descent into trees that are deeper than any path can name. Each level
// keeps a directory open and takes memory.
const maxDepth = 20_000

func (h host) removal(e policy.Entry) removal {
	return removal{clock: h.m, in: e.Dir, name: e.Name, root: e.Path}
}

// path is built only for messages: in a deep tree, the paths of all levels would take more
// memory than everything else.
func (r removal) path() string {
	var names []string
	for ; r.parent != nil; r = *r.parent {
		names = append(names, r.name)
	}
	slices.Reverse(names)
	return strings.Join(append([]string{r.root}, names...), winpath.Separator)
}

func (r removal) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return winerr.Wrap(op, r.path(), err)
}

// remove removes one name. Only a real directory is entered, and only when the whole
// tree is to go; a link goes without what it leads to.
func (r removal) remove(ctx context.Context, info win.FileInfo, tree bool) error {
	switch {
	case info.Tag == win.TagMountPoint:
		if err := r.dismantleMount(ctx); err != nil {
			return err
		}
	case info.Tag.NameSurrogate() || !info.Directory || !tree:
	default:
		return r.removeTree(ctx)
	}
	return r.removeName(ctx)
}

// removeTree empties a directory and removes it, with entries that appear meanwhile. It
// gives up on a directory in which another process keeps creating files.
func (r removal) removeTree(ctx context.Context) error {
	const rounds = 5
	for range rounds {
		// ERROR_DIRECTORY (267): another process put a link or a file in its place.
		// removeName removes that, and nothing behind it.
		if err := r.removeContents(ctx); err != nil && winerr.CodeOf(err) != winerr.Directory {
			return err
		}
		if err := r.removeName(ctx); winerr.CodeOf(err) != winerr.DirNotEmpty {
			return err
		}
	}
	return winerr.As(winerr.Busy, opRemove, r.path(), winerr.DirNotEmpty, "another process keeps creating files in it")
}

// removeContents removes the entries of a directory batch by batch, so that memory does
// not grow with the number of files, only with the depth of the tree.
func (r removal) removeContents(ctx context.Context) error {
	if r.depth >= maxDepth {
		return winerr.New(winerr.InUse, opRemove, r.path(), "directories are nested more than %d deep there; remove them from the inside", maxDepth)
	}
	err := win.List(ctx, r.in, r.name, func(dir win.Tree, entries []win.DirEntry) error {
		for _, entry := range entries {
			inner := removal{clock: r.clock, in: dir, name: entry.Name, parent: &r, depth: r.depth + 1}
			if err := inner.remove(ctx, entry.FileInfo, true); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, winerr.NotFound) {
		return nil // removed by another process
	}
	return r.fail("list directory", err)
}

// dismantleMount notifies the mount manager that the folder no longer shows a
// volume, so that its database stays clean. If that fails, removing the folder
// itself also ends the mount: a dead volume does not keep its folder.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-deletevolumemountpointw
func (r removal) dismantleMount(ctx context.Context) error {
	point, err := r.in.ReparsePoint(ctx, r.name)
	if err == nil {
		if _, mounted := point.MountedVolume(); !mounted {
			return nil // a junction
		}
		err = r.in.DeleteMountPoint(ctx, r.name)
	}
	if winerr.CodeOf(err) == 0 && err != nil {
		return r.fail("unmount", err) // the caller has left
	}
	return nil
}

// releaseBackoff is how long to retry while another process has a file open. Virus scanners
// and indexers keep new files open for some milliseconds.
var releaseBackoff = win.Backoff{First: 5 * time.Millisecond, Longest: 250 * time.Millisecond, Limit: 2 * time.Second}

// removeName deletes one name. It retries ERROR_SHARING_VIOLATION (32), and
// ERROR_ACCESS_DENIED (5), which Windows also returns while the last handle of a deleted
// name closes.
func (r removal) removeName(ctx context.Context) error {
	var failure error
	_, err := win.Poll(ctx, r.clock, releaseBackoff, func(time.Duration) (done bool, err error) {
		failure = r.in.Remove(ctx, r.name)
		code := winerr.CodeOf(failure)
		return code != winerr.SharingViolation && code != winerr.AccessDenied, nil
	})
	switch {
	case err != nil:
		return r.fail(opRemove, err)
	case errors.Is(failure, winerr.NotFound):
		return nil
	case winerr.CodeOf(failure) == winerr.DirNotEmpty:
		return winerr.As(winerr.InUse, opRemove, r.path(), failure, "set force to remove it with its contents")
	default:
		return r.fail(opRemove, failure)
	}
}
