package api

import (
	"context"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// folder is the name of a link in an open directory. The directory stays open while a server
// takes its time, so replacing a directory of its path by a link has no effect.
type folder struct {
	policy.Entry      // empty without a local path
	linked       bool // the link exists
}

// openFolder opens the directory of a link and refuses a path that is not allowed or in use, so
// that a wrong request leaves no mapping behind.
func (h host) openFolder(ctx context.Context, remote unc.Path, local string) (folder, error) {
	if local == "" {
		return folder{}, nil
	}
	entry, err := h.limits.Reach(h.m).Open(ctx, opLink, local, policy.Link)
	switch {
	case errors.Is(err, winerr.NotFound):
		return folder{}, winerr.As(winerr.NotFound, opLink, local, err, "create its parent directory with Mkdir first")
	case err != nil:
		return folder{}, winerr.Wrap(opLink, local, err)
	}
	f := folder{Entry: entry}
	if f.linked, err = f.leadsTo(ctx, remote); err != nil {
		f.Close()
		return folder{}, err
	}
	return f, nil
}

// leadsTo reports whether the link exists. Anything else with that name is an error, and is
// never replaced.
func (f folder) leadsTo(ctx context.Context, remote unc.Path) (bool, error) {
	point, err := f.Dir.ReparsePoint(ctx, f.Name)
	switch {
	case winerr.CodeOf(err) == winerr.NotAReparsePoint:
		return false, winerr.New(winerr.Exists, opLink, f.Path, "it exists and is not a link; remove it with Rmdir first")
	case errors.Is(err, winerr.NotFound):
		return false, nil
	case err != nil:
		return false, winerr.Wrap(opLink, f.Path, err)
	case point.Tag == win.TagSymlink && winpath.SameTarget(point.Target(), remote.Directory()):
		return true, nil
	}
	return false, winerr.New(winerr.Exists, opLink, f.Path,
		"it is a link to %s, not to %s; remove it with Rmdir first", point.Target(), remote.Directory())
}

func (h host) link(ctx context.Context, remote unc.Path, f folder) error {
	if f.Dir == nil {
		return nil
	}
	if !f.linked {
		err := f.Dir.CreateDirectoryLink(ctx, f.Name, remote.Directory())
		switch {
		case errors.Is(err, winerr.Exists): // created since openFolder
			if _, err := f.leadsTo(ctx, remote); err != nil {
				return err
			}
		case winerr.CodeOf(err) == winerr.FilenameExcedRange:
			return winerr.As(winerr.Invalid, opLink, f.Path, err, "the remote path is too long for a link")
		case err != nil:
			return winerr.Wrap(opLink, f.Path, err)
		}
	}
	if h.state.links.add(remote.Share(), link{f.Path, h.limits}) {
		h.forgetGone(ctx, remote.Share())
	}
	return nil
}
