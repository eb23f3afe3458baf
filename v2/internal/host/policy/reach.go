package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Reach gives access to a machine's files within a policy. It fails with the machine's
// errors, and with errors of kind Denied that name operation and path.
type Reach struct {
	m      win.Machine
	policy *Policy
}

// Reach returns access to a machine's files within this policy.
func (p *Policy) Reach(m win.Machine) Reach { return Reach{m: m, policy: p} }

type call struct {
	op     string
	path   string // as the caller wrote it
	access Access
}

func (c call) denied(format string, args ...any) error {
	return winerr.New(winerr.Denied, c.op, c.path, format, args...)
}

// try calls f with a path on which Windows follows no link. If a link makes f fail, and the
// policy lets the call follow the link, try calls f with the path to go on with.
func (r Reach) try(ctx context.Context, c call, f func(win.Path) error) error {
	at, err := r.policy.locate(c.op, c.path, c.access)
	if err != nil {
		return err
	}
	return r.tryFrom(ctx, c, at, f)
}

func (r Reach) tryFrom(ctx context.Context, c call, at win.Path, f func(win.Path) error) error {
	missing := missingLinks{call: c}
	for range win.MaxLinks {
		err := f(at)
		if winerr.CodeOf(err) != winerr.ReparsePointEncounter {
			return err
		}
		if at, err = r.around(ctx, c, at, rules[c.access].last, &missing); err != nil {
			return err
		}
	}
	return tooManyLinks(c)
}

// missingLinks counts in a row how often Windows reports a link that is not there. Another
// process may have removed it meanwhile, but not again and again.
//
// The filter driver that shows volume mounts in a HostProcess container redirects opens without
// a reparse point, so an open that refuses links is expected to fail at such a directory for
// good. https://github.com/microsoft/hcsshim/pull/1344
type missingLinks struct {
	call  call
	count int
}

// add counts one, at a path, and fails if that is one too many.
func (m *missingLinks) add(at win.Path) error {
	const limit = 3
	if m.count++; m.count < limit {
		return nil
	}
	return winerr.As(winerr.InUse, m.call.op, m.call.path, winerr.ReparsePointEncounter,
		fmt.Sprintf("Windows reports a link at %s, but there is none; a HostProcess container must not mount volumes in the working directories", at))
}

func tooManyLinks(c call) error {
	return winerr.As(winerr.InUse, c.op, c.path, winerr.CantResolveFilename, "")
}

// around returns the path to go on with after the first link on a path, or the same path if
// there is no link any more.
func (r Reach) around(ctx context.Context, c call, at win.Path, last bool, missing *missingLinks) (win.Path, error) {
	names := at.Names()
	suspects := len(names)
	if !last {
		suspects--
	}
	n, err := r.firstLink(ctx, at.Base, names, suspects)
	if err != nil {
		return at, err
	}
	if n == 0 {
		dir, _ := at.Split()
		return at, missing.add(dir)
	}
	link := win.Path{Base: at.Base}.Join(names[:n]...)
	point, err := r.m.ReparsePoint(ctx, link)
	switch {
	case err == nil:
		missing.count = 0
		return r.step(ctx, c, link, point, names[n:])
	case winerr.CodeOf(err) == winerr.ReparsePointEncounter || errors.Is(err, winerr.NotFound):
		return at, missing.add(link) // replaced just now; the next try sees what by
	default:
		return at, err
	}
}

// firstLink returns how many of the names lead up to and include the first link; 0 if none of
// the suspects is a link. Usually it is the last of them, so it goes up from there.
func (r Reach) firstLink(ctx context.Context, base string, names []string, suspects int) (int, error) {
	first := 0
	for n := suspects; n > 0; n-- {
		info, err := r.m.FileInfo(ctx, win.Path{Base: base}.Join(names[:n]...))
		switch {
		case winerr.CodeOf(err) == winerr.ReparsePointEncounter:
			first = n // or above
		case err == nil && info.Tag.NameSurrogate():
			return n, nil
		case err == nil || errors.Is(err, winerr.NotFound):
			return first, nil
		default:
			return 0, err
		}
	}
	return first, nil
}

// Info describes the file at a path, which can be a link.
func (r Reach) Info(ctx context.Context, op, path string) (info win.FileInfo, err error) {
	err = r.try(ctx, call{op, path, Read}, func(at win.Path) error {
		info, err = r.m.FileInfo(ctx, at)
		return err
	})
	return info, err
}

// Link reads the link at a path, and returns its location, which a relative target needs. It
// fails with ERROR_NOT_A_REPARSE_POINT (4390) for an ordinary file or directory.
func (r Reach) Link(ctx context.Context, op, path string) (linkPath win.Path, link win.ReparsePoint, err error) {
	err = r.try(ctx, call{op, path, Read}, func(at win.Path) error {
		linkPath = at
		link, err = r.m.ReparsePoint(ctx, at)
		return err
	})
	return linkPath, link, err
}

// Target describes the file at the end of all links. The path can be a network path, which
// policies do not limit.
func (r Reach) Target(ctx context.Context, op, path string) (info win.FileInfo, err error) {
	if r.policy == nil || isRemote(path) {
		return r.m.FileInfo(ctx, win.Following(path))
	}
	err = r.try(ctx, call{op, path, Enter}, func(at win.Path) error {
		info, err = r.m.TargetInfo(ctx, at)
		return err
	})
	return info, err
}

// Space measures the volume or share that the directory at the end of all links is on.
func (r Reach) Space(ctx context.Context, op, path string) (space win.Space, err error) {
	if r.policy == nil {
		return r.m.PathSpace(ctx, win.Following(path))
	}
	err = r.try(ctx, call{op, path, Enter}, func(at win.Path) error {
		space, err = r.m.PathSpace(ctx, at)
		return err
	})
	return space, err
}

// List lists the directory at a path, which cannot be a link or a mounted folder: ERROR_DIRECTORY (267).
func (r Reach) List(ctx context.Context, op, path string, each func(dir win.Tree, entries []win.DirEntry) error) error {
	return r.try(ctx, call{op, path, Read}, func(at win.Path) error {
		above, name := at.Split()
		parent, err := r.m.OpenDirectory(ctx, above)
		if winerr.CodeOf(err) == winerr.Directory {
			return winerr.PathNotFound
		}
		if err != nil {
			return err
		}
		defer parent.Close()
		return win.List(ctx, parent, name, each)
	})
}

// LinkTarget is Target of a path at which Link found a link.
func (r Reach) LinkTarget(ctx context.Context, op, path string, linkPath win.Path, link win.ReparsePoint) (info win.FileInfo, err error) {
	if r.policy == nil || r.policy.has(path) {
		return r.Target(ctx, op, path)
	}
	if _, mounted := link.MountedVolume(); mounted {
		return r.m.TargetInfo(ctx, linkPath)
	}
	c := call{op, path, Enter}
	at, err := r.step(ctx, c, linkPath, link, nil)
	if err != nil {
		return info, err
	}
	err = r.tryFrom(ctx, c, at, func(at win.Path) error {
		info, err = r.m.TargetInfo(ctx, at)
		return err
	})
	return info, err
}

// Resolve follows every link of a path, the last one included, and returns the path that it
// ends at. That need not exist, and a volume on the way need not answer.
func (r Reach) Resolve(ctx context.Context, op, path string, access Access) (win.Path, error) {
	c := call{op, path, access}
	at, err := r.wayFrom(c, path, nil)
	if err != nil {
		return at, err
	}
	missing := missingLinks{call: c}
	for range win.MaxLinks {
		if at.Rest == "" || isRemote(at.Base) {
			return at, nil
		}
		point, err := r.m.ReparsePoint(ctx, at)
		switch code := winerr.CodeOf(err); {
		case err == nil && point.Tag.NameSurrogate():
			at, err = r.step(ctx, c, at, point, nil)
		case Unreadable(err) && access == Show:
			return at, c.denied("the link %s cannot be read: %w; remove it with Rmdir", at, err)
		case err == nil || code == winerr.NotAReparsePoint || Unreachable(err):
			return at, nil
		case code == winerr.ReparsePointEncounter:
			at, err = r.around(ctx, c, at, false, &missing)
		}
		if err != nil {
			return at, err
		}
	}
	return at, tooManyLinks(c)
}

func isLink(tag win.ReparseTag) bool { return tag == win.TagSymlink || tag == win.TagMountPoint }

func isRemote(base string) bool { return strings.HasPrefix(base, `\\`) && !isVolume(base) }

func isVolume(base string) bool {
	_, ok := win.ParseVolumeID(base)
	return ok
}

// CheckShown checks that a link may lead to a path: users of the link see everything there.
func (r Reach) CheckShown(ctx context.Context, op, path string) error {
	if r.policy == nil {
		return nil
	}
	_, err := r.Resolve(ctx, op, path, Show)
	return err
}

// Unreachable reports whether err means that a file is gone or malformed, or that its volume
// or server does not answer. After a node crash mount points are often unreadable, and
// drivers can clean up only if that is an answer rather than an error. It has all codes that
// k8s.io/mount-utils takes for a corrupted mount. Other temporary failures, such as a lack of
// memory, do not count: a driver would take a healthy mount for a broken one.
func Unreachable(err error) bool {
	if Unreadable(err) {
		return true
	}
	switch winerr.CodeOf(err) {
	case winerr.FileNotFound, winerr.PathNotFound, winerr.InvalidName, winerr.BadPathname, winerr.CantResolveFilename, // the link
		winerr.NotReady, winerr.UnrecognizedVolume, winerr.FVELocked, // its volume
		winerr.DevNotExist, winerr.NoSuchDevice, winerr.DeviceNotConnected, winerr.DeviceRemoved, // its disk
		winerr.BadNetPath, winerr.BadNetName, winerr.NetnameDeleted, winerr.NetworkUnreachable, winerr.HostUnreachable,
		winerr.RemoteNotList, winerr.UnexpectedNetErr, winerr.NetworkBusy, winerr.BadDevType, winerr.ConnectionRefused, winerr.HostDown, // its server
		winerr.LogonFailure, winerr.InvalidPassword, winerr.CredentialConflict, winerr.PasswordExpired, winerr.PasswordMustChange,
		winerr.AccountDisabled, winerr.AccountExpired, winerr.AccountLockedOut, winerr.NetworkAccessDenied, winerr.LoginWorkstation,
		winerr.GuestLogonBlocked, winerr.NoSuchLogonSession: // its server refuses the account
		return true
	default:
		return false
	}
}

// Unreadable reports whether err means that a link exists but its data is corrupt, as after a
// node crash.
func Unreadable(err error) bool {
	switch winerr.CodeOf(err) {
	case winerr.InvalidReparseData, winerr.ReparseTagInvalid, winerr.FileCorrupt, winerr.DiskCorrupt:
		return true
	default:
		return false
	}
}
