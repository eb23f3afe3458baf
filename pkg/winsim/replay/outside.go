package replay

import (
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Change is something that another program, such as the kubelet, did to a file between the recorded calls.
type Change struct {
	Call uint64 `json:"call"` // the call before which it was done
	Path string `json:"path"`
	What string `json:"what"`
}

func (c Change) String() string {
	return fmt.Sprintf("before call %d another program %s %s", c.Call, c.What, c.Path)
}

// outsider does to the files of an emulated node what other programs did to those of the machine.
//
// That a call finds another file than the node has can mean two things: another program has changed it, or the
// node is wrong. A change is believed if the next call that tells of the file found it changed as well, and
// would not have found so without the change. Otherwise the answer is left to be a difference.
type outsider struct {
	*history

	node    *winsim.Node
	strayed map[string]bool // files, by key, that the last call has changed on the machine or on the node, not on both
	release func()          // closes the file that the last call has found open; nil if there is none
	changes []Change
}

// before makes the changes that happened before a call.
func (o *outsider) before(c record.Call) {
	at, about := o.places[c.Seq]
	if o.release != nil {
		o.release()
		o.release = nil
	}
	if !about {
		return
	}
	if dir, ok := parentOf(at.path); ok {
		o.consider(c, placeAt(dir))
	}
	o.consider(c, at)
	o.hold(c, at)
	if c.Error != nil || c.Method != "ListDirectory" {
		return
	}
	list, _ := listed(c)
	names := o.node.Names(at.path)
	seen := map[string]bool{}
	for _, batch := range list.Batches {
		for _, entry := range batch {
			seen[winpath.Fold(entry.Name)] = true
			o.consider(c, placeAt(winpath.Join(at.path, entry.Name)))
		}
	}
	if list.isPart() {
		return
	}
	for _, name := range names {
		if !seen[winpath.Fold(name)] {
			o.judge(c, placeAt(winpath.Join(at.path, name)), sight{seq: c.Seq, before: gone, after: gone})
		}
	}
}

// hold keeps a file open during a call that could not remove it because another program had it open. That is
// believed if the call before or after it has found the same.
func (o *outsider) hold(c record.Call, at place) {
	all := o.sights[at.key]
	i := after(all, c.Seq) - 1
	if i < 0 || all[i].seq != c.Seq || !all[i].held {
		return
	}
	before := i > 0 && all[i-1].held
	if !before && (i+1 == len(all) || !all[i+1].held) {
		return
	}
	release, err := o.node.Hold(at.path)
	if err != nil {
		return
	}
	o.release = release
	if !before {
		o.changes = append(o.changes, Change{c.Seq, short(at.path), "opened"})
	}
}

// made remembers a call that has succeeded only on the machine or only on the node. That is a difference; what
// follows from it is none.
func (o *outsider) made(recorded, emulated record.Call) {
	at, about := o.places[recorded.Seq]
	if !about {
		return
	}
	delete(o.strayed, at.key)
	if changing[recorded.Method] && (recorded.Error == nil) != (emulated.Error == nil) {
		o.strayed[at.key] = true
	}
}

// changing are the calls that change files.
var changing = map[string]bool{
	"CreateDirectory": true, "CreateDirectoryLink": true, "SetMountPoint": true, "DeleteMountPoint": true, "Remove": true, "RemoveLink": true,
}

// consider judges what a call tells about a file, if it tells of it.
func (o *outsider) consider(c record.Call, at place) {
	all := o.sights[at.key]
	if i := after(all, c.Seq) - 1; i >= 0 && all[i].seq == c.Seq {
		o.judge(c, at, all[i])
	}
}

// judge changes a file if a call tells that another program did, and this is believed.
func (o *outsider) judge(c record.Call, at place, s sight) {
	if at.parent == "" {
		return
	}
	now, strayed := o.look(at.path), o.strayed[at.key]
	delete(o.strayed, at.key)
	if agree(s.before, now) || s.follows && now == link || !strayed && !o.believes(c, at, s, now) {
		return
	}
	what, err := "", error(nil)
	if s.before == gone {
		what, err = "removed", o.node.RemoveAll(at.path)
	} else {
		f := o.fileAt(at, s, o.hasVolume)
		what, err = "made "+natureOf(f), o.node.Put(f)
	}
	if err == nil && !strayed {
		o.changes = append(o.changes, Change{c.Seq, short(at.path), what})
	}
}

// hasVolume reports whether the node has a volume.
func (o *outsider) hasVolume(id string) bool {
	_, err := o.node.Look(id)
	return err == nil
}

// look returns what the node has at a path.
func (o *outsider) look(path string) state {
	info, err := o.node.Look(path)
	switch code := winerr.CodeOf(err); {
	case err == nil:
		return stateOf(info)
	case code == winerr.FileNotFound || code == winerr.PathNotFound:
		return gone
	default:
		return untold
	}
}

// believes reports whether what a call tells about a file, other than what the node has, is a change by another
// program.
func (o *outsider) believes(c record.Call, at place, s sight, now state) bool {
	if last, seen := o.last(at, c.Seq); seen && last.own && last.after == now && s.before != gone && now != gone {
		return false // the node has just done what was asked, and Windows something else
	}
	next, again := o.next(at, c.Seq)
	return again && agree(next.before, s.after) && !agree(next.before, leaves(c, now)) ||
		s.own && s.before == gone && now == directory && o.emptied(c, at)
}

// emptied reports whether a directory that a call has made, but that the node had already, lacks something
// later that the node has in it.
func (o *outsider) emptied(c record.Call, at place) bool {
	for _, name := range o.node.Names(at.path) {
		next, again := o.next(placeAt(winpath.Join(at.path, name)), c.Seq)
		if again {
			return next.before == gone
		}
	}
	return false
}

// leaves returns what the node has at a path after a call that finds now there.
func leaves(c record.Call, now state) state {
	switch {
	case c.Method == "Remove" || c.Method == "RemoveLink":
		return gone
	case c.Method == "CreateDirectory" && now == gone, c.Method == "DeleteMountPoint" && now == link:
		return directory
	case c.Method == "CreateDirectoryLink" && now == gone, c.Method == "SetMountPoint" && now == directory:
		return link
	default:
		return now
	}
}

// maxAhead is how many sights of a file are searched for what it is.
const maxAhead = 32

// unknownTarget is where a link leads of which no call tells.
const unknownTarget = `C:\unknown target`

// fileAt returns what is at a path according to a sight of it, and to those after it until a call changes it.
func (h *history) fileAt(at place, s sight, hasVolume func(id string) bool) winsim.File {
	is, f := s.before, winsim.File{Path: at.path}
	info, point := s.info, s.point
	all := h.sights[at.key]
	all = all[after(all, s.seq):]
	for _, later := range all[:min(len(all), maxAhead)] {
		if s.own {
			break
		}
		s = later
		if !agree(is, s.before) {
			break
		}
		if is &= s.before; s.follows {
			continue
		}
		if info == nil {
			info = s.info
		}
		if point == nil {
			point = s.point
		}
		if info != nil && (point != nil || is != link) {
			break
		}
	}
	if info != nil {
		f.ReadOnly = info.ReadOnly
	}
	switch {
	case is == link:
		setLink(&f, info, point, hasVolume)
	case info != nil && info.Tag != 0:
		f.Tag, f.EmptyFile = uint32(info.Tag), !info.Directory
	default:
		f.EmptyFile = is&directory == 0 || is == present || is == plain
	}
	return f
}

// setLink makes a file a link.
func setLink(f *winsim.File, info *win.FileInfo, point *win.ReparsePoint, hasVolume func(id string) bool) {
	target := unknownTarget
	if point != nil {
		target = point.Target()
		if id, mounted := point.MountedVolume(); mounted && hasVolume(id) {
			f.Volume = id
			return
		}
	}
	switch {
	case point != nil && point.Tag == win.TagMountPoint, point == nil && info != nil && info.Tag == win.TagMountPoint:
		f.Junction = target
	case info != nil && !info.Directory:
		f.FileSymlink = target
	default:
		f.Symlink = target
	}
}

// natureOf names what a file is.
func natureOf(f winsim.File) string {
	switch {
	case f.Symlink+f.FileSymlink+f.Junction+f.Volume != "":
		return "the link"
	case f.EmptyFile:
		return "the file"
	default:
		return "the directory"
	}
}
