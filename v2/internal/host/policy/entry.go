package policy

import (
	"context"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Entry is a name in an open directory: where something is, or could be made.
type Entry struct {
	Dir  win.Directory
	Name string
	Path string // for messages
}

// Close closes the directory, if it was opened.
func (e Entry) Close() {
	if e.Dir != nil {
		e.Dir.Close()
	}
}

// Open opens the directory that contains the last name of a path. The root of a drive is in
// no directory and must not be passed. Below a file nothing exists, as Windows says of whole
// paths: ERROR_PATH_NOT_FOUND (3).
func (r Reach) Open(ctx context.Context, op, path string, access Access) (Entry, error) {
	return r.open(ctx, call{op, path, access}, func(win.Path) error { return nil })
}

// open is Open, unless look fails with the path on which Windows follows no link.
func (r Reach) open(ctx context.Context, c call, look func(win.Path) error) (Entry, error) {
	e := Entry{Path: c.path}
	err := r.try(ctx, c, func(at win.Path) (err error) {
		if err := look(at); err != nil {
			return err
		}
		dir, name := at.Split()
		e.Name = name
		if e.Dir, err = r.m.OpenDirectory(ctx, dir); winerr.CodeOf(err) == winerr.Directory {
			return winerr.PathNotFound
		}
		return err
	})
	if err != nil {
		return e, err
	}
	if err := r.keepIntact(ctx, c, e); err != nil {
		e.Close()
		return Entry{Path: c.path}, err
	}
	return e, nil
}

// Find is Open of a name that must exist, and describes what it stands for. It looks before it
// opens the directory, so that nothing is opened for a name that does not exist.
func (r Reach) Find(ctx context.Context, op, path string, access Access) (Entry, win.FileInfo, error) {
	var info win.FileInfo
	e, err := r.open(ctx, call{op, path, access}, func(at win.Path) (err error) {
		info, err = r.m.FileInfo(ctx, at)
		return err
	})
	return e, info, err
}

// keepIntact refuses an entry that is a working directory, or holds one, under any name: an
// operator's link can lead from one working directory into another, and files can have 8.3
// names that look like any other. locate has compared the spellings; with one working
// directory that is enough, because what lies in a directory does not hold it.
func (r Reach) keepIntact(ctx context.Context, c call, e Entry) error {
	if r.policy == nil || len(r.policy.workingDirs) < 2 || !rules[c.access].intact {
		return nil
	}
	entry, err := e.Dir.Location(ctx, e.Name)
	if errors.Is(err, winerr.NotFound) {
		return nil
	}
	for _, dir := range r.policy.workingDirs {
		if err != nil {
			return err
		}
		var location string
		location, err = r.m.Location(ctx, win.Following(dir))
		switch {
		case errors.Is(err, winerr.NotFound):
			err = nil
		case err == nil && winpath.Contains(entry, location):
			return c.denied("it holds the working directory %s, which csi-proxy never replaces, removes, empties or mounts over", dir)
		}
	}
	return err
}

// Make opens the directory that contains the last name of a path, and makes what is missing
// on the way and a directory of that name. made is false if something has that name already;
// the caller finds out what.
func (r Reach) Make(ctx context.Context, op, path string, access Access) (e Entry, made bool, err error) {
	c := call{op, path, access}
	e = Entry{Path: path}
	err = r.try(ctx, c, func(at win.Path) (err error) {
		dir, name := at.Split()
		e.Name = name
		if e.Dir, err = r.openMaking(ctx, c, dir); err != nil {
			return err
		}
		err = e.Dir.CreateDirectory(ctx, name)
		made, err = err == nil, ignoreExisting(err)
		if err != nil {
			e.Dir.Close()
		}
		return err
	})
	if err != nil {
		e.Dir = nil
	}
	return e, made, err
}

// MakeDirectory makes a directory, and what is missing on the way. If something has that name
// already, it describes that. It looks first, because most callers retry: then that is all.
func (r Reach) MakeDirectory(ctx context.Context, op, path string) (made bool, existing win.FileInfo, err error) {
	c := call{op, path, Create}
	err = r.try(ctx, c, func(at win.Path) error {
		if existing, err = r.m.FileInfo(ctx, at); !errors.Is(err, winerr.NotFound) {
			return err
		}
		made, err = r.makeMissing(ctx, c, at, err)
		if err != nil || made {
			return err
		}
		existing, err = r.m.FileInfo(ctx, at) // another caller was faster
		return err
	})
	return made, existing, err
}

// makeMissing makes a directory that was missing a moment ago, and says whether it did: another
// caller may have. missing is the failure that said so. If it is not about the last name, the
// directory above is missing as well.
func (r Reach) makeMissing(ctx context.Context, c call, at win.Path, missing error) (made bool, err error) {
	if winerr.CodeOf(missing) == winerr.FileNotFound {
		err := r.m.CreateDirectory(ctx, at)
		if !errors.Is(err, winerr.NotFound) {
			return err == nil, ignoreExisting(err)
		}
		missing = err
	}
	above, name := at.Split()
	dir, err := r.makeAbove(ctx, c, above, missing)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	err = dir.CreateDirectory(ctx, name)
	return err == nil, ignoreExisting(err)
}

func ignoreExisting(err error) error {
	if errors.Is(err, winerr.Exists) {
		return nil
	}
	return err
}

func (r Reach) openMaking(ctx context.Context, c call, path win.Path) (win.Directory, error) {
	dir, err := r.m.OpenDirectory(ctx, path)
	switch {
	case err == nil:
		return dir, nil
	case winerr.CodeOf(err) == winerr.Directory:
		return nil, c.obstructed(path, err)
	case !errors.Is(err, winerr.NotFound):
		return nil, err
	default:
		return r.makeAbove(ctx, c, path, err)
	}
}

// makeAbove makes a directory of which something is missing, and opens it. Nothing is made of the
// path to a volume.
func (r Reach) makeAbove(ctx context.Context, c call, path win.Path, missing error) (win.Directory, error) {
	switch {
	case isVolume(path.Base):
		return nil, missing
	case path.Rest == "": // links in it are followed
		return descent{r: r, call: c, base: path.Base[:len(`C:\`)], names: winpath.Components(path.Base), following: true}.open(ctx)
	default:
		return descent{r: r, call: c, base: path.Base, names: path.Names()}.open(ctx)
	}
}

// obstructed is the failure to make a directory below a file.
func (c call) obstructed(at win.Path, err error) error {
	return winerr.As(winerr.Exists, c.op, c.path, err, at.String()+" is a file, not a directory")
}

// descent is a directory that is made name by name.
type descent struct {
	r         Reach
	call      call
	base      string
	names     []string
	following bool // links are followed
}

// upTo is the path of the first n names.
func (d descent) upTo(n int) win.Path {
	way := win.Path{Base: d.base}.Join(d.names[:n]...)
	if d.following {
		return win.Following(way.String())
	}
	return way
}

// open finds the deepest part that exists and makes the rest from there.
func (d descent) open(ctx context.Context) (win.Directory, error) {
	dir, n, err := d.deepest(ctx)
	for ; err == nil && n < len(d.names); n++ {
		above := dir
		dir, err = d.enter(ctx, above, n)
		above.Close()
	}
	return dir, err
}

// deepest goes up until a directory exists, opens it, and returns how many of the names lead
// to it.
func (d descent) deepest(ctx context.Context) (dir win.Directory, n int, err error) {
	for n = max(0, len(d.names)-1); ; n-- {
		if n == 0 && !d.following { // the working directory
			dir, err = d.r.openMaking(ctx, d.call, win.Path{Base: d.base})
			return dir, n, err
		}
		dir, err = d.r.m.OpenDirectory(ctx, d.upTo(n))
		switch {
		case winerr.CodeOf(err) == winerr.Directory:
			return nil, n, d.call.obstructed(d.upTo(n), err)
		case n == 0 || !errors.Is(err, winerr.NotFound):
			return dir, n, err
		}
	}
}

// enter makes the directory names[n], if it is missing, and opens it.
func (d descent) enter(ctx context.Context, dir win.Directory, n int) (win.Directory, error) {
	if err := dir.CreateDirectory(ctx, d.names[n]); err != nil && !errors.Is(err, winerr.Exists) {
		return nil, err
	}
	inner, err := dir.Open(ctx, d.names[n])
	if winerr.CodeOf(err) == winerr.ReparsePointEncounter && d.following {
		if inner, err = d.r.m.OpenDirectory(ctx, d.upTo(n+1)); Unreachable(err) {
			return nil, d.call.leadsNowhere(d.upTo(n+1), err)
		}
	}
	if winerr.CodeOf(err) == winerr.Directory {
		return nil, d.call.obstructed(d.upTo(n+1), err)
	}
	return inner, err
}

// leadsNowhere is the failure to make a directory below a link whose target cannot be
// reached. The target of a link is never made.
func (c call) leadsNowhere(link win.Path, err error) error {
	return winerr.New(winerr.Exists, c.op, c.path, "the target of the link %s cannot be reached: %w; remove the link with Rmdir", link, err)
}
