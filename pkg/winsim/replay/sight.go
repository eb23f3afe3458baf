package replay

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// state is what can be at a path, as far as a call tells: a set.
type state int

const (
	gone      state = 1 << iota // nothing
	file                        // not a link
	directory                   // not a link
	link

	plain   = file | directory
	opened  = directory | link // a directory, or a link to one
	present = file | directory | link
	untold  = gone | present
)

// agree reports whether two calls can have seen the same.
func agree(a, b state) bool { return a&b != 0 }

// sight is what a call tells about the file at a path.
type sight struct {
	seq    uint64
	before state // what the call found
	after  state // what it left
	own    bool  // the call has changed it
	held   bool  // another program had it open

	follows bool              // the call is about what a link at the path leads to
	info    *win.FileInfo     // of before; nil if the call does not tell
	point   *win.ReparsePoint // the link that the call found; nil if it does not tell
}

// place is the file that a call is about.
type place struct {
	path    string
	key     string // the path for comparing
	follows bool   // a link at the path is followed
	behind  bool   // the path of the call leads there through a link
	parent  string // the key of its directory; empty for the root of a volume
}

// history is what the calls of a recording tell about files.
type history struct {
	places map[uint64]place    // of calls, by their numbers
	sights map[string][]sight  // by key, in order
	lists  map[string][]uint64 // the calls that tell all that is in a directory, by its key
	order  []place             // of all sights, in order

	drives map[win.VolumeID]string // their roots
	open   map[int]string          // the paths of directories, by the numbers of the recording
	links  map[string]string       // the absolute targets of links, by key, as far as the calls have told
}

// newHistory reads calls, which are in the order in which they began. It fails if ctx ends.
func newHistory(ctx context.Context, d *record.Description, calls []record.Call) (*history, error) {
	h := &history{
		places: map[uint64]place{}, sights: map[string][]sight{}, lists: map[string][]uint64{},
		drives: map[win.VolumeID]string{}, open: map[int]string{}, links: map[string]string{},
	}
	for _, v := range d.Volumes {
		for _, path := range v.Paths.Value {
			if len(path) == len(`C:\`) {
				h.drives[v.ID] = path
			}
		}
	}
	for _, c := range calls {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h.read(c)
	}
	return h, nil
}

// arguments are those of calls about files.
type arguments struct {
	Path   win.Path
	Name   string
	Target string
	Volume win.VolumeID
}

// read adds what a call tells.
func (h *history) read(c record.Call) {
	var a arguments
	if len(c.In) > 0 && json.Unmarshal(c.In, &a) != nil {
		return
	}
	at, ok := h.placeOf(c, a)
	if !ok {
		return
	}
	h.places[c.Seq] = at
	s := see(c)
	s.follows = at.follows
	switch {
	case s.follows && s.before == link:
		return // not an answer that Windows gives
	case s.follows && s.before == directory:
		s.before, s.after = opened, opened
	case s.follows && s.before == file:
		s.before, s.after = present, present
	}
	h.remember(c, at)
	h.follow(at, s, a)
	if s.before == untold {
		return
	}
	if parent := h.parentState(c, at); parent != untold && at.parent != "" {
		dir, _ := parentOf(at.path)
		h.add(placeAt(dir), sight{seq: c.Seq, before: parent, after: parent})
	}
	h.add(at, s)
	switch {
	case c.Error != nil:
	case c.Method == "ListDirectory":
		list, _ := listed(c)
		for _, entry := range slices.Concat(list.Batches...) {
			is, path := stateOf(entry.FileInfo), winpath.Join(at.path, entry.Name)
			if tooLong(path) {
				continue
			}
			h.add(placeAt(path), sight{seq: c.Seq, before: is, after: is, info: &entry.FileInfo})
		}
		if !list.isPart() {
			h.lists[at.key] = append(h.lists[at.key], c.Seq)
		}
	case c.Method == "CreateDirectory": // it is new, so nothing is in it
		h.lists[at.key] = append(h.lists[at.key], c.Seq)
	}
}

func (h *history) add(at place, s sight) {
	h.sights[at.key] = append(h.sights[at.key], s)
	h.order = append(h.order, at)
}

// remember keeps the path of a directory that a call has opened.
func (h *history) remember(c record.Call, at place) {
	if c.Error != nil {
		return
	}
	switch c.Method {
	case "OpenDirectory", "Open":
		var number int
		if json.Unmarshal(c.Out, &number) == nil {
			h.open[number] = at.path
		}
	case "ListDirectory":
		if list, _ := listed(c); list.Directory != 0 {
			h.open[list.Directory] = at.path
		}
	}
}

// placeOf returns the file that a call is about, if it is about one that the node can have.
func (h *history) placeOf(c record.Call, a arguments) (at place, ok bool) {
	path, follows := a.Path.String(), a.Path.Rest == ""
	if c.On != 0 {
		dir, known := h.open[c.On]
		if !known {
			return place{}, false
		}
		if path, follows = dir, true; a.Name != "" {
			path, follows = winpath.Join(dir, a.Name), false
		}
	}
	if path == "" || strings.HasPrefix(path, `\\`) && !strings.HasPrefix(path, `\\?\Volume{`) {
		return place{}, false // not about a file, or on a share
	}
	path = h.onDrive(path)
	at = placeAt(h.resolved(path, follows))
	at.follows, at.behind = follows, at.path != path
	return at, !tooLong(at.path)
}

// tooLong reports whether Windows has no such path. What is learnt of a file takes a time that grows with the
// square of its path's length, because it depends on each directory above.
func tooLong(path string) bool {
	return len(path) > winpath.MaxName && winpath.UTF16Len(path) > winpath.MaxName
}

// hasLongPath reports whether a call is about a path that Windows does not have.
func hasLongPath(c record.Call) bool {
	var a arguments
	return len(c.In) > winpath.MaxName && json.Unmarshal(c.In, &a) == nil && (tooLong(a.Path.String()) || tooLong(a.Name) || tooLong(a.Target))
}

// onDrive is a path by the letter of its drive, if it has one.
func (h *history) onDrive(path string) string {
	if id, ok := win.VolumeOf(path); ok && h.drives[id] != "" {
		return h.drives[id] + strings.TrimPrefix(path[strings.IndexByte(path, '}')+1:], winpath.Separator)
	}
	return path
}

// maxResolved is the length of a path up to which links in it are followed: a hostile recording can have links
// that lead to ever longer ones.
const maxResolved = 4096

// resolved is a path behind the links that calls have told of.
func (h *history) resolved(path string, followLast bool) string {
	for range win.MaxLinks {
		if len(path) > maxResolved {
			return path
		}
		further := ""
		for dir, ok := path, len(h.links) > 0; ok; dir, ok = parentOf(dir) {
			if target := h.links[winpath.Fold(dir)]; target != "" && (followLast || len(dir) < len(path)) {
				further = strings.TrimSuffix(target, winpath.Separator) + path[len(dir):]
			}
		}
		if further == "" {
			return path
		}
		path = h.onDrive(further)
	}
	return path
}

// follow remembers where a link leads that a call tells of, or that there is none.
func (h *history) follow(at place, s sight, a arguments) {
	target := ""
	switch {
	case s.follows || s.before == untold || s.after == link && !s.own && s.point == nil:
		return
	case s.point != nil:
		target = s.point.Target()
	case s.after == link:
		target = a.Target + string(a.Volume)
	}
	if delete(h.links, at.key); len(target) > len(`C:\`) && (target[1] == ':' || strings.HasPrefix(target, `\\?\Volume{`)) {
		h.links[at.key] = target
	}
}

func placeAt(path string) place {
	at := place{path: path, key: winpath.Fold(path)}
	if parent, ok := parentOf(at.key); ok {
		at.parent = parent
	}
	return at
}

// parentOf returns the directory of a path, and false for the root of a volume.
func parentOf(path string) (string, bool) {
	root := len(`C:\`)
	if strings.HasPrefix(path, `\\?\`) {
		if root = strings.IndexByte(path, '}') + len(`}\`); root > len(path) {
			root = len(path)
		}
	}
	if len(path) <= root {
		return "", false
	}
	if i := strings.LastIndexByte(path, '\\'); i >= root {
		return path[:i], true
	}
	return path[:root], true
}

// stateOf is the state of what a listing or FileInfo describes.
func stateOf(info win.FileInfo) state {
	switch {
	case info.Tag == win.TagSymlink || info.Tag == win.TagMountPoint:
		return link
	case info.Directory:
		return directory
	default:
		return file
	}
}

// see returns what a call tells about the file that it is about.
func see(c record.Call) sight {
	s := sight{seq: c.Seq, before: untold}
	if c.Error != nil {
		s.before = seeError(c)
		s.after = s.before
		s.held = winerr.Code(c.Error.Windows) == winerr.SharingViolation && c.Method == "Remove"
		return s
	}
	switch c.Method {
	case "FileInfo":
		var info win.FileInfo
		if json.Unmarshal(c.Out, &info) == nil {
			s.before, s.info = stateOf(info), &info
		}
	case "ReparsePoint":
		var point win.ReparsePoint
		if json.Unmarshal(c.Out, &point) == nil {
			s.before, s.point = link, &point
		}
	case "OpenDirectory", "Open", "ListDirectory":
		s.before = directory
	case "TargetInfo", "Location", "ChangedAt":
		s.before = present
	case "PathSpace":
		s.before = opened
	case "CreateDirectory":
		return sight{seq: c.Seq, before: gone, after: directory, own: true}
	case "CreateDirectoryLink":
		return sight{seq: c.Seq, before: gone, after: link, own: true}
	case "SetMountPoint":
		return sight{seq: c.Seq, before: directory, after: link, own: true}
	case "DeleteMountPoint":
		return sight{seq: c.Seq, before: link, after: directory, own: true}
	case "Remove":
		return sight{seq: c.Seq, before: present, after: gone, own: true}
	case "RemoveLink":
		if string(c.Out) == "true" {
			return sight{seq: c.Seq, before: link, after: gone, own: true}
		}
	}
	s.after = s.before
	return s
}

// seeError returns what a call that failed tells.
func seeError(c record.Call) state {
	switch code := winerr.Code(c.Error.Windows); {
	case c.Method == "TargetInfo" || c.Method == "Location" || c.Method == "PathSpace":
		return untold // also about what a link leads to
	case code == winerr.FileNotFound || code == winerr.PathNotFound:
		return gone
	case code == winerr.AlreadyExists && (c.Method == "CreateDirectory" || c.Method == "CreateDirectoryLink"):
		return present
	case code == winerr.DirNotEmpty && c.Method == "Remove":
		return directory
	case code == winerr.DirNotEmpty && c.Method == "SetMountPoint":
		return opened
	case code == winerr.NotAReparsePoint && (c.Method == "ReparsePoint" || c.Method == "DeleteMountPoint"):
		return plain
	case code == winerr.Directory && (c.Method == "OpenDirectory" || c.Method == "Open"):
		return file
	case code == winerr.SharingViolation && c.Method == "Remove":
		return present
	default:
		return untold
	}
}

// parentState returns what a call tells about the directory of the file. ERROR_FILE_NOT_FOUND is also the answer
// for a link that leads nowhere, so it tells only of a directory that no call has told of before.
func (h *history) parentState(c record.Call, at place) state {
	switch {
	case c.Error == nil:
		return opened
	case winerr.Code(c.Error.Windows) == winerr.PathNotFound && c.On == 0:
		return gone
	case winerr.Code(c.Error.Windows) == winerr.FileNotFound && c.Method == "FileInfo" && !at.behind && len(h.sights[at.parent]) == 0:
		return opened
	default:
		return untold
	}
}

// next returns the first sight of a file after a call.
func (h *history) next(at place, seq uint64) (s sight, ok bool) {
	if all := h.sights[at.key]; len(all) > 0 {
		if i := after(all, seq); i < len(all) {
			s, ok = all[i], true
		}
	}
	lists := h.lists[at.parent]
	i, found := slices.BinarySearch(lists, seq)
	if found {
		i++
	}
	if i < len(lists) && (!ok || lists[i] < s.seq) {
		return sight{seq: lists[i], before: gone, after: gone}, true // it is not in the list
	}
	return s, ok
}

// last returns the last sight of a file before a call.
func (h *history) last(at place, seq uint64) (s sight, ok bool) {
	all := h.sights[at.key]
	i, _ := slices.BinarySearchFunc(all, seq, bySeq)
	if i == 0 {
		return sight{}, false
	}
	return all[i-1], true
}

// after returns the index of the first sight after a call.
func after(all []sight, seq uint64) int {
	i, _ := slices.BinarySearchFunc(all, seq+1, bySeq)
	return i
}

func bySeq(s sight, seq uint64) int {
	switch {
	case s.seq < seq:
		return -1
	case s.seq > seq:
		return 1
	default:
		return 0
	}
}
