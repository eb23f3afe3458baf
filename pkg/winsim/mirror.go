package winsim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/internal/claim"
)

// mirror shows a node's files in real directories, and the node what others do there.
//
// The tree in memory is what calls work on. A call that looks up a name first compares it
// with the real one (mirror_read.go), and what it changes it changes there as well
// (mirror_write.go), all while it holds n.mu. So the last change wins, whoever made it, and
// nothing is ever merged. Nothing runs in the background.
type mirror struct {
	node   *Node
	claims []*claim.Dir
	// drives are the parts of drives that are shown, by letter; nil if each drive is shown
	// as a whole, in the directory of its letter.
	drives map[string][]base
	// store is the directory with those of volumes without a letter, and of shares.
	store base
	// hidden is where file systems wait that the node does not show at the moment.
	hidden string

	shown  map[*fileSystem]*realTree
	parked map[*fileSystem]string // where they wait
	parks  int

	report   func(error)
	reported map[string]bool
}

// base is a real directory that stands for a directory of a volume.
type base struct {
	root   *os.Root
	path   string   // in root, with slashes
	prefix []string // the names of the directory on the volume
}

func (b base) in(names ...string) base {
	return base{root: b.root, path: path.Join(append([]string{b.path}, names...)...)}
}

// realTree is where a file system is shown.
type realTree struct {
	m      *mirror
	volume *volume
	bases  []base
}

// Mirror shows the node's files in a real directory, until stop is called: drive C: in
// dir/C, volumes without a letter in dir/volumes/<guid>, mapped shares in
// dir/shares/<server>/<share>. Links of the node are real links there. What another process
// does below dir, it does to the node.
//
// Dir is made if it is missing. It must be empty, or have been used for this before: then
// it is emptied first. What is in it afterwards stays when mirroring ends.
//
// Report is told what cannot be shown or seen, such as a name that is too long for this
// machine, once; it may be nil. It must not call the node.
func (n *Node) Mirror(dir string, report func(error)) (stop func(), err error) {
	claimed, err := claim.New(dir)
	if err != nil {
		return nil, fmt.Errorf("mirror the node's files: %w", err)
	}
	return n.startMirror(&mirror{
		claims: []*claim.Dir{claimed},
		store:  base{root: claimed.Root, path: "."},
		report: report,
	})
}

// MirrorDrives is Mirror for tests on Windows whose drivers look at C:\var\lib\kubelet
// itself: each of the directories is shown at its own path, and nothing else of the drives
// is. Volumes and shares are in a directory .csi-proxy-sim of the first.
//
// A link from one of the directories to another is shown as an empty directory.
func (n *Node) MirrorDrives(dirs []string, report func(error)) (stop func(), err error) {
	return n.mirrorDrives(dirs, report, func(dir string) string { return dir })
}

// mirrorDrives shows each of the directories where locate says.
func (n *Node) mirrorDrives(dirs []string, report func(error), locate func(string) string) (func(), error) {
	m := &mirror{drives: map[string][]base{}, report: report}
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
		return nil, errors.New("mirror the node's directories: there are none")
	}
	m.store = base{root: m.claims[0].Root, path: claim.Mark}
	return n.startMirror(m)
}

// addDrive shows a directory of the node at a real path.
func (m *mirror) addDrive(dir, at string) error {
	prefix := winpath.Components(dir)
	if len(prefix) == 0 {
		return errors.New("it is a whole drive")
	}
	letter := winpath.Fold(dir[:1])
	for _, b := range m.drives[letter] {
		if shared := min(len(b.prefix), len(prefix)); slices.EqualFunc(b.prefix[:shared], prefix[:shared], winpath.Equal) {
			return errors.New("it is in another one, or that in it")
		}
	}
	claimed, err := claim.New(at)
	if err != nil {
		return err
	}
	m.claims = append(m.claims, claimed)
	m.drives[letter] = append(m.drives[letter], base{root: claimed.Root, path: ".", prefix: prefix})
	return nil
}

func (n *Node) startMirror(m *mirror) (func(), error) {
	m.node, m.hidden = n, path.Join(claim.Mark, "hidden")
	m.shown, m.parked, m.reported = map[*fileSystem]*realTree{}, map[*fileSystem]string{}, map[string]bool{}
	for _, c := range m.claims {
		if err := c.Root.Mkdir(m.hidden, 0o700); err != nil {
			m.release()
			return nil, err
		}
	}
	n.lock()
	defer n.mu.Unlock()
	if n.mirror != nil {
		m.release()
		return nil, errors.New("mirror the node's files: they are mirrored already")
	}
	if n.mu.kept != nil {
		m.release()
		return nil, errors.New("mirror the node's files: its state is kept in a file, which would not have what others do in a real directory")
	}
	n.mirror, n.mu.leave = m, m.arrange
	return sync.OnceFunc(m.stop), nil
}

// stop ends the mirroring. The node goes on in memory with what it has seen.
func (m *mirror) stop() {
	m.node.lock()
	defer m.node.mu.Unlock()
	for fs := range m.shown {
		fs.refreshAll()
		fs.real = nil
		fs.root.unsee()
	}
	for fs := range m.parked {
		fs.root.unsee()
	}
	m.node.mirror, m.node.mu.leave = nil, nil
	m.release()
}

func (e *entry) unsee() {
	e.seen = nil
	for _, child := range e.children {
		child.unsee()
	}
}

func (m *mirror) release() {
	for _, c := range m.claims {
		c.Close()
	}
}

// tell reports a problem, the first time.
func (m *mirror) tell(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if m.report != nil && !m.reported[err.Error()] {
		m.reported[err.Error()] = true
		m.report(err)
	}
}

// arrange shows those file systems that the node shows, and no others: they come and go with
// their disks. n.mu is held.
func (m *mirror) arrange() {
	wanted := map[*fileSystem]*volume{}
	for _, v := range m.node.volumes {
		if fs, err := m.node.mounted(v); err == nil {
			wanted[fs] = v
		} else if fs := v.fileSystem(); fs != nil && m.drives != nil && v.letter != "" {
			wanted[fs] = v // other processes' directories are not moved away
		}
	}
	for _, server := range m.node.network.byName {
		for _, s := range server.shares {
			if m.node.network.reaches(s) {
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

// reaches reports whether the node could open a share. Unlike mayReach it does not try.
func (n *network) reaches(s *share) bool {
	if s.server.Down || s.server.shares[winpath.Fold(s.label)] != s {
		return false
	}
	return slices.ContainsFunc(append([]string{s.server.Name}, s.server.Aliases...), func(name string) bool {
		mapped := n.mappings[winpath.Fold(`\\`+name+`\`+s.label)]
		return mapped != nil && !mapped.stale && s.server.check(mapped.user, mapped.password) == nil
	})
}

// show shows a file system that was not shown.
func (m *mirror) show(fs *fileSystem, at *realTree) {
	fs.real, m.shown[fs] = at, at
	if from, ok := m.parked[fs]; ok {
		delete(m.parked, fs)
		err := fs.real.bases[0].unpark(from)
		if err == nil {
			return
		}
		m.tell("show %s again: %w", fs.real.bases[0].path, err)
		fs.root.unsee() // what waited is lost, but memory has it
	}
	fs.real.repair()
	for _, child := range fs.root.children {
		fs.real.show(child)
	}
}

// unpark brings back what has waited elsewhere.
func (b base) unpark(from string) error {
	if from == b.path {
		return nil // it could not be moved away
	}
	if _, err := b.root.Lstat(from); err != nil {
		return err
	}
	_ = b.root.MkdirAll(path.Dir(b.path), 0o700)
	_ = b.root.RemoveAll(b.path) // what somebody put there meanwhile
	return b.root.Rename(from, b.path)
}

// hide takes a file system away. It is kept if it can come back.
func (m *mirror) hide(fs *fileSystem) {
	tree := m.shown[fs]
	home, first := tree.bases[0], tree.volume.extents[0]
	kept := first.disk.fileSystems[first.offset] == fs
	if kept {
		fs.refreshAll() // DiskFingerprint reads disks that are not shown
	}
	delete(m.shown, fs)
	fs.real = nil
	if len(home.prefix) > 0 { // on a drive, and so never hidden, except by a format
		for _, b := range tree.bases {
			tree.empty(b)
		}
		return
	}
	if !kept {
		if err := home.root.RemoveAll(home.path); err != nil {
			m.tell("remove %s: %w", home.path, err)
		}
		return
	}
	m.parks++
	to := path.Join(m.hidden, strconv.Itoa(m.parks))
	if err := home.root.Rename(home.path, to); err != nil { // as Windows does where a file is open
		m.tell("hide %s: %w", home.path, err)
		to = home.path
	}
	m.parked[fs] = to
}

// basesOf are the real directories of a volume.
func (m *mirror) basesOf(v *volume) []base {
	switch {
	case v.share != nil:
		return []base{m.shareBase(v.share.server.Name, v.share.label)}
	case v.letter != "":
		return m.driveBases(v.letter)
	default:
		return []base{m.volumeBase(v.guid)}
	}
}

func (m *mirror) driveBases(letter string) []base {
	if m.drives != nil {
		return m.drives[letter]
	}
	return []base{m.store.in(letter)}
}

func (m *mirror) volumeBase(guid string) base { return m.store.in("volumes", guid) }

func (m *mirror) shareBase(server, share string) base {
	return m.store.in("shares", strings.ToLower(server), strings.ToLower(share))
}

// repair makes the directories of a tree where somebody removed or replaced them. All that
// was in them is gone then.
func (t *realTree) repair() {
	for _, b := range t.bases {
		info, err := b.root.Lstat(b.path)
		if err == nil && info.IsDir() || b.path == "." {
			continue
		}
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			_ = b.root.RemoveAll(b.path)
		}
		if err := b.root.MkdirAll(b.path, 0o700); err != nil {
			t.m.tell("make %s: %w", b.path, err)
		}
	}
}

// empty removes all that the node shows in a directory.
func (t *realTree) empty(b base) {
	for _, name := range t.namesIn(b) {
		if err := b.root.RemoveAll(path.Join(b.path, name)); err != nil {
			t.m.tell("remove %s: %w", path.Join(b.path, name), err)
		}
	}
}

// maxShownDepth is how deep what is shown can be. Safe ways through directories, as os.Root
// goes them, take a step for each name, every time; what lies deeper is in memory only.
const maxShownDepth = 100

// where is the real path of an entry; ok is false if it is not shown. Home is true for the
// directory that a base stands for.
func (t *realTree) where(e *entry) (at base, home, ok bool) {
	if e.removed || e.isStream {
		return base{}, false, false
	}
	var names []string
	for up := e; up.parent != nil; up = up.parent {
		if names = append(names, up.name); len(names) > maxShownDepth {
			return base{}, false, false
		}
	}
	slices.Reverse(names)
	for _, b := range t.bases {
		if rest, below := b.below(names); below {
			return b.in(rest...), len(rest) == 0, len(rest) == 0 || !b.reserved(rest[0])
		}
	}
	return base{}, false, false
}

// below returns the names behind the prefix.
func (b base) below(names []string) ([]string, bool) {
	if len(names) < len(b.prefix) || !slices.EqualFunc(names[:len(b.prefix)], b.prefix, winpath.Equal) {
		return nil, false
	}
	return names[len(b.prefix):], true
}

// reserved reports whether a name directly below the base is not for the node's files.
func (b base) reserved(name string) bool { return b.path == "." && winpath.Equal(name, claim.Mark) }

// realCode is what a call answers if the machine did not do what it was to do.
func realCode(err error) winerr.Code {
	if errors.Is(err, fs.ErrExist) { // as a directory is that is not empty
		return winerr.DirNotEmpty
	}
	return winerr.AccessDenied
}
