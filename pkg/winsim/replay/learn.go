package replay

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// learn adds to a model what a description does not have, but the calls tell: files, from the first call
// about each, servers, from the mappings that prove them, and portals and targets, from their discovery.
func learn(model *winsim.Model, d *record.Description, calls []record.Call) {
	l := learner{model: model, open: map[int]string{}, seen: map[string]bool{}, drives: map[win.VolumeID]string{}}
	for _, v := range d.Volumes {
		for _, path := range v.Paths.Value {
			if len(path) == len(`C:\`) {
				l.drives[v.ID] = path
			}
		}
	}
	for _, f := range model.Files {
		l.seen[winpath.Fold(f.Path)] = true
	}
	for _, c := range calls {
		switch c.Method {
		case "CreateSMBMapping":
			l.mapping(c)
		case "AddSendTargetPortal", "ReportTargets", "ReportTargetPortals":
			l.discovery(c)
		default:
			l.file(c)
		}
	}
	slices.SortStableFunc(model.Files, func(a, b winsim.File) int { return len(a.Path) - len(b.Path) })
}

type learner struct {
	model *winsim.Model
	open  map[int]string  // the paths of directories
	seen  map[string]bool // the paths that the first call was about

	drives map[win.VolumeID]string // their roots
}

// onDrive is a path by the letter of its drive, if it has one.
func (l *learner) onDrive(path string) string {
	if id, ok := win.VolumeOf(path); ok && l.drives[id] != "" {
		return l.drives[id] + strings.TrimPrefix(path[strings.IndexByte(path, '}')+1:], `\`)
	}
	return path
}

// arguments are those of calls about files.
type arguments struct {
	Path win.Path
	Name string
}

// file learns what was at a path before the calls.
func (l *learner) file(c record.Call) {
	var a arguments
	if len(c.In) > 0 && json.Unmarshal(c.In, &a) != nil {
		return
	}
	path := a.Path.String()
	if c.On != 0 {
		dir, known := l.open[c.On]
		if !known {
			return
		}
		if path = dir; a.Name != "" {
			path = winpath.Join(dir, a.Name)
		}
	}
	if path == "" || strings.HasPrefix(path, `\\`) && !strings.HasPrefix(path, `\\?\Volume{`) {
		return // not about a file, or on a share
	}
	path = l.onDrive(path)
	key := winpath.Fold(path)
	first := !l.seen[key]
	l.seen[key] = true
	if c.Error != nil {
		return
	}
	switch c.Method {
	case "OpenDirectory", "Open":
		var number int
		if json.Unmarshal(c.Out, &number) == nil {
			l.open[number] = path
		}
		l.add(first, winsim.File{Path: path})
	case "FileInfo":
		var info win.FileInfo
		if json.Unmarshal(c.Out, &info) == nil {
			l.info(first, path, info)
		}
	case "ReparsePoint":
		var point win.ReparsePoint
		if json.Unmarshal(c.Out, &point) == nil {
			l.link(first, path, point)
		}
	case "ListDirectory":
		list, _ := listed(c)
		l.add(first, winsim.File{Path: path})
		l.open[list.Directory] = path
		for _, entry := range slices.Concat(list.Batches...) {
			key := winpath.Fold(winpath.Join(path, entry.Name))
			l.info(!l.seen[key], winpath.Join(path, entry.Name), entry.FileInfo)
			l.seen[key] = true
		}
	}
}

func (l *learner) info(first bool, path string, info win.FileInfo) {
	f := winsim.File{Path: path, ReadOnly: info.ReadOnly, EmptyFile: !info.Directory}
	if info.Tag != 0 && info.Tag != win.TagMountPoint && info.Tag != win.TagSymlink {
		f.Tag = uint32(info.Tag)
	}
	l.add(first, f)
}

// link learns a link, or that what is known to be at a path is one.
func (l *learner) link(first bool, path string, point win.ReparsePoint) {
	f := winsim.File{Path: path}
	mounted, isMount := point.MountedVolume()
	switch {
	case isMount && l.hasVolume(mounted):
		f.Volume = mounted
	case point.Tag == win.TagSymlink:
		f.Symlink = point.Target()
	case point.Tag == win.TagMountPoint:
		f.Junction = point.Target()
	default:
		return
	}
	at := slices.IndexFunc(l.model.Files, func(f winsim.File) bool { return winpath.Equal(f.Path, path) })
	if at < 0 {
		l.add(first, f)
	} else if known := l.model.Files[at]; known.Symlink+known.Junction+known.Volume == "" {
		l.model.Files[at] = f
	}
}

// hasVolume reports whether the node has a volume from the beginning.
func (l *learner) hasVolume(id string) bool {
	has := func(v winsim.Volume) bool { return strings.EqualFold(v.ID, id) }
	return slices.ContainsFunc(l.model.Volumes, has) || slices.ContainsFunc(l.model.Disks, func(d winsim.Disk) bool {
		return slices.ContainsFunc(d.Partitions, func(p winsim.Partition) bool { return p.Volume != nil && has(*p.Volume) })
	})
}

func (l *learner) add(first bool, f winsim.File) {
	if first && len(f.Path) > len(`C:\`) {
		l.model.Files = append(l.model.Files, f)
	}
}

// discovery learns portals and targets. It does not learn what a target holds.
func (l *learner) discovery(c record.Call) {
	if c.Error != nil {
		return
	}
	switch c.Method {
	case "AddSendTargetPortal":
		var in struct{ Portal win.TargetPortal }
		if json.Unmarshal(c.In, &in) == nil {
			l.portal(in.Portal)
		}
	case "ReportTargets":
		var names []string
		_ = json.Unmarshal(c.Out, &names) // without a list there is none
		for _, name := range names {
			l.target(name)
		}
	case "ReportTargetPortals":
		var (
			in      struct{ Target string }
			portals []win.TargetPortal
		)
		if json.Unmarshal(c.In, &in) != nil || json.Unmarshal(c.Out, &portals) != nil {
			return
		}
		t := l.target(in.Target)
		for _, p := range portals {
			l.portal(p)
			if !slices.Contains(t.Portals, p.String()) {
				t.Portals = append(t.Portals, p.String())
			}
		}
	}
}

func (l *learner) portal(p win.TargetPortal) {
	known := &l.model.ISCSI.Portals
	if !slices.ContainsFunc(*known, func(k winsim.ISCSIPortal) bool { return k.Address == p.Address && k.Port == p.Port }) {
		*known = append(*known, winsim.ISCSIPortal{Address: p.Address, Port: p.Port})
	}
}

// target returns the target of the model with a name.
func (l *learner) target(name string) *winsim.ISCSITarget {
	known := &l.model.ISCSI.Targets
	at := slices.IndexFunc(*known, func(t winsim.ISCSITarget) bool { return strings.EqualFold(t.IQN, name) })
	if at < 0 {
		at = len(*known)
		*known = append(*known, winsim.ISCSITarget{IQN: name})
	}
	return &(*known)[at]
}

// mapping learns that a server and a user exist, and a share unless the password was wrong.
func (l *learner) mapping(c record.Call) {
	var in struct{ Request win.SMBMappingRequest }
	refused := c.Error != nil && c.Error.Windows == uint32(winerr.LogonFailure)
	if c.Error != nil && !refused || json.Unmarshal(c.In, &in) != nil {
		return
	}
	server, share, _ := strings.Cut(strings.TrimPrefix(in.Request.Remote, `\\`), `\`)
	at := slices.IndexFunc(l.model.SMBServers, func(s winsim.SMBServer) bool { return winpath.Equal(s.Name, server) })
	if at < 0 {
		at = len(l.model.SMBServers)
		l.model.SMBServers = append(l.model.SMBServers, winsim.SMBServer{Name: server, Guest: true})
	}
	s := &l.model.SMBServers[at]
	if !refused && !slices.ContainsFunc(s.Shares, func(known winsim.SMBShare) bool { return winpath.Equal(known.Name, share) }) {
		s.Shares = append(s.Shares, winsim.SMBShare{Name: share})
	}
	if user := in.Request.User; user != "" && !slices.ContainsFunc(s.Accounts, func(a winsim.SMBAccount) bool { return winpath.Equal(a.User, user) }) {
		s.Accounts = append(s.Accounts, winsim.SMBAccount{User: user, Password: winsim.HiddenSecret})
	}
}
