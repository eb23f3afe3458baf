package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

// Hop is where a link leads: to one of these.
type Hop struct {
	Volume win.VolumeID // a volume,
	Below  []string     // or a directory of it
	Remote string       // a share
	Path   string       // a clean path on a drive
}

// LeadsTo works out where the link at a path leads. The code is 4390 if it is a reparse
// point, but no link.
func LeadsTo(at win.Path, point win.ReparsePoint) (Hop, error) {
	if !isLink(point.Tag) {
		return Hop{}, winerr.NotAReparsePoint // deduplicated or the like: what it looks like
	}
	target := point.Target()
	if volume, below, ok := cutVolume(target); ok {
		return Hop{Volume: volume, Below: below}, nil
	}
	if onDrive, ok := strings.CutPrefix(target, `\\?\`); ok && len(onDrive) > 2 && onDrive[1] == ':' {
		target = onDrive // written by hand
	}
	switch {
	case strings.HasPrefix(target, `\\?\`) || strings.HasPrefix(target, `\\.\`):
		return Hop{}, winerr.New(winerr.Unsupported, "follow link", at.String(), "it leads to %s, which is not on a drive", target)
	case strings.HasPrefix(target, `\\`):
		return Hop{Remote: target}, nil
	case len(target) >= 2 && target[1] == ':':
		return onDrive(at, target[:2], target[2:])
	case strings.HasPrefix(target, `\`):
		return fromRoot(at, target)
	default: // from the directory of the link
		dir, _ := at.Split()
		_, below := splitRoot(dir)
		return fromRoot(at, below+winpath.Separator+target)
	}
}

// fromRoot is a link's target on the link's own drive or volume.
func fromRoot(at win.Path, target string) (Hop, error) {
	root, _ := splitRoot(at)
	if volume, ok := win.ParseVolumeID(root); ok {
		return Hop{Volume: volume, Below: withoutDots(target)}, nil
	}
	return onDrive(at, root, target)
}

// splitRoot cuts a path after its volume or drive letter.
func splitRoot(p win.Path) (root, below string) {
	if _, ok := win.ParseVolumeID(p.Base); ok {
		return p.Base, p.Rest
	}
	path := p.String()
	return path[:2], path[2:]
}

func onDrive(at win.Path, drive, below string) (Hop, error) {
	clean, err := winpath.Clean(drive + winpath.Separator + strings.Join(withoutDots(below), winpath.Separator))
	if err != nil {
		return Hop{}, winerr.As(winerr.Unsupported, "follow link", at.String(), fmt.Errorf("it leads to %w", err), "")
	}
	return Hop{Path: clean}, nil
}

// withoutDots resolves the dots of a path by its spelling, as Windows does with the
// targets of links.
func withoutDots(path string) []string {
	var names []string
	for name := range strings.SplitSeq(path, winpath.Separator) {
		switch name {
		case "", ".":
		case "..":
			names = names[:max(0, len(names)-1)]
		default:
			names = append(names, name)
		}
	}
	return names
}

// cutVolume splits \\?\Volume{guid}\dir.
func cutVolume(target string) (id win.VolumeID, below []string, ok bool) {
	end := strings.IndexByte(target, '}') + 1
	if id, ok = win.ParseVolumeID(target[:end]); !ok {
		return "", nil, false
	}
	return id, withoutDots(target[end:]), true
}

// step returns the way on from a link, with the names that came after it, if the policy
// lets the call follow it.
func (r Reach) step(ctx context.Context, c call, link win.Path, point win.ReparsePoint, after []string) (win.Path, error) {
	hop, err := LeadsTo(link, point)
	_, onVolume := win.ParseVolumeID(link.Base)
	switch {
	case err != nil && r.policy == nil:
		return win.Path{}, err
	case err != nil:
		return win.Path{}, c.denied("the link %s is not followed: %w", link, winerr.Cause(err))
	case hop.Volume != "":
		if err := r.mayEnter(ctx, c, link, hop.Volume); err != nil {
			return win.Path{}, err
		}
		return win.Path{Base: string(hop.Volume)}.Join(hop.Below...).Join(after...), nil
	case hop.Remote == "":
		way, err := r.wayFrom(c, hop.Path, after)
		if err != nil && r.policy != nil {
			return win.Path{}, c.denied("the link %s leads to %s: %w", link, hop.Path, winerr.Cause(err))
		}
		if err != nil {
			return win.Path{}, err
		}
		return way, r.mustExist(ctx, c, link, way, len(after))
	case r.policy == nil || (rules[c.access].shares && !onVolume && (len(after) == 0 || c.access == Show)):
		return win.Path{Base: hop.Remote}.Join(after...), nil
	default:
		return win.Path{}, c.denied("the link %s leads to %s, outside the working directories", link, hop.Remote)
	}
}

// mustExist checks for calls that make directories that a link leads to something: the way
// without the names that came after the link.
func (r Reach) mustExist(ctx context.Context, c call, link, way win.Path, after int) error {
	if !rules[c.access].makes {
		return nil
	}
	names := way.Names()
	_, err := r.m.FileInfo(ctx, win.Path{Base: way.Base}.Join(names[:max(0, len(names)-after)]...))
	if Unreachable(err) {
		return c.leadsNowhere(link, err)
	}
	return nil
}

// wayFrom is the way to what a link leads to on a drive. The path can become too long for
// Windows, or for a component to be judged, only now.
func (r Reach) wayFrom(c call, path string, after []string) (win.Path, error) {
	for _, name := range after {
		path = winpath.Join(path, name)
	}
	if err := winpath.Validate(path); err != nil {
		return win.Path{}, winerr.As(winerr.Unsupported, c.op, c.path, err, "")
	}
	if r.policy == nil {
		return win.Beneath(path[:len(`C:\`)], path), nil
	}
	return r.policy.place(c.op, path, c.access)
}

// mayEnter checks that a volume may be entered through a link. Those on which Windows or
// a working directory lies can be named as volumes as well as by their drive letter, and
// would be a way past all working directories.
func (r Reach) mayEnter(ctx context.Context, c call, link win.Path, id win.VolumeID) error {
	if r.policy == nil {
		return nil
	}
	if !rules[c.access].volumes {
		return c.denied("%s shows volume %s, and below a mounted volume nothing is created or removed", link, id)
	}
	own, err := r.ownVolumes(ctx)
	if err != nil {
		return winerr.Wrap(c.op, c.path, err)
	}
	switch own, err := r.isOneOf(ctx, id, own); {
	case err != nil:
		return winerr.Wrap(c.op, c.path, err)
	case own:
		return c.denied("%s shows volume %s, on which Windows or a working directory lies", link, id)
	}
	return nil
}

// ownVolumes are those of Windows and of the working directories. A working directory that
// does not exist yet is on no volume.
func (r Reach) ownVolumes(ctx context.Context) ([]win.VolumeID, error) {
	own, err := r.m.SystemVolumes(ctx)
	if err != nil {
		return nil, err
	}
	for _, dir := range r.policy.workingDirs {
		id, err := r.m.VolumeOfPath(ctx, win.Following(dir))
		switch {
		case err == nil && !slices.Contains(own, id):
			own = append(own, id)
		case err != nil && !errors.Is(err, winerr.NotFound):
			return nil, err
		}
	}
	return own, nil
}

// SameVolume reports whether two ids name one volume.
func (r Reach) SameVolume(ctx context.Context, a, b win.VolumeID) (bool, error) {
	return r.isOneOf(ctx, a, []win.VolumeID{b})
}

// isOneOf reports whether an id names one of the volumes. A volume can have several ids, and
// then only where it lies tells.
// https://learn.microsoft.com/windows/win32/fileio/naming-a-volume
func (r Reach) isOneOf(ctx context.Context, id win.VolumeID, others []win.VolumeID) (bool, error) {
	if slices.Contains(others, id) {
		return true, nil
	}
	at, err := r.whereabouts(ctx, id)
	if err != nil || at.Type != win.DeviceTypeDisk {
		return false, err
	}
	for _, other := range others {
		if there, err := r.whereabouts(ctx, other); err != nil || there == at {
			return err == nil, err
		}
	}
	return false, nil
}

// whereabouts is where a volume lies, or zero if Windows does not tell.
func (r Reach) whereabouts(ctx context.Context, id win.VolumeID) (win.DeviceNumber, error) {
	at, err := r.m.DeviceNumber(ctx, id.Device())
	if err != nil && winerr.CodeOf(err) == 0 {
		return win.DeviceNumber{}, err // the caller has left
	}
	return at, nil
}
