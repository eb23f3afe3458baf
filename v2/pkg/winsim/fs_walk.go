package winsim

import (
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// walk resolves a path as Windows does. It follows links, but the last name only if followLast.
// A missing last name is not an error: the result has no entry.
type walk struct {
	t          *files
	followLast bool
	// refuseLinks makes links inside the path an error.
	refuseLinks bool
	// mayCreate is how many bytes at the end of the path may be created if missing. The target
	// of a link is never created.
	mayCreate int
	// last is the link that the last name was, if it was followed.
	last *link
	// followed is true after any link.
	followed bool
}

// walk resolves a path. t.mu is held.
func (t *files) walk(path string, followLast bool) (resolvedPath, error) {
	return (&walk{t: t, followLast: followLast}).run(path)
}

func (t *files) walkCreating(path string) (resolvedPath, error) {
	return (&walk{t: t, mayCreate: len(path)}).run(path)
}

func (w *walk) run(path string) (resolvedPath, error) {
	for range win.MaxLinks + 1 {
		at, further, err := w.untilLink(path)
		if err == nil && further == "" && w.last != nil && at.entry != nil && at.entry.children == nil {
			err = w.last.leadsToFile()
		}
		if err != nil || further == "" {
			return at, err
		}
		path = further
	}
	return resolvedPath{}, winerr.CantResolveFilename
}

// untilLink resolves a path up to the first link to follow. It returns the path to continue
// with, or the result if it met no such link.
func (w *walk) untilLink(path string) (at resolvedPath, further string, err error) {
	v, root, names, err := w.t.startOf(path)
	if err != nil {
		return resolvedPath{}, "", err
	}
	fs, err := w.t.mounted(v)
	if err != nil {
		return resolvedPath{}, "", err
	}
	return w.descend(resolvedPath{volume: v, fs: fs, entry: fs.root}, root, names)
}

// descend resolves names below a directory, up to the first link to follow.
func (w *walk) descend(at resolvedPath, root, names string) (_ resolvedPath, further string, err error) {
	for rest := names; rest != ""; {
		name, after, more := strings.Cut(rest, winpath.Separator)
		if at.entry.children == nil {
			return resolvedPath{}, "", winerr.PathNotFound // a file inside the path: Wine's dlls/ntdll/tests/file.c
		}
		if at, err = at.lookUp(at.entry, name); err != nil {
			return resolvedPath{}, "", err
		}
		switch {
		case at.entry == nil && !more:
			return at, "", nil
		case at.entry == nil && len(rest) <= w.mayCreate:
			if err := at.volume.writable(); err != nil {
				return resolvedPath{}, "", err
			}
			at.entry = newDirectory()
			at.add(at.entry)
		case at.entry == nil:
			return resolvedPath{}, "", winerr.PathNotFound
		case isLink(at.entry) && more && w.refuseLinks:
			return resolvedPath{}, "", winerr.ReparsePointEncounter
		case isLink(at.entry) && (more || w.followLast):
			if at.volume.share != nil {
				return resolvedPath{}, "", winerr.SymlinkClassDisabled
			}
			w.mayCreate, w.followed = min(w.mayCreate, len(after)), true
			if w.last = at.entry.link; after != "" {
				w.last = nil
			}
			further, err = at.entry.link.follow(root, names[:len(names)-len(rest)], after)
			return resolvedPath{}, further, err
		}
		rest = after
	}
	return at, "", nil
}

// startOf splits a path into the volume it begins on, the spelling of that volume's
// root without a separator, and the names below it.
func (t *files) startOf(path string) (v *volume, root, names string, err error) {
	switch {
	case len(path) > 11 && winpath.Equal(path[:11], `\\?\Volume{`):
		end := strings.IndexByte(path, '}') + 1
		if end == 0 {
			return nil, "", "", winerr.InvalidName
		}
		root, names = path[:end], path[end:]
		v = t.volumes.volumeByID(root)
	case strings.HasPrefix(path, `\\?\`):
		return nil, "", "", winerr.PathNotFound // devices and other objects
	case strings.HasPrefix(path, `\\`):
		return t.network.startOnShare(path)
	case len(path) >= 2 && path[1] == ':':
		root, names = path[:2], path[2:]
		v = t.volumes.volumeByLetter(path[:1])
	default:
		return nil, "", "", winerr.InvalidName
	}
	if v == nil {
		return nil, "", "", winerr.PathNotFound
	}
	return v, root, strings.Trim(names, winpath.Separator), nil
}

// mounted returns the file system for an access to the files of a volume or share. t.mu is held.
func (t *files) mounted(v *volume) (*fileSystem, error) {
	if v.share != nil {
		if err := t.network.checkShare(v.share, true); err != nil {
			return nil, err
		}
	}
	return t.volumes.mounted(v)
}

func (t *files) walkExisting(path string, followLast bool) (resolvedPath, error) {
	at, err := t.walk(path, followLast)
	if err == nil && at.entry == nil {
		err = winerr.FileNotFound
	}
	return at, err
}

// asksAtOnce are the calls that ask for a whole path on a drive, base and rest, while no link is on it. The
// others, and these otherwise, open the base first: then its last name is that of an open.
var asksAtOnce = map[string]bool{"FileInfo": true, "TargetInfo": true, "PathSpace": true, "ReparsePoint": true}

// resolve walks a path of the seam for a call. A missing last name is not an error. t.mu is held.
func (t *files) resolve(call string, path win.Path) (resolvedPath, error) {
	for _, part := range []string{path.Base, path.Rest} {
		if len(part) > winpath.MaxName && winpath.UTF16Len(part) > winpath.MaxName {
			return resolvedPath{}, winerr.FilenameExcedRange
		}
	}
	w := walk{t: t, followLast: true}
	at, err := w.run(path.Base)
	switch {
	case err != nil:
		return resolvedPath{}, err
	case at.entry == nil && path.Rest != "" && asksAtOnce[call] && isDrivePath(path.Base) && !w.followed:
		return resolvedPath{}, winerr.PathNotFound // the base is on the way
	case at.entry == nil:
		return resolvedPath{}, winerr.FileNotFound
	}
	at, _, err = (&walk{t: t, refuseLinks: true}).descend(at, "", path.Rest)
	return at, err
}
