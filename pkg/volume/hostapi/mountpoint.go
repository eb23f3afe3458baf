package api

import (
	"context"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// standing is what stands at a path.
type standing struct {
	missing bool
	broken  bool         // a link that cannot be read
	volume  win.VolumeID // of a mounted folder
	link    string       // target of any other link
}

// ordinary is an existing file or directory that is no link.
func (s standing) ordinary() bool { return s == standing{} }

// find opens the folder in which a path's last name stands, if there is such a folder, and
// looks at what does.
func (h host) find(ctx context.Context, w work, access policy.Access) (policy.Entry, standing, error) {
	entry, err := h.files().Open(ctx, w.op, w.path, access)
	switch {
	case errors.Is(err, winerr.NotFound):
		return entry, standing{missing: true}, nil
	case err != nil:
		return entry, standing{}, err
	}
	at, err := h.look(ctx, entry)
	if err != nil {
		entry.Close()
	}
	return entry, at, err
}

// look finds out what stands at an entry from its own data, so that it does not matter
// whether what is mounted or linked there can be reached.
func (h host) look(ctx context.Context, at policy.Entry) (standing, error) {
	point, err := at.Dir.ReparsePoint(ctx, at.Name)
	switch {
	case winerr.CodeOf(err) == winerr.NotAReparsePoint:
		return standing{}, nil
	case errors.Is(err, winerr.NotFound):
		return standing{missing: true}, nil
	case policy.Unreadable(err):
		return standing{broken: true}, nil
	case err != nil:
		return standing{}, err
	case point.Tag != win.TagMountPoint && point.Tag != win.TagSymlink:
		return standing{}, nil // deduplicated or the like: what it looks like
	}
	if text, mounted := point.MountedVolume(); mounted {
		id, _ := win.ParseVolumeID(text)
		return standing{volume: id}, nil
	}
	return standing{link: point.Target()}, nil
}

// describe completes "... stands there".
func (s standing) describe() string {
	switch {
	case s.broken:
		return "a link that cannot be read, which Rmdir removes,"
	case s.volume != "":
		return "a mounted folder of volume " + string(s.volume)
	default:
		return "a link to " + s.link
	}
}

// checkFolder judges the path of a call by its spelling, and keeps the calls on folders from
// giving and taking drive letters, which the same functions of Windows do.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-setvolumemountpointw
func checkFolder(w work, access policy.Access) error {
	if err := w.limits.Check(w.op, w.path, access); err != nil {
		return err
	}
	if _, ok := winpath.Parent(w.path); ok {
		return nil
	}
	return winerr.New(winerr.Invalid, w.op, w.object(), "the root of a drive is not a folder that can show a volume")
}
