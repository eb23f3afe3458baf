package api

import (
	"context"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// pathState is what exists at a path. The zero value is a file or directory.
type pathState struct {
	missing bool
	broken  bool         // a link that cannot be read
	volume  win.VolumeID // of a mounted folder
	link    string       // target of any other link
}

// ordinary reports whether it is a file or directory, not a link.
func (s pathState) ordinary() bool { return s == pathState{} }

// open opens the folder that contains a path, if it exists, and reads the state of the path.
func (h host) open(ctx context.Context, w work, access policy.Access) (policy.Entry, pathState, error) {
	entry, err := h.files().Open(ctx, w.op, w.path, access)
	switch {
	case errors.Is(err, winerr.NotFound):
		return entry, pathState{missing: true}, nil
	case err != nil:
		return entry, pathState{}, err
	}
	at, err := h.read(ctx, entry)
	if err != nil {
		entry.Close()
	}
	return entry, at, err
}

// read reads the state of an entry from the entry's own data, so the mounted volume or the
// target of the link need not be reachable.
func (h host) read(ctx context.Context, at policy.Entry) (pathState, error) {
	point, err := at.Dir.ReparsePoint(ctx, at.Name)
	switch {
	case winerr.CodeOf(err) == winerr.NotAReparsePoint:
		return pathState{}, nil
	case errors.Is(err, winerr.NotFound):
		return pathState{missing: true}, nil
	case policy.Unreadable(err):
		return pathState{broken: true}, nil
	case err != nil:
		return pathState{}, err
	case point.Tag != win.TagMountPoint && point.Tag != win.TagSymlink:
		return pathState{}, nil // such as a deduplicated file, which behaves like any other
	}
	if text, mounted := point.MountedVolume(); mounted {
		id, _ := win.ParseVolumeID(text)
		return pathState{volume: id}, nil
	}
	return pathState{link: point.Target()}, nil
}

// describe completes "the path is ...".
func (s pathState) describe() string {
	switch {
	case s.broken:
		return "a link that cannot be read (remove it with Rmdir)"
	case s.volume != "":
		return "a mounted folder of volume " + string(s.volume)
	default:
		return "a link to " + s.link
	}
}

// checkFolder checks the path of a call by its spelling. It refuses the root of a drive: the
// same functions of Windows assign and remove drive letters.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-setvolumemountpointw
func checkFolder(w work, access policy.Access) error {
	if err := w.limits.Check(w.op, w.path, access); err != nil {
		return err
	}
	if _, ok := winpath.Parent(w.path); ok {
		return nil
	}
	return winerr.New(winerr.Invalid, w.op, w.object(), "a volume cannot be mounted at the root of a drive")
}
