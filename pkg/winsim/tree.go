package winsim

import (
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

// entry is a file or directory. Names keep their case and are found without it.
type entry struct {
	name     string
	readOnly bool
	held     int               // open without sharing deletion: Remove answers 32
	children map[string]*entry // nil for a file; keys are folded names
	content  []byte            // of a file
	link     *win.ReparsePoint // nil for ordinary files and directories
}

func newDirectory() *entry { return &entry{children: map[string]*entry{}} }

func (e *entry) info() win.FileInfo {
	info := win.FileInfo{Directory: e.children != nil, ReadOnly: e.readOnly}
	if e.link != nil {
		info.Tag = e.link.Tag
	}
	return info
}

// child finds a name in a directory. It makes no garbage: it runs for every component
// of every path.
func (e *entry) child(name string) *entry {
	var folded [128]byte
	return e.children[string(winpath.AppendFold(folded[:0], name))]
}

// place is the result of walking a path: where a name is, or would be.
type place struct {
	volume *volume
	parent *entry // nil for the root of a volume
	name   string
	entry  *entry // nil if there is none of that name
}

// maxLinks is how many links Windows follows in one path.
// https://learn.microsoft.com/windows/win32/fileio/reparse-points
const maxLinks = 63

// walk resolves a path the way Windows does: links on the way are followed, the last
// component's link only on demand. A missing last component is not an error: the
// place then has no entry. n.mu is held.
func (n *Node) walk(path string, followLast bool) (place, error) {
	for range maxLinks + 1 {
		at, further, err := n.walkUntilLink(path, followLast)
		if err != nil || further == "" {
			return at, err
		}
		path = further
	}
	return place{}, winerr.CantResolveFilename
}

// walkUntilLink goes along path up to the first link that must be followed and
// returns the path to go on with, or the place if there was no such link.
func (n *Node) walkUntilLink(path string, followLast bool) (at place, further string, err error) {
	v, root, names, err := n.startOf(path)
	if err != nil {
		return place{}, "", err
	}
	fs, err := n.mounted(v)
	if err != nil {
		return place{}, "", err
	}
	at = place{volume: v, entry: fs.root}
	for i, name := range names {
		last := i == len(names)-1
		if at.entry.children == nil {
			return place{}, "", winerr.PathNotFound // a file on the way
		}
		if err := checkName(name); err != nil {
			return place{}, "", err
		}
		child := at.entry.child(name)
		switch {
		case child == nil && last:
			return place{volume: v, parent: at.entry, name: name}, "", nil
		case child == nil:
			return place{}, "", winerr.PathNotFound
		case isLink(child) && (!last || followLast):
			return place{}, follow(child.link, root, names[:i], names[i+1:]), nil
		}
		at = place{volume: v, parent: at.entry, name: name, entry: child}
	}
	return at, "", nil
}

// startOf splits a path into the volume it begins on, the spelling of that volume's
// root, and the names below it.
func (n *Node) startOf(path string) (v *volume, root string, names []string, err error) {
	rest := ""
	switch {
	case len(path) > 11 && winpath.Equal(path[:11], `\\?\Volume{`):
		end := strings.IndexByte(path, '}') + 1
		if end == 0 {
			return nil, "", nil, winerr.InvalidName
		}
		root, rest = path[:end]+`\`, path[end:]
		v = n.volumeByID(root)
	case strings.HasPrefix(path, `\\?\`):
		return nil, "", nil, winerr.PathNotFound // devices and other objects
	case strings.HasPrefix(path, `\\`):
		return nil, "", nil, winerr.BadNetPath // no server is emulated here
	case len(path) >= 2 && path[1] == ':':
		root, rest = path[:2]+`\`, path[2:]
		v = n.volumeByLetter(path[:1])
	default:
		return nil, "", nil, winerr.InvalidName
	}
	if v == nil {
		return nil, "", nil, winerr.PathNotFound
	}
	if rest = strings.Trim(rest, `\`); rest != "" {
		names = strings.Split(rest, `\`)
	}
	return v, root, names, nil
}

func (n *Node) volumeByID(id string) *volume {
	if v := n.volumes[normalGUID(id)]; v != nil && !v.nameless {
		return v
	}
	return nil
}

func (n *Node) volumeByLetter(letter string) *volume {
	if v := n.letters[winpath.Fold(letter)]; v != nil && v.present {
		return v
	}
	return nil
}

// isLink tells links from files with other reparse tags, such as deduplicated ones,
// which are what they look like.
func isLink(e *entry) bool {
	return e.link != nil && (e.link.Tag == win.TagSymlink || e.link.Tag == win.TagMountPoint)
}

// follow returns the path that a link at root+before leads to, with the names that
// came after it. Relative targets start at the link's directory, or at the root of its
// volume if they begin with a backslash; ".." in a target is resolved by its spelling,
// as Windows does.
func follow(link *win.ReparsePoint, root string, before, after []string) string {
	target := link.Target()
	var names []string
	switch {
	case !link.Relative:
		root = ""
	case !strings.HasPrefix(target, `\`):
		names = append(names, before...)
	}
	for part := range strings.SplitSeq(target, `\`) {
		switch {
		case link.Relative && (part == "" || part == "."):
		case link.Relative && part == "..":
			names = names[:max(0, len(names)-1)]
		default:
			names = append(names, part)
		}
	}
	joined := strings.TrimRight(root+strings.Join(names, `\`), `\`) + `\`
	return joined + strings.Join(after, `\`)
}

// checkName refuses what NTFS would refuse.
func checkName(name string) error {
	isBad := func(r rune) bool { return r < 0x20 || strings.ContainsRune(`<>"/|?*:`, r) }
	if name == "" || name == "." || name == ".." ||
		winpath.UTF16Len(name) > winpath.MaxComponent || strings.ContainsFunc(name, isBad) {
		return winerr.InvalidName
	}
	return nil
}

// existing is walk for calls that need something to be there.
func (n *Node) existing(path string, followLast bool) (place, error) {
	at, err := n.walk(path, followLast)
	if err == nil && at.entry == nil {
		err = winerr.FileNotFound
	}
	return at, err
}

// vacant is walk for calls that need the name to be free.
func (n *Node) vacant(path string) (place, error) {
	at, err := n.walk(path, false)
	switch {
	case err != nil:
		return at, err
	case at.parent == nil:
		return at, winerr.AccessDenied // the root of a drive
	case at.entry != nil:
		return at, winerr.AlreadyExists
	}
	return at, at.volume.writable()
}

// add puts a new entry where nothing was.
func (at place) add(e *entry) {
	e.name = at.name
	at.parent.children[winpath.Fold(at.name)] = e
}

// plant adds an entry of the model to a tree, with missing parents; its path begins at the
// root.
func (e *entry) plant(f File) *ModelError {
	clean, err := winpath.Clean(`C:\` + strings.TrimPrefix(f.Path, `\`))
	if err != nil {
		return problem("path", "%v", err)
	}
	if err := f.validate(nil); err != nil {
		return err
	}
	at := place{entry: e}
	for _, name := range winpath.Components(clean) {
		if at.entry.children == nil || at.entry.link != nil {
			return problem("path", "%s is below something that is not a directory", f.Path)
		}
		at = place{parent: at.entry, name: name, entry: at.entry.child(name)}
		if at.entry == nil {
			at.entry = newDirectory()
			at.add(at.entry)
		}
	}
	if at.parent == nil || len(at.entry.children) > 0 || at.entry.children == nil {
		return problem("path", "%s is there already", f.Path)
	}
	at.add(f.entry())
	return nil
}
