package api

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/lostvolume"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// host is a machine with files. Its methods are those of HostAPI with a context.
type host struct {
	m     win.Machine
	files policy.Reach // of that machine
	lost  lostvolume.Finder
	swept *atomic.Bool // the records
}

func (b boundHost) PathExists(path string) (bool, error) {
	ctx, h := b.ctx, b.host
	const op = "look up"
	info, err := h.files.Info(ctx, op, path)
	switch {
	case errors.Is(err, winerr.NotFound):
		return false, nil
	case err == nil && info.Tag == win.TagMountPoint:
		gone, err := h.mountsGone(ctx, op, path)
		return !gone && err == nil, winerr.Wrap(op, path, err)
	}
	return err == nil, winerr.Wrap(op, path, err)
}

// mountsGone reports whether a path is the mounted folder of a volume that is certainly gone. It is then nothing:
// gcp-pd and vsphere ask for the volume of a path that exists, and do not unstage it if there is none.
func (h host) mountsGone(ctx context.Context, op, path string) (bool, error) {
	_, link, err := h.files.Link(ctx, op, path)
	if err != nil {
		return false, ctx.Err() // it was there a moment ago
	}
	text, mounted := link.MountedVolume()
	id, ok := win.ParseVolumeID(text)
	if !mounted || !ok {
		return false, nil
	}
	return h.lost.Volume(ctx, h.m, id)
}

func (b boundHost) PathValid(path string) (bool, error) {
	ctx, h := b.ctx, b.host
	const op = "look up"
	_, err := h.files.Target(ctx, op, path)
	if policy.Unreachable(err) {
		return false, nil
	}
	return err == nil, winerr.Wrap(op, path, err)
}

// IsSymlink reads the link first: for most paths that alone gives the answer no. Drivers take yes for "staged", so it
// waits for an unmount.
func (b boundHost) IsSymlink(path string) (bool, error) {
	ctx, h := b.ctx, b.host
	const op = "inspect link"
	linkPath, link, err := h.files.Link(ctx, op, path)
	switch {
	case winerr.CodeOf(err) == winerr.NotAReparsePoint || policy.Unreadable(err):
		return false, nil
	case err != nil:
		return false, winerr.Wrap(op, path, err)
	case link.Tag != win.TagSymlink && link.Tag != win.TagMountPoint:
		return false, nil
	}
	if waited, err := lostvolume.AwaitUnmount(ctx, h.m, op, path, linkPath); err != nil {
		return false, err
	} else if waited {
		return b.IsSymlink(path)
	}
	_, err = h.files.LinkTarget(ctx, op, path, linkPath, link)
	if policy.Unreachable(err) {
		return false, nil
	}
	return err == nil, winerr.Wrap(op, path, err)
}

// PathStats follows links as pathValid does. What it reports of a volume that Windows needs, or of one
// that is mounted only outside the working directories, the policy refuses.
func (b boundHost) PathStats(path string) (total, available int64, err error) {
	ctx, h := b.ctx, b.host
	const op = "measure"
	space, err := h.files.Space(ctx, op, path)
	if err != nil {
		return 0, 0, winerr.Wrap(op, path, err)
	}
	if space.Free < 0 || space.Free > space.Total {
		return 0, 0, winerr.New(winerr.Internal, op, path, "Windows reports %d free bytes of %d, which is impossible", space.Free, space.Total)
	}
	return space.Total, space.Free, nil
}

func (b boundHost) Mkdir(path string) error {
	ctx, h := b.ctx, b.host
	const op = "create directory"
	if _, hasParent := winpath.Parent(path); !hasParent {
		return h.checkDrive(ctx, op, path)
	}
	switch made, existing, err := h.files.MakeDirectory(ctx, op, path); {
	case winerr.CodeOf(err) == winerr.PathNotFound:
		return winerr.As(winerr.NotFound, op, path, err, "this node has no such drive")
	case err != nil:
		return winerr.Wrap(op, path, err)
	case made:
		return nil
	case existing.Tag.NameSurrogate():
		return h.checkLeadsToDirectory(ctx, op, path)
	case !existing.Directory:
		return winerr.New(winerr.Exists, op, path, "it already exists as a file")
	}
	return nil
}

// checkDrive is mkdir of the root of a drive, which either exists or cannot be made.
func (h host) checkDrive(ctx context.Context, op, path string) error {
	_, err := h.files.Target(ctx, op, path)
	if errors.Is(err, winerr.NotFound) {
		return winerr.As(winerr.NotFound, op, path, err, "this node has no such drive")
	}
	return winerr.Wrap(op, path, err)
}

// checkLeadsToDirectory accepts a link in place of a directory if it leads to one.
func (h host) checkLeadsToDirectory(ctx context.Context, op, path string) error {
	info, err := h.files.Target(ctx, op, path)
	switch {
	case policy.Unreachable(err):
		return winerr.New(winerr.Exists, op, path, "it already exists as a link whose target cannot be reached: %w; remove the link with Rmdir", winerr.Cause(err))
	case err != nil:
		return winerr.Wrap(op, path, err)
	case !info.Directory:
		return winerr.New(winerr.Exists, op, path, "it already exists as a link to a file")
	}
	return nil
}

func (b boundHost) CreateSymlink(oldname, newname string) error {
	ctx, h := b.ctx, b.host
	const op = "create link"
	if err := h.files.CheckShown(ctx, op, oldname); err != nil {
		return winerr.Wrap(op, newname, err)
	}
	entry, err := h.files.Open(ctx, op, newname, policy.Link)
	switch {
	case errors.Is(err, winerr.NotFound):
		return winerr.As(winerr.NotFound, op, newname, err, "create its parent directory with Mkdir first")
	case err != nil:
		return winerr.Wrap(op, newname, err)
	}
	defer entry.Close()
	err = entry.Dir.CreateDirectoryLink(ctx, entry.Name, oldname)
	switch {
	case errors.Is(err, winerr.Exists):
		return h.checkSameLink(ctx, oldname, entry, err)
	case winerr.CodeOf(err) == winerr.FilenameExcedRange:
		return winerr.As(winerr.Invalid, op, newname, err, "the path that it should lead to is too long for a link")
	}
	return winerr.Wrap(op, newname, err)
}

// checkSameLink decides after creation failed with existing. If the link is the one that the
// caller asked for, a retry succeeds. Anything else is never replaced.
func (h host) checkSameLink(ctx context.Context, oldname string, entry policy.Entry, existing error) error {
	const op = "create link"
	point, err := entry.Dir.ReparsePoint(ctx, entry.Name)
	switch {
	case winerr.CodeOf(err) == winerr.NotAReparsePoint:
		return winerr.As(winerr.Exists, op, entry.Path, existing, "it is not a link; remove it with Rmdir first")
	case policy.Unreadable(err):
		return winerr.New(winerr.Exists, op, entry.Path, "it already exists as a link that cannot be read: %w; remove it with Rmdir first", err)
	case err != nil:
		return winerr.Wrap(op, entry.Path, err)
	case point.Tag == win.TagSymlink && winpath.SameTarget(point.Target(), oldname):
		return nil
	}
	return winerr.New(winerr.Exists, op, entry.Path,
		"it already exists as a link to %s, not to %s; remove it with Rmdir first", point.Target(), oldname)
}
