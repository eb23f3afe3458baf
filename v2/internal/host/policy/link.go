package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// Hop is where a link leads: to one of these.
type Hop struct {
	Volume win.VolumeID // a volume,
	Below  []string     // or a directory of it
	Remote string       // a share
	Path   string       // a clean path on a drive

	// Guessed means that Windows may follow the link to another path. The kernel resolves a
	// relative target against the name under which it reached the link; in that name, some
	// earlier links are replaced by their targets and some are not. Only targets that go
	// straight down from the link's own directory are the same in either case.
	Guessed bool
}

// LeadsTo works out where the link at a path leads. It fails with
// ERROR_NOT_A_REPARSE_POINT (4390) for a reparse point that is neither a symbolic link nor a
// mount point. Guessed is also valid with an error: under another name of the link, Windows may follow it.
func LeadsTo(at win.Path, point win.ReparsePoint) (Hop, error) {
	if !isLink(point.Tag) {
		return Hop{}, winerr.NotAReparsePoint // such as a deduplicated file, which behaves like any other
	}
	if point.Relative {
		return relativeHop(at, point.Substitute)
	}
	target := point.Target()
	if target == point.Substitute { // a name of the kernel, such as \Device\HarddiskVolume2
		return Hop{}, notOnDrive(at, target)
	}
	if volume, below, ok := cutVolume(target); ok {
		return Hop{Volume: volume, Below: below}, nil
	}
	switch {
	case strings.HasPrefix(target, `\\?\`):
		return Hop{}, notOnDrive(at, target)
	case strings.HasPrefix(target, `\\`):
		return Hop{Remote: target}, nil
	default:
		// Dots that CreateSymbolicLinkW was given stop at the root, and it stores none.
		names, _ := withoutDots(target[2:])
		return onDrive(at, target[:2], names)
	}
}

func notOnDrive(at win.Path, target string) error {
	return winerr.New(winerr.Unsupported, "follow link", at.String(), "it leads to %s, which is not on a drive", winpath.Quote(target))
}

// relativeHop is where a relative target leads. Windows follows neither doubled separators nor dots beyond
// the root: Wine's dlls/ntdll/tests/file.c, which passes on Windows.
func relativeHop(at win.Path, target string) (Hop, error) {
	root, below := splitRoot(at)
	dir := below[:strings.LastIndexByte(below, '\\')+1]
	guessed := target == "" || slices.Contains(strings.Split(target, winpath.Separator), "..")
	if strings.HasPrefix(target, winpath.Separator) {
		dir, guessed = "", true
	}
	if strings.Contains(target, `\\`) {
		return Hop{Guessed: guessed}, winerr.InvalidName
	}
	names, ok := withoutDots(dir + target)
	if !ok {
		return Hop{Guessed: guessed}, winerr.InvalidReparseData
	}
	if volume, ok := win.ParseVolumeID(root); ok {
		return Hop{Volume: volume, Below: names, Guessed: guessed}, nil
	}
	hop, err := onDrive(at, root, names)
	hop.Guessed = guessed
	return hop, err
}

// splitRoot cuts a path after its volume or drive letter.
func splitRoot(p win.Path) (root, below string) {
	if isVolume(p.Base) {
		return p.Base, winpath.Separator + p.Rest
	}
	path := p.String()
	return path[:2], path[2:]
}

func onDrive(at win.Path, drive string, names []string) (Hop, error) {
	clean, err := winpath.Clean(drive + winpath.Separator + strings.Join(names, winpath.Separator))
	if err != nil {
		return Hop{}, winerr.As(winerr.Unsupported, "follow link", at.String(), fmt.Errorf("its target: %w", err), "")
	}
	return Hop{Path: clean}, nil
}

// withoutDots resolves the dots of a path by its spelling. It is not ok if they lead beyond the root, where
// the names stop.
func withoutDots(path string) (names []string, ok bool) {
	ok = true
	for name := range strings.SplitSeq(path, winpath.Separator) {
		switch name {
		case "", ".":
		case "..":
			ok = ok && len(names) > 0
			names = names[:max(0, len(names)-1)]
		default:
			names = append(names, name)
		}
	}
	return names, ok
}

// cutVolume splits \\?\Volume{guid}\dir.
func cutVolume(target string) (id win.VolumeID, below []string, ok bool) {
	if id, ok = win.VolumeOf(target); !ok {
		return "", nil, false
	}
	_, rest, _ := strings.Cut(target, "}")
	below, _ = withoutDots(rest)
	return id, below, true
}

// step returns the path to go on with after a link, with the names that came after it, if
// the policy lets the call follow it.
func (r Reach) step(ctx context.Context, c call, link win.Path, point win.ReparsePoint, after []string) (win.Path, error) {
	hop, err := LeadsTo(link, point)
	if r.policy == nil {
		return r.unlimitedStep(c, hop, err, after)
	}
	switch {
	case hop.Guessed:
		return win.Path{}, c.denied("the link %s is not followed: its target %s is relative and does not go straight down", link, winpath.Quote(point.Substitute))
	case err != nil:
		return win.Path{}, c.denied("the link %s is not followed: %w", link, winerr.Cause(err))
	case hop.Volume != "":
		if c.access == Show && len(hop.Below)+len(after) > 0 {
			return win.Path{}, c.denied("%s mounts volume %s, and pods can change what lies on a volume; link to the volume itself", link, hop.Volume)
		}
		if err := r.mayEnter(ctx, c, link, point, hop.Volume); err != nil {
			return win.Path{}, err
		}
		return win.Path{Base: string(hop.Volume)}.Join(hop.Below...).Join(after...), nil
	case hop.Remote != "":
		if err := mayVisit(c, link, point, hop.Remote, after); err != nil {
			return win.Path{}, err
		}
		return win.Path{Base: hop.Remote}.Join(after...), nil
	}
	way, err := r.wayFrom(c, hop.Path, after)
	if err != nil {
		return win.Path{}, c.denied("the link %s leads to %s: %w", link, hop.Path, winerr.Cause(err))
	}
	return way, r.mustExist(ctx, c, link, way, len(after))
}

// unlimitedStep is step without a policy.
func (r Reach) unlimitedStep(c call, hop Hop, err error, after []string) (win.Path, error) {
	switch {
	case err != nil:
		return win.Path{}, err
	case hop.Volume != "":
		return win.Path{Base: string(hop.Volume)}.Join(hop.Below...).Join(after...), nil
	case hop.Remote != "":
		return win.Path{Base: hop.Remote}.Join(after...), nil
	default:
		return r.wayFrom(c, hop.Path, after)
	}
}

// mayVisit checks that a link to a share may be followed. Links on a mounted volume may not:
// a pod may have made them to have the node log in to a server of its choice. Windows makes
// no junctions to shares. Administrative shares can be those of this node.
func mayVisit(c call, link win.Path, point win.ReparsePoint, remote string, after []string) error {
	share, err := unc.Parse(c.op, remote)
	if err == nil {
		err = share.CheckMappable(c.op)
	}
	if err != nil {
		return c.denied("the link %s leads to %s: %w", link, winpath.Quote(remote), winerr.Cause(err))
	}
	if !rules[c.access].shares || isVolume(link.Base) || point.Tag != win.TagSymlink || (len(after) > 0 && c.access != Show) {
		return c.denied("the link %s leads to %s, outside the working directories", link, winpath.Quote(remote))
	}
	return nil
}

// mustExist fails for calls that make directories if the target of a link does not exist.
// way is the target followed by the names after the link.
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

// wayFrom is the path to the target of a link on a drive, and the names after the link. It
// checks the result, which can be too long although its parts are not.
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
	return r.policy.locate(c.op, path, c.access)
}

// mayEnter checks that a volume may be entered through a link. Anybody who can write to a
// directory can make a link to any volume, including those with a drive letter. So callers do
// not reach a volume that Windows needs, nor one that is mounted only outside the working
// directories.
//
// A mounted folder in a working directory counts although the mount manager does not list it:
// the notification of a mount can get lost, and then a volume that also has a drive letter
// would be locked. This lets in a junction that a pod has made in an emptyDir and that looks
// like a mounted folder. Its target is not secret: every caller can mount the same volume.
func (r Reach) mayEnter(ctx context.Context, c call, link win.Path, point win.ReparsePoint, id win.VolumeID) error {
	if !rules[c.access].volumes {
		return c.denied("%s mounts volume %s, and csi-proxy creates and removes nothing below a mounted volume", link, id)
	}
	names, err := r.m.VolumePaths(ctx, id)
	if err != nil && !errors.Is(err, winerr.NotFound) { // a volume that is gone has no names
		return winerr.Wrap(c.op, c.path, err)
	}
	listed := len(names) == 0 || slices.ContainsFunc(names, r.policy.contains)
	if _, mounted := point.MountedVolume(); !listed && (!mounted || !r.policy.contains(link.String())) {
		return c.denied("%s mounts volume %s, which is %s and mounted in no working directory", link, id, names[0])
	}
	system, err := r.m.SystemVolumes(ctx)
	if err != nil {
		return winerr.Wrap(c.op, c.path, err)
	}
	needed := slices.Contains(system, id)
	if !listed && !needed {
		klog.FromContext(ctx).V(2).Info("The mount manager does not list a mounted folder", "path", link, "volume", id, "lists", names)
		// The names of a volume tell its other ids; without them the disk must.
		if needed, err = r.SameVolume(ctx, id, system...); err != nil {
			return winerr.Wrap(c.op, c.path, err)
		}
	}
	if needed {
		return c.denied("%s mounts volume %s, from which Windows runs", link, id)
	}
	return nil
}

// SameVolume reports whether an id names one of the given volumes. A volume can have several
// ids, so it compares disk and partition as well.
// https://learn.microsoft.com/windows/win32/fileio/naming-a-volume
func (r Reach) SameVolume(ctx context.Context, id win.VolumeID, others ...win.VolumeID) (bool, error) {
	if slices.Contains(others, id) {
		return true, nil
	}
	at, err := r.deviceNumber(ctx, id)
	if err != nil || at.Type != win.DeviceTypeDisk {
		return false, err
	}
	for _, other := range others {
		if there, err := r.deviceNumber(ctx, other); err != nil || there == at {
			return err == nil, err
		}
	}
	return false, nil
}

// deviceNumber returns disk and partition of a volume, or zero if Windows does not report.
func (r Reach) deviceNumber(ctx context.Context, id win.VolumeID) (win.DeviceNumber, error) {
	at, err := r.m.DeviceNumber(ctx, id.Device())
	if err != nil && winerr.CodeOf(err) == 0 {
		return win.DeviceNumber{}, err // the caller has left
	}
	return at, nil
}
