package api

import (
	"context"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

// host implements HostAPI over the seam.
type host struct {
	m   win.Machine
	ctx context.Context //nolint:containedctx // HostAPI's published methods take none, see WithContext
}

// WithContext returns the same host, its calls bounded by ctx.
func (h host) WithContext(ctx context.Context) HostAPI {
	h.ctx = ctx
	return h
}

func (h host) PathExists(path string) (bool, error) {
	_, err := h.m.FileInfo(h.ctx, path)
	if errors.Is(err, winerr.NotFound) {
		return false, nil
	}
	return err == nil, winerr.Wrap("look up", path, err)
}

func (h host) PathValid(path string) (bool, error) {
	_, err := h.m.TargetInfo(h.ctx, path)
	if unreachable(err) {
		return false, nil
	}
	return err == nil, winerr.Wrap("look up", path, err)
}

func (h host) IsSymlink(path string) (bool, error) {
	const op = "inspect link"
	info, err := h.m.FileInfo(h.ctx, path)
	if err != nil {
		return false, winerr.Wrap(op, path, err)
	}
	if info.Tag != win.TagSymlink && info.Tag != win.TagMountPoint {
		return false, nil
	}
	_, err = h.m.TargetInfo(h.ctx, path)
	if unreachable(err) {
		return false, nil
	}
	return err == nil, winerr.Wrap(op, path, err)
}

// unreachable tells a target that is gone or malformed, or whose volume or server does
// not answer, from a failure to find out. After a node crash mount points are often
// unreadable, and drivers can only clean up if that is an answer rather than an error.
// Whatever may pass by itself, such as a lack of memory, is not an answer: a driver would
// take a healthy mount for a broken one.
func unreachable(err error) bool {
	switch winerr.CodeOf(err) {
	case winerr.FileNotFound, winerr.PathNotFound, winerr.InvalidName, winerr.BadPathname,
		winerr.CantResolveFilename, winerr.InvalidReparseData, winerr.ReparseTagInvalid, // the link
		winerr.NotReady, winerr.UnrecognizedVolume, winerr.FileCorrupt, winerr.DiskCorrupt, winerr.FVELocked, // its volume
		winerr.DevNotExist, winerr.NoSuchDevice, winerr.DeviceNotConnected, winerr.DeviceRemoved, // its disk
		winerr.BadNetPath, winerr.BadNetName, winerr.NetnameDeleted, winerr.NetworkUnreachable: // its server
		return true
	default:
		return false
	}
}

func (h host) Mkdir(path string) error {
	const op = "create directory"
	err := h.m.CreateDirectory(h.ctx, path)
	if winerr.CodeOf(err) == winerr.PathNotFound {
		parent, ok := winpath.Parent(path)
		if !ok {
			return winerr.As(winerr.NotFound, op, path, err, "this node has no such drive")
		}
		if err := h.Mkdir(parent); err != nil {
			return err
		}
		err = h.m.CreateDirectory(h.ctx, path)
	}
	if err == nil || !h.taken(path, err) {
		return winerr.Wrap(op, path, err)
	}
	info, err := h.m.TargetInfo(h.ctx, path)
	switch {
	case unreachable(err):
		return winerr.New(winerr.Exists, op, path, "a link stands there whose target cannot be reached: %w; remove the link with Rmdir", err)
	case err != nil:
		return winerr.Wrap(op, path, err)
	case !info.Directory:
		return winerr.New(winerr.Exists, op, path, "a file stands there")
	}
	return nil
}

// taken reports whether err from CreateDirectory means that something has this
// name already. The root of a drive answers "access denied" instead.
func (h host) taken(path string, err error) bool {
	_, hasParent := winpath.Parent(path)
	return errors.Is(err, winerr.Exists) || (!hasParent && winerr.CodeOf(err) == winerr.AccessDenied)
}

func (h host) CreateSymlink(oldname, newname string) error {
	const op = "create link"
	err := h.m.CreateDirectoryLink(h.ctx, newname, oldname)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, winerr.Exists):
		return h.checkSameLink(oldname, newname, err)
	case winerr.CodeOf(err) == winerr.PathNotFound:
		return winerr.As(winerr.NotFound, op, newname, err, "create its parent directory with Mkdir first")
	default:
		return winerr.Wrap(op, newname, err)
	}
}

// checkSameLink decides what stands at newname after creation failed with
// existing: the link that was asked for, which makes a retry a success, or
// something else, which is never replaced.
func (h host) checkSameLink(oldname, newname string, existing error) error {
	const op = "create link"
	point, err := h.m.ReparsePoint(h.ctx, newname)
	switch {
	case winerr.CodeOf(err) == winerr.NotAReparsePoint:
		return winerr.As(winerr.Exists, op, newname, existing, "it is not a link; remove it with Rmdir first")
	case err != nil:
		return winerr.Wrap(op, newname, err)
	case point.Tag == win.TagSymlink && winpath.SameTarget(point.Target(), oldname):
		return nil
	}
	return winerr.New(winerr.Exists, op, newname,
		"a link to %s stands there, not to %s; remove it with Rmdir first", point.Target(), oldname)
}
