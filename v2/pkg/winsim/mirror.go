package winsim

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/internal/claim"
)

// mirror keeps a node's files and real directories in sync.
//
// Calls work on the tree in memory. Before a lookup, a call compares the name with the real
// directory (mirror_read.go); it also writes its changes there (mirror_write.go). All this
// happens while it holds mu. The last change wins, and nothing is merged. Nothing runs in the
// background.
type mirror struct {
	files  *files
	claims []*claim.Dir
	// drives are the mirrored parts of drives by letter; nil if every drive is mirrored as a
	// whole, in the directory of its letter.
	drives map[string][]realDir
	// store is the directory of volumes without a letter and of shares.
	store realDir
	// hiddenDir holds the file systems that are not mounted now.
	hiddenDir string

	shown       map[*fileSystem]*realTree
	hiddenAt    map[*fileSystem]string // their paths in hiddenDir
	hiddenCount int

	report   func(error)
	reported map[string]bool
}

type realDir struct {
	*claim.Dir          // where it is
	path       string   // in there, with slashes
	prefix     []string // the names of the directory on the volume
}

func (b realDir) in(names ...string) realDir {
	return realDir{Dir: b.Dir, path: path.Join(append([]string{b.path}, names...)...)}
}

// realTree is where a file system is mirrored.
type realTree struct {
	m      *mirror
	volume *volume
	bases  []realDir
}

// Mirror mirrors the node's files in a real directory until stop is called: drive C: in dir/C, volumes without a letter
// in dir/volumes/<guid>, mapped shares in dir/shares/<server>/<share>. Links of the node are real, relative links there.
// When a call returns, its changes are in dir; changes of other processes there apply from the next call on. The later of
// two changes wins. Nothing outside dir is read or changed, and links to there fail with ERROR_CANT_ACCESS_FILE (1920).
//
// Only in memory are short names, attributes, names that this machine cannot have, and what is more than 100
// directories deep; only in dir are names that Windows cannot have, and files above 64 MiB. Where links cannot be
// created, on Windows without the privilege and in Wine 10, they are empty directories.
//
// Dir is created for this user only. It must be empty or an earlier mirror, which is emptied, and stays afterwards. Report
// gets each problem once. It may be nil, and must not call the node.
func (n *Node) Mirror(dir string, report func(error)) (stop func(), err error) {
	claimed, err := claim.New(dir)
	if err != nil {
		return nil, fmt.Errorf("mirror the node's files: %w", err)
	}
	return n.files.startMirror(&mirror{
		claims: []*claim.Dir{claimed},
		store:  realDir{Dir: claimed, path: "."},
		report: report,
	})
}

// MirrorDrives is Mirror on Windows, for drivers that use C:\var\lib\kubelet itself: each directory at its own path, and
// volumes and shares in .csi-proxy-sim of the first. A link from one of the directories to another is an empty directory.
func (n *Node) MirrorDrives(dirs []string, report func(error)) (stop func(), err error) {
	return n.mirrorDrives(dirs, report, func(dir string) string { return dir })
}

func (n *Node) mirrorDrives(dirs []string, report func(error), locate func(string) string) (func(), error) {
	m := &mirror{drives: map[string][]realDir{}, report: report}
	for _, dir := range dirs {
		clean, err := winpath.Clean(dir)
		if err == nil {
			err = m.addDrive(clean, locate(clean))
		}
		if err != nil {
			m.release()
			return nil, fmt.Errorf("mirror the node's directory %s: %w", dir, err)
		}
	}
	if len(m.claims) == 0 {
		return nil, errors.New("mirror the node's directories: none given")
	}
	m.store = realDir{Dir: m.claims[0], path: claim.Mark}
	return n.files.startMirror(m)
}

// addDrive mirrors a directory of the node at a real path.
func (m *mirror) addDrive(dir, at string) error {
	prefix := winpath.Components(dir)
	if len(prefix) == 0 {
		return errors.New("cannot mirror a whole drive; name a directory")
	}
	letter := winpath.Fold(dir[:1])
	for _, b := range m.drives[letter] {
		if common := min(len(b.prefix), len(prefix)); slices.EqualFunc(b.prefix[:common], prefix[:common], winpath.Equal) {
			return errors.New("overlaps another mirrored directory")
		}
	}
	claimed, err := claim.New(at)
	if err != nil {
		return err
	}
	m.claims = append(m.claims, claimed)
	m.drives[letter] = append(m.drives[letter], realDir{Dir: claimed, path: ".", prefix: prefix})
	return nil
}

func (t *files) startMirror(m *mirror) (func(), error) {
	m.files, m.hiddenDir = t, path.Join(claim.Mark, "hidden")
	m.shown, m.hiddenAt, m.reported = map[*fileSystem]*realTree{}, map[*fileSystem]string{}, map[string]bool{}
	for _, c := range m.claims {
		if err := c.Root.Mkdir(m.hiddenDir, 0o700); err != nil {
			m.release()
			return nil, err
		}
	}
	defer t.lock()()
	if t.mirror != nil {
		m.release()
		return nil, errors.New("mirror the node's files: already mirrored")
	}
	t.mirror, t.mu.afterLock, t.mu.beforeUnlock = m, m.update, m.update
	return sync.OnceFunc(m.stop), nil
}

// stop ends the mirroring. The node continues in memory.
func (m *mirror) stop() {
	defer m.files.lock()()
	for fs := range m.shown {
		fs.refreshAll()
		fs.mirrored = nil
		fs.root.forgetStats()
	}
	for fs := range m.hiddenAt {
		fs.root.forgetStats()
	}
	m.files.mirror, m.files.mu.afterLock, m.files.mu.beforeUnlock = nil, nil, nil
	m.release()
}

func (e *entry) forgetStats() {
	e.lastStat = nil
	for _, child := range e.children {
		child.forgetStats()
	}
}

func (m *mirror) release() {
	for _, c := range m.claims {
		c.Close()
	}
}

func (m *mirror) reportOnce(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if m.report != nil && !m.reported[err.Error()] {
		m.reported[err.Error()] = true
		m.report(err)
	}
}

// update mirrors the file systems that are mounted, and no others. mu is held.
func (m *mirror) update() {
	wanted := map[*fileSystem]*volume{}
	for _, v := range m.files.volumes.byGUID {
		if fs, err := m.files.volumes.mounted(v); err == nil {
			wanted[fs] = v
		} else if fs := v.fileSystem(); fs != nil && m.drives != nil && v.Letter != "" {
			wanted[fs] = v // never move directories of other processes
		}
	}
	for _, server := range m.files.network.byName {
		for _, s := range server.shares {
			if m.files.network.checkShare(s, false) == nil {
				wanted[s.volume.fileSystem()] = s.volume
			}
		}
	}
	for fs, tree := range m.shown {
		if wanted[fs] != tree.volume {
			m.hide(fs)
		}
	}
	for fs, v := range wanted {
		if bases := m.basesOf(v); m.shown[fs] == nil && len(bases) > 0 {
			m.show(fs, &realTree{m: m, volume: v, bases: bases})
		}
	}
	for _, tree := range m.shown {
		tree.repair()
	}
}

func (m *mirror) show(fs *fileSystem, at *realTree) {
	fs.mirrored, m.shown[fs] = at, at
	if from, ok := m.hiddenAt[fs]; ok {
		delete(m.hiddenAt, fs)
		err := fs.mirrored.bases[0].moveBack(from)
		if err == nil {
			return
		}
		m.reportOnce("show %s again: %w", fs.mirrored.bases[0].path, err)
		fs.root.forgetStats() // the hidden files are lost; write them from memory
	}
	fs.mirrored.repair()
	for _, child := range fs.root.children {
		fs.mirrored.show(child)
	}
}

func (b realDir) moveBack(from string) error {
	if from == b.path {
		return nil // moving it away failed
	}
	if _, err := b.Root.Lstat(from); err != nil {
		return err
	}
	_ = b.Root.MkdirAll(path.Dir(b.path), 0o700)
	_ = b.Root.RemoveAll(b.path) // created there meanwhile
	return b.Root.Rename(from, b.path)
}

// hide removes a file system from the mirror. It keeps the files if the file system can come
// back.
func (m *mirror) hide(fs *fileSystem) {
	tree := m.shown[fs]
	home, first := tree.bases[0], tree.volume.extents[0]
	kept := first.disk.fileSystems[first.offset] == fs
	if kept {
		fs.refreshAll() // DiskFingerprint also reads hidden disks
	}
	delete(m.shown, fs)
	fs.mirrored = nil
	if len(home.prefix) > 0 { // on a drive: hidden only by a format
		for _, b := range tree.bases {
			tree.empty(b)
		}
		return
	}
	if !kept {
		if err := home.Root.RemoveAll(home.path); err != nil {
			m.reportOnce("remove %s: %w", home.path, err)
		}
		return
	}
	m.hiddenCount++
	to := path.Join(m.hiddenDir, strconv.Itoa(m.hiddenCount))
	if err := home.Root.Rename(home.path, to); err != nil { // Windows refuses while a file is open
		m.reportOnce("hide %s: %w", home.path, err)
		to = home.path
	}
	m.hiddenAt[fs] = to
}

func (m *mirror) basesOf(v *volume) []realDir {
	switch {
	case v.share != nil:
		return []realDir{m.shareBase(v.share.server.Name, v.share.label)}
	case v.Letter != "":
		return m.driveBases(v.Letter)
	default:
		return []realDir{m.volumeBase(v.guid)}
	}
}

func (m *mirror) driveBases(letter string) []realDir {
	if m.drives != nil {
		return m.drives[letter]
	}
	return []realDir{m.store.in(letter)}
}

func (m *mirror) volumeBase(guid string) realDir { return m.store.in("volumes", guid) }

func (m *mirror) shareBase(server, share string) realDir {
	return m.store.in("shares", strings.ToLower(server), strings.ToLower(share))
}

// repair creates the directories of a tree again that another process removed or replaced.
// Their content is lost.
func (t *realTree) repair() {
	for _, b := range t.bases {
		info, err := b.Root.Lstat(b.path)
		if err == nil && info.IsDir() || b.path == "." {
			continue
		}
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			_ = b.Root.RemoveAll(b.path)
		}
		if err := b.Root.MkdirAll(b.path, 0o700); err != nil {
			t.m.reportOnce("make %s: %w", b.path, err)
		}
	}
}

func (t *realTree) empty(b realDir) {
	for _, name := range t.namesIn(b) {
		if err := b.Root.RemoveAll(path.Join(b.path, name)); err != nil {
			t.m.reportOnce("remove %s: %w", path.Join(b.path, name), err)
		}
	}
}

// maxShownDepth is the maximum depth of mirrored files. The safe lookups of os.Root take one
// step per name; deeper files are in memory only.
const maxShownDepth = 100

// pathOf is the real path of an entry; ok is false if it is not mirrored. Home is true for the
// root of a realDir.
func (t *realTree) pathOf(e *entry) (at realDir, home, ok bool) {
	if e.removed {
		return realDir{}, false, false
	}
	var names []string
	for up := e; up.parent != nil; up = up.parent {
		if names = append(names, up.name); len(names) > maxShownDepth {
			return realDir{}, false, false
		}
	}
	slices.Reverse(names)
	for _, b := range t.bases {
		if rest, below := b.relative(names); below {
			return b.in(rest...), len(rest) == 0, len(rest) == 0 || !b.reserved(rest[0])
		}
	}
	return realDir{}, false, false
}

func (b realDir) relative(names []string) ([]string, bool) {
	if len(names) < len(b.prefix) || !slices.EqualFunc(names[:len(b.prefix)], b.prefix, winpath.Equal) {
		return nil, false
	}
	return names[len(b.prefix):], true
}

// reserved reports whether a name directly below the directory is not for the node's files.
func (b realDir) reserved(name string) bool { return b.path == "." && winpath.Equal(name, claim.Mark) }

// realCode is the code of a call whose change failed in the real directory.
func realCode(err error) winerr.Code {
	if errors.Is(err, fs.ErrExist) { // a directory that is not empty
		return winerr.DirNotEmpty
	}
	return winerr.AccessDenied
}
