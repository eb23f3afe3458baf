package winsim

import (
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Model describes the node as it is now, with files and secrets. New makes a copy of it, which has started just now:
// nothing is pending, and only persistent logins have sessions. A mirrored node cannot be copied.
func (n *Node) Model() (Model, error) {
	defer n.lock()()
	if n.files.mirror != nil {
		return Model{}, errors.New("describe the node: a mirrored node cannot be copied")
	}
	return n.describe(true), nil
}

// Describe describes the node as it is now, without bytes and files, but with what New does not take: sessions, LUNs with
// their numbers, and what Windows does not show.
func (n *Node) Describe() Model {
	defer n.lock()()
	return n.describe(false)
}

// describe is Model if copies is set, or else Describe. mu is held.
func (n *Node) describe(copies bool) Model {
	m := n.model
	m.Files, m.Disks, m.Volumes, m.Services = nil, nil, nil, nil
	all := slices.Concat(n.disks.sorted(), n.disks.unseen, slices.SortedStableFunc(slices.Values(n.disks.detached), byNumber))
	for _, d := range all {
		if !d.lun {
			m.Disks = append(m.Disks, n.describeDisk(d, copies))
		}
	}
	for _, v := range n.volumes.spanning {
		if gone := func(e extent) bool { return !e.disk.nameless && n.disks.attached(e.disk.Number) != e.disk }; copies && slices.ContainsFunc(v.extents, gone) {
			continue
		}
		described := v.describe(copies)
		for _, e := range v.extents {
			if e.disk.nameless {
				described.Size = Size(e.length)
			} else {
				described.Extents = append(described.Extents, Extent{e.disk.Number, Size(e.offset), Size(e.length)})
			}
		}
		m.Volumes = append(m.Volumes, described)
	}
	for _, s := range n.services.all {
		described := s.Service
		if copies {
			described.LastExit = 0
		}
		m.Services = append(m.Services, described)
	}
	m.SMBServers, m.SMBMappings = n.network.describe(copies)
	m.ISCSI = n.describeInitiator(copies)
	return m
}

func (n *Node) describeDisk(d *disk, copies bool) Disk {
	m := d.describe()
	m.Presence = n.disks.presence(d)
	if copies {
		m.LogOpened, m.Bytes = 0, d.content.describe()
		if m.Presence != DiskDetached {
			m.Presence = ""
		}
	}
	for i, p := range d.table.partitions {
		if p.volume != nil {
			described := p.volume.describe(copies)
			m.Partitions[i].Volume = &described
		}
		if copies && m.Layout == LayoutSuperfloppy {
			m.Partitions[i].Size = 0 // the whole disk
		}
	}
	return m
}

// presence is empty for an attached disk, the default of all but LUNs.
func (m *disks) presence(d *disk) Presence {
	switch {
	case m.byNumber[d.Number] == d && !d.lun:
		return ""
	case m.byNumber[d.Number] == d:
		return DiskAttached
	case slices.Contains(m.unseen, d):
		return DiskUnseen
	case slices.Contains(m.detached, d):
		return DiskDetached
	default:
		return DiskAway
	}
}

// describe describes the content of a disk, without zeros around it.
func (s sparse) describe() (all []Bytes) {
	for _, block := range slices.Sorted(maps.Keys(s)) {
		data := s[block]
		from, to := 0, len(data)
		for from < to && data[from] == 0 {
			from++
		}
		for to > from && data[to-1] == 0 {
			to--
		}
		all = append(all, Bytes{Offset: Size(block*blockSize + int64(from)), Hex: hex.EncodeToString(data[from:to])})
	}
	return all
}

// describe describes a volume without its place.
func (v *volume) describe(copies bool) Volume {
	m := v.Volume
	m.ID, m.FileSystem, m.Hidden = string(v.id()), FileSystemNone, !copies && (!v.present || v.nameless)
	fs := v.extents[0].disk.fileSystems[v.extents[0].offset]
	if fs == nil {
		return m
	}
	fresh := newFileSystem(fs.kind, fs.sectors*fs.sector, fs.sector)
	m.FileSystem, m.Label, m.RootAccess, m.ClusterSize = fs.kind, fs.label, fs.rootAccess, Size(fs.cluster)
	m.Damage = fs.damage
	m.Used = Size(fs.used - fresh.used)
	if size := fs.sectors * fs.sector; size != v.length() || m.Used < 0 {
		m.FileSystemSize = Size(size)
	}
	if copies {
		m.Files = fs.root.files(nil, `\\?\`)
	}
	return m
}

// files appends what is below a directory, each entry after its own directory.
func (e *entry) files(all []File, path string) []File {
	for _, key := range slices.Sorted(maps.Keys(e.children)) {
		child := e.children[key]
		all = child.files(append(all, child.describeFile(path)), path+child.name+`\`)
	}
	return all
}

// describeFile describes an entry in a directory, whose path ends with the separator.
func (e *entry) describeFile(in string) File {
	f := File{}
	if e.link != nil {
		f = e.link.file(e.children != nil)
	}
	if e.children == nil && f.FileSymlink == "" {
		switch text := string(e.content); {
		case text == "":
			f.EmptyFile = true
		case isText(text):
			f.Content = text
		default:
			f.Hex = hex.EncodeToString(e.content)
		}
	}
	f.Path, f.Short, f.ReadOnly = in+e.name, e.shortName, e.readOnly
	return f
}

// isText reports whether both YAML and JSON can have the text as it is.
func isText(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsPrint(r) && r != '\n' && r != '\t' && r != '\r'
	})
}

// file describes a link: by its target if a model can say it so, or else by its data.
func (l *link) file(directory bool) File {
	shown, _ := l.MountedVolume()
	for _, f := range []File{{Symlink: l.Print}, {FileSymlink: l.Print}, {Junction: l.Print}, {Volume: normalGUID(shown)}} {
		if f == (File{}) || f.validate(nil) != nil {
			continue
		}
		if made := f.entry(); made.link.ReparsePoint == l.ReparsePoint && made.link.announced == l.announced && (made.children != nil) == directory && !l.malformed {
			return f
		}
	}
	f := File{Tag: uint32(l.Tag), TagData: l.tagData}
	if data, err := winlayout.EncodeReparsePoint(l.ReparsePoint); err == nil && f.TagData == "" && !l.malformed && (l.Tag == win.TagSymlink || l.Tag == win.TagMountPoint) {
		f.TagData = hex.EncodeToString(data[reparseHeader:])
	}
	return f
}

func (n *network) describe(copies bool) (servers []SMBServer, mappings []SMBMapping) {
	for _, key := range slices.Sorted(maps.Keys(n.byName)) {
		s := n.byName[key]
		if key != winpath.Fold(s.Name) {
			continue // an alias
		}
		m := s.SMBServer
		m.Shares, m.Accounts = slices.Clone(m.Shares), slices.Clone(m.Accounts)
		for i, share := range m.Shares {
			m.Shares[i].MappedFor, m.Shares[i].Files = "", nil // the mapping is described itself
			if copies {
				m.Shares[i].Files = s.shares[winpath.Fold(share.Name)].volume.fileSystem().root.files(nil, `\\?\`)
			}
		}
		servers = append(servers, m)
	}
	for _, key := range slices.Sorted(maps.Keys(n.mappings)) {
		mappings = append(mappings, n.mappings[key].SMBMapping)
	}
	return servers, mappings
}

func (n *Node) describeInitiator(copies bool) ISCSI {
	m := n.initiator.ISCSI
	m.Portals, m.Targets, m.Logins, m.Sessions = nil, nil, nil, nil
	for _, portal := range n.initiator.portals {
		m.Portals = append(m.Portals, portal.ISCSIPortal)
	}
	for _, t := range n.initiator.targets {
		described := t.ISCSITarget
		described.Portals, described.LUNs = nil, nil
		for _, portal := range t.portals {
			described.Portals = append(described.Portals, portal.address().String())
		}
		next := 0
		for _, d := range t.luns {
			lun := n.describeDisk(d, copies)
			lun.SCSI = nil
			if int(d.unit) != next {
				lun.SCSI = &SCSI{LUN: d.unit}
			}
			if copies {
				lun.Number, lun.Presence = 0, ""
			}
			next = int(d.unit) + 1
			described.LUNs = append(described.LUNs, lun)
		}
		m.Targets = append(m.Targets, described)
	}
	for _, login := range n.initiator.logins {
		m.Logins = append(m.Logins, ISCSILogin{Target: login.Target, Portal: login.Portal.String(), Secret: login.secret})
	}
	for _, s := range n.initiator.sessions {
		if !copies {
			m.Sessions = append(m.Sessions, s.ISCSILogin)
		}
	}
	return m
}
