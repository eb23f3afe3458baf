package winsim

import (
	"context"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/internal/claim"
)

// Real links are relative, so that the whole directory can be moved. Windows makes a directory
// link only if os.Root finds the target, so links out of the directory are made by the seam.

// createLink creates the real link for a link of the node. It returns false if there is none.
func (t *realTree) createLink(at realDir, e *entry) bool {
	if text, ok := t.textOnWindows(e); ok && runtime.GOOS == "windows" {
		return at.directoryLink(text) == nil
	}
	text, ok := t.linkText(at, e)
	return ok && at.Root.Symlink(text, at.path) == nil
}

// textOnWindows is the text of a link to a share, or to such a link; ok is false for others. It
// carries the name of the share, since csi-driver-smb takes what it reads for the share that it
// has mounted. The link leads where the machine finds \\server\share, under Wine to the
// directory dosdevices/unc/server/share of the prefix.
func (t *realTree) textOnWindows(e *entry) (text string, ok bool) {
	l := e.link
	if e.children == nil || l.malformed || l.Relative || l.Tag != win.TagSymlink {
		return "", false
	}
	target := l.Target()
	if isUNC(target) {
		return target, true
	}
	at, ok := t.m.realTarget(target)
	if !ok {
		return "", false
	}
	if to, err := at.Root.Readlink(at.path); err != nil || !isUNC(to) {
		return "", false
	}
	return filepath.Join(at.Path, filepath.FromSlash(at.path)), true
}

// isUNC reports whether a path is \\server\share.
func isUNC(path string) bool {
	return strings.HasPrefix(path, `\\`) && !strings.HasPrefix(path, `\\?\`) && !strings.HasPrefix(path, `\\.\`)
}

// directoryLink creates a link to a directory that may be missing. It follows no link below the
// claimed directory.
func (b realDir) directoryLink(target string) error {
	ctx := context.Background() //nolint:forbidigo // a change of the node is not canceled half-way
	parent := win.Path{Base: b.Path}
	if dir := path.Dir(b.path); dir != "." {
		parent.Rest = filepath.FromSlash(dir)
	}
	dir, err := local.Machine().OpenDirectory(ctx, parent)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.CreateDirectoryLink(ctx, path.Base(b.path), target)
}

// linkText is the text of the real link for a link of the node; ok is false if it cannot be a
// real link.
func (t *realTree) linkText(at realDir, e *entry) (text string, ok bool) {
	l := e.link
	if l.Tag == tagForeignLink && l.Substitute != "" {
		return l.Substitute, true // unchanged
	}
	if l.malformed || l.Tag != win.TagSymlink && l.Tag != win.TagMountPoint {
		return "", false
	}
	var target realDir
	if l.Relative {
		dir := strings.TrimPrefix(pathFrom(`\`, e.parent), `\`)
		names, err := relativeTo(dir, l.Target())
		if err != nil {
			return "", false // Windows does not follow it
		}
		target, ok = t.m.realPath(t.volume, t.bases, names)
	} else {
		target, ok = t.m.realTarget(l.Target())
	}
	if !ok || target.Root != at.Root {
		return "", false
	}
	if runtime.GOOS == "windows" { // a dangling link would become a file link
		if info, err := target.Root.Stat(target.path); err != nil || !info.IsDir() {
			return "", false
		}
	}
	text, err := filepath.Rel(filepath.FromSlash(path.Dir(at.path)), filepath.FromSlash(target.path))
	return text, err == nil
}

// realTarget is the real path of an absolute path of the node. It may be missing.
func (m *mirror) realTarget(target string) (realDir, bool) {
	switch {
	case len(target) > 11 && winpath.Equal(target[:11], `\\?\Volume{`):
		id, names, _ := strings.Cut(target[11:], "}")
		guid := normalGUID(id)
		if v := m.files.volumes.byGUID[guid]; v != nil {
			return m.realPath(v, m.basesOf(v), names)
		}
		return m.realPath(nil, []realDir{m.volumeBase(guid)}, names)
	case strings.HasPrefix(target, `\\?\`):
		return realDir{}, false
	case strings.HasPrefix(target, `\\`):
		server, share, names := splitUNC(target)
		if s := m.files.network.byName[winpath.Fold(server)]; s != nil {
			server = s.Name
			if found := s.shares[winpath.Fold(share)]; found != nil {
				return m.realPath(found.volume, []realDir{m.shareBase(server, share)}, names)
			}
		}
		if checkName(server) != nil || checkName(share) != nil {
			return realDir{}, false
		}
		return m.realPath(nil, []realDir{m.shareBase(server, share)}, names)
	case len(target) >= 2 && target[1] == ':':
		letter := winpath.Fold(target[:1])
		if letter < "A" || letter > "Z" {
			return realDir{}, false
		}
		return m.realPath(m.files.volumes.letters[letter], m.driveBases(letter), target[2:])
	default:
		return realDir{}, false
	}
}

// realPath is the real path of names on a volume, in the case that the volume uses. V may be
// nil.
func (m *mirror) realPath(v *volume, bases []realDir, path string) (realDir, bool) {
	var dir *entry
	if v != nil {
		if fs := v.fileSystem(); fs != nil {
			dir = fs.root
		}
	}
	var names []string
	for name := range strings.SplitSeq(path, `\`) {
		if name == "" {
			continue
		}
		if checkName(name) != nil {
			return realDir{}, false
		}
		if dir != nil {
			if dir = dir.child(name); dir != nil {
				name = dir.name
			}
		}
		names = append(names, name)
	}
	for _, b := range bases {
		if rest, below := b.relative(names); below && (len(rest) == 0 || !b.reserved(rest[0])) {
			return b.in(rest...), true
		}
	}
	return realDir{}, false
}

// linkFrom converts a real link of another process. A link that leaves the mirror becomes a
// Linux link, which the node never follows.
func (m *mirror) linkFrom(at realDir, text string) *entry {
	if runtime.GOOS == "windows" && isUNC(text) { // another process made what createLink makes
		return newLink(winlayout.SymlinkTo(text))
	}
	target, ok := m.nodePath(at, text)
	if !ok {
		return &entry{link: &link{ReparsePoint: win.ReparsePoint{Tag: tagForeignLink, Substitute: text}}}
	}
	if info, err := at.Root.Stat(at.path); err == nil && !info.IsDir() {
		return &entry{link: &link{ReparsePoint: winlayout.SymlinkTo(target)}}
	}
	return newLink(winlayout.SymlinkTo(target))
}

// nodePath is the node's path for the target of a real link, lexically.
func (m *mirror) nodePath(at realDir, text string) (string, bool) {
	in := at.Dir
	if filepath.IsAbs(text) {
		claimed := slices.IndexFunc(m.claims, func(c *claim.Dir) bool {
			rel, err := filepath.Rel(c.Path, text)
			return err == nil && filepath.IsLocal(rel)
		})
		if claimed < 0 {
			return "", false
		}
		in = m.claims[claimed]
		text, _ = filepath.Rel(in.Path, text)
	} else {
		text = filepath.Join(filepath.FromSlash(path.Dir(at.path)), text)
	}
	if !filepath.IsLocal(text) {
		return "", false
	}
	return m.nodeName(in, strings.Split(filepath.ToSlash(text), "/"))
}

func (m *mirror) nodeName(in *claim.Dir, names []string) (string, bool) {
	if m.drives != nil && names[0] != claim.Mark {
		for letter, bases := range m.drives {
			for _, b := range bases {
				if b.Dir == in {
					return nodeJoin(letter+`:`, append(slices.Clone(b.prefix), names...))
				}
			}
		}
	}
	if m.drives != nil {
		names = names[1:]
	}
	switch {
	case in != m.store.Dir || len(names) == 0:
		return "", false
	case m.drives == nil && len(names[0]) == 1 && names[0] >= "A" && names[0] <= "Z":
		return nodeJoin(names[0]+`:`, names[1:])
	case len(names) >= 2 && names[0] == "volumes" && normalGUID(names[1]) != "":
		return nodeJoin(`\\?\Volume{`+normalGUID(names[1])+`}`, names[2:])
	case len(names) >= 3 && names[0] == "shares":
		target, ok := nodeJoin(`\\`+names[1]+`\`+names[2], names[3:])
		return strings.TrimRight(target, `\`), ok && isWindowsName(names[1]) && isWindowsName(names[2])
	default:
		return "", false
	}
}

func nodeJoin(root string, names []string) (string, bool) {
	for _, name := range names {
		if name != "." && !isWindowsName(name) {
			return "", false
		}
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "." })
	return root + `\` + strings.Join(names, `\`), true
}
