package api

import (
	"context"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

// standing is what stands at a path.
type standing struct {
	missing bool
	volume  win.VolumeID // of a mounted folder
	link    string       // target of any other link
}

// ordinary is an existing file or directory that is no link.
func (s standing) ordinary() bool { return s == standing{} }

// look finds out what stands at a path from the path's own data, so that it does not
// matter whether what is mounted or linked there can be reached.
func (h host) look(ctx context.Context, path string) (standing, error) {
	point, err := h.m.ReparsePoint(ctx, path)
	switch {
	case winerr.CodeOf(err) == winerr.NotAReparsePoint:
		return standing{}, nil
	case errors.Is(err, winerr.NotFound):
		return standing{missing: true}, nil
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
	if s.volume != "" {
		return "a mounted folder of volume " + string(s.volume)
	}
	return "a link to " + s.link
}

// sameVolume reports whether two ids name one volume. It can have several, and then only
// where it lies tells.
// https://learn.microsoft.com/windows/win32/fileio/naming-a-volume
func (h host) sameVolume(ctx context.Context, a, b win.VolumeID) (bool, error) {
	if a == b {
		return true, nil
	}
	var at [2]win.DeviceNumber
	for i, id := range []win.VolumeID{a, b} {
		var err error
		if at[i], err = h.m.DeviceNumber(ctx, id.Device()); err != nil && !answered(err) {
			return false, err
		}
	}
	return at[0] == at[1] && at[0].Type == win.DeviceTypeDisk, nil // the type is 0 if it failed
}

// refuseRoot keeps the calls on folders from giving and taking drive letters, which the
// same functions of Windows do.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-setvolumemountpointw
func refuseRoot(w work) error {
	if _, ok := winpath.Parent(w.path); ok {
		return nil
	}
	return winerr.New(winerr.Invalid, w.op, w.object(), "the root of a drive is not a folder that can show a volume")
}
