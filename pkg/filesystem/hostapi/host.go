package api

import (
	"context"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// host implements HostAPI over the seam.
type host struct {
	m     win.Machine
	files policy.Reach    // of that machine
	ctx   context.Context //nolint:containedctx // HostAPI's published methods take none, see WithContext
}

// WithContext returns the same host, its calls bounded by ctx.
func (h host) WithContext(ctx context.Context) HostAPI {
	h.ctx = ctx
	return h
}

// Within returns the same host, limited by a policy.
func (h host) Within(p *policy.Policy) HostAPI {
	h.files = p.Reach(h.m)
	return h
}

func (h host) PathExists(path string) (bool, error) {
	const op = "look up"
	_, err := h.files.Info(h.ctx, op, path)
	if errors.Is(err, winerr.NotFound) {
		return false, nil
	}
	return err == nil, winerr.Wrap(op, path, err)
}

func (h host) PathValid(path string) (bool, error) {
	const op = "look up"
	_, err := h.files.Target(h.ctx, op, path)
	if policy.Unreachable(err) {
		return false, nil
	}
	return err == nil, winerr.Wrap(op, path, err)
}

// IsSymlink reads the link first, which tells at once that most paths are none.
func (h host) IsSymlink(path string) (bool, error) {
	const op = "inspect link"
	place, link, err := h.files.Link(h.ctx, op, path)
	switch {
	case winerr.CodeOf(err) == winerr.NotAReparsePoint || policy.Unreadable(err):
		return false, nil
	case err != nil:
		return false, winerr.Wrap(op, path, err)
	case link.Tag != win.TagSymlink && link.Tag != win.TagMountPoint:
		return false, nil
	}
	_, err = h.files.LinkTarget(h.ctx, op, path, place, link)
	if policy.Unreachable(err) {
		return false, nil
	}
	return err == nil, winerr.Wrap(op, path, err)
}

func (h host) Mkdir(path string) error {
	const op = "create directory"
	if _, hasParent := winpath.Parent(path); !hasParent {
		return h.checkDrive(op, path)
	}
	entry, made, err := h.files.Make(h.ctx, op, path, policy.Create)
	switch {
	case winerr.CodeOf(err) == winerr.PathNotFound:
		return winerr.As(winerr.NotFound, op, path, err, "this node has no such drive")
	case err != nil:
		return winerr.Wrap(op, path, err)
	}
	defer entry.Close()
	if made {
		return nil
	}
	switch info, err := entry.Dir.FileInfo(h.ctx, entry.Name); {
	case err != nil:
		return winerr.Wrap(op, path, err)
	case info.Tag.NameSurrogate():
		return h.checkLeadsToDirectory(op, path)
	case !info.Directory:
		return winerr.New(winerr.Exists, op, path, "a file stands there")
	}
	return nil
}

// checkDrive is what making the root of a drive comes to.
func (h host) checkDrive(op, path string) error {
	_, err := h.files.Target(h.ctx, op, path)
	if errors.Is(err, winerr.NotFound) {
		return winerr.As(winerr.NotFound, op, path, err, "this node has no such drive")
	}
	return winerr.Wrap(op, path, err)
}

// checkLeadsToDirectory accepts a link in place of a directory if it serves as one.
func (h host) checkLeadsToDirectory(op, path string) error {
	info, err := h.files.Target(h.ctx, op, path)
	switch {
	case policy.Unreachable(err):
		return winerr.New(winerr.Exists, op, path, "a link stands there whose target cannot be reached: %w; remove the link with Rmdir", winerr.Cause(err))
	case err != nil:
		return winerr.Wrap(op, path, err)
	case !info.Directory:
		return winerr.New(winerr.Exists, op, path, "a link to a file stands there")
	}
	return nil
}

func (h host) CreateSymlink(oldname, newname string) error {
	const op = "create link"
	if err := h.files.CheckShown(h.ctx, op, oldname); err != nil {
		return winerr.Wrap(op, newname, err)
	}
	entry, err := h.files.Open(h.ctx, op, newname, policy.Link)
	switch {
	case errors.Is(err, winerr.NotFound):
		return winerr.As(winerr.NotFound, op, newname, err, "create its parent directory with Mkdir first")
	case err != nil:
		return winerr.Wrap(op, newname, err)
	}
	defer entry.Close()
	err = entry.Dir.CreateDirectoryLink(h.ctx, entry.Name, oldname)
	switch {
	case errors.Is(err, winerr.Exists):
		return h.checkSameLink(oldname, entry, err)
	case winerr.CodeOf(err) == winerr.FilenameExcedRange:
		return winerr.As(winerr.Invalid, op, newname, err, "the path that it should lead to is too long for a link")
	}
	return winerr.Wrap(op, newname, err)
}

// checkSameLink decides what stands at an entry after creation failed with existing: the
// link that was asked for, which makes a retry a success, or something else, which is never
// replaced.
func (h host) checkSameLink(oldname string, entry policy.Entry, existing error) error {
	const op = "create link"
	point, err := entry.Dir.ReparsePoint(h.ctx, entry.Name)
	switch {
	case winerr.CodeOf(err) == winerr.NotAReparsePoint:
		return winerr.As(winerr.Exists, op, entry.Path, existing, "it is not a link; remove it with Rmdir first")
	case policy.Unreadable(err):
		return winerr.New(winerr.Exists, op, entry.Path, "a link stands there that cannot be read: %w; remove it with Rmdir first", err)
	case err != nil:
		return winerr.Wrap(op, entry.Path, err)
	case point.Tag == win.TagSymlink && winpath.SameTarget(point.Target(), oldname):
		return nil
	}
	return winerr.New(winerr.Exists, op, entry.Path,
		"a link to %s stands there, not to %s; remove it with Rmdir first", point.Target(), oldname)
}
