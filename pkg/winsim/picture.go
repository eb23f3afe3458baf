package winsim

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Model describes the node as it is now, with its files, its secrets and what is pending. New makes
// the same node of it, as after a restart of its process: what was pending continues. To restart the
// machine as well, call Reboot.
//
// It leaves out faults, call counts, logon attempts, and open handles, which end with their program.
// It fails for a mirrored node, because other processes can change its files at any time.
func (n *Node) Model() (Model, error) {
	defer n.lock()()
	return n.save()
}

// save is Model while n.mu is held.
func (n *Node) save() (Model, error) {
	if n.files.mirror != nil {
		return Model{}, errors.New("describe the node: a mirrored node cannot be saved")
	}
	return n.draw(true), nil
}

// Describe is Model without the bytes and files on disks and shares. It works for mirrored nodes, too.
func (n *Node) Describe() Model {
	defer n.lock()()
	return n.draw(false)
}

func (n *Node) draw(contents bool) Model {
	p := n.look(contents)
	m := n.model
	m.Files = nil
	m.Running = p.running(n.origin())
	m.Disks, m.Volumes, m.Services = p.disks(), p.volumes(), p.services()
	m.SMBServers, m.SMBMappings = p.network()
	p.initiator(&m.ISCSI)
	return m
}

// origin identifies the nodes that were created from a model. It ignores behaviour.
func (m Model) origin() string {
	if m.Running != nil {
		return m.Running.Origin
	}
	m.Seed, m.RealTime, m.Storage = 0, false, Storage{}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings, numbers and times of a valid node cannot fail
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

type picture struct {
	objects
	contents bool               // with bytes and files
	presence map[*disk]Presence // of the disks that exist
	begins   map[extent]*volume // by disk and offset
	left     map[extent]*volume // removed ones with mounted folders
	living   map[*volume]bool   // those that can come back
	pending  map[any][]Event    // by object
	folders  map[*entry]int     // their places in the mount manager's list
}

// look finds what exists, and what is pending. mu is held.
func (n *Node) look(contents bool) *picture {
	p := &picture{
		objects: n.objects, contents: contents, presence: map[*disk]Presence{}, begins: map[extent]*volume{}, left: map[extent]*volume{}, living: map[*volume]bool{},
		pending: map[any][]Event{}, folders: map[*entry]int{},
	}
	for _, t := range p.objects.initiator.targets {
		for _, d := range t.luns {
			p.presence[d] = DiskAway
		}
	}
	for _, d := range p.objects.disks.byNumber {
		p.presence[d] = DiskAttached
	}
	for _, d := range p.objects.disks.unseen {
		p.presence[d] = DiskUnseen
	}
	for _, d := range p.objects.disks.detached {
		p.presence[d] = DiskDetached
	}
	for _, v := range slices.Concat(p.objects.volumes.spanning, p.objects.network.volumes()) {
		p.lives(v)
	}
	for d := range p.presence {
		for _, partition := range d.table.partitions {
			if partition.volume != nil {
				p.lives(partition.volume)
			}
		}
	}
	for _, f := range p.objects.volumes.mountedFolders {
		if f.dismantled() {
			continue
		}
		p.folders[f.at] = len(p.folders) + 1
		if p.begins[f.on.begins()] == nil {
			p.left[f.on.begins()] = f.on
		}
	}
	p.events()
	return p
}

func (p *picture) lives(v *volume) {
	if slices.ContainsFunc(v.extents, func(e extent) bool { return !e.disk.nameless && p.presence[e.disk] == "" }) {
		return
	}
	p.living[v] = true
	p.begins[v.begins()] = v
}

// events describes the pending events that will do something.
func (p *picture) events() {
	order := 0
	for _, e := range p.clock.events {
		is, does := e.Event, !e.void()
		switch of := e.of.(type) {
		case *volume:
			does = does && p.living[of]
			is.Interrupted = (is.Kind == formatEnds || is.Kind == repairEnds) && of.interrupted
		case *disk:
			does = p.presence[of] != ""
		case *iscsiSession:
			does = slices.Contains(p.objects.initiator.sessions, of)
		}
		if does {
			order++
			is.Due, is.Order = is.Due.UTC(), order
			p.pending[e.of] = append(p.pending[e.of], is)
		}
	}
}

func (p *picture) running(origin string) *Running {
	m := &Running{
		Origin: origin, Time: p.virtual, Booted: p.objects.services.booted.UTC(),
		GUIDs: p.objects.disks.guids, Departures: p.objects.disks.departures, OutOfDate: p.objects.volumes.outOfDate,
	}
	for address, stored := range p.objects.disks.persisted {
		m.Attributes = append(m.Attributes, Disk{SCSI: &address, Offline: stored.Offline, ReadOnly: stored.ReadOnly})
	}
	slices.SortFunc(m.Attributes, func(a, b Disk) int { return cmp.Compare(fmt.Sprint(*a.SCSI), fmt.Sprint(*b.SCSI)) })
	return m
}

// disks describes all disks but those of targets: the attached ones by number, then the others.
func (p *picture) disks() (all []Disk) {
	m := p.objects.disks
	for _, d := range slices.Concat(m.sorted(), m.unseen, slices.SortedFunc(maps.Values(m.detached), byNumber)) {
		if !d.lun {
			all = append(all, p.disk(d))
		}
	}
	return all
}

func (p *picture) disk(d *disk) Disk {
	m := d.describe()
	if m.Presence = p.presence[d]; m.Presence == DiskAttached {
		m.Presence = "" // the default of all but LUNs
	}
	if d.table.style == win.StyleGPT && d.table.size != d.visibleSize {
		m.TableSize = Size(d.table.size)
	}
	begins := map[int64]bool{}
	for i, partition := range d.table.partitions {
		begins[partition.Offset] = true
		if v := partition.volume; v != nil {
			described := p.volume(v)
			if length := v.length(); length != partition.Length {
				described.Size = Size(length)
			}
			m.Partitions[i].Volume = &described
		}
	}
	for _, offset := range slices.Sorted(maps.Keys(d.fileSystems)) {
		if !begins[offset] && p.contents {
			var v Volume
			if left := p.left[extent{d, offset, 0}]; left != nil {
				v.ID, v.Letter = string(left.id()), left.Letter
			}
			p.fileSystem(&v, d.fileSystems[offset], 0)
			m.FileSystems = append(m.FileSystems, Partition{Offset: Size(offset), Volume: &v})
		}
	}
	m.Bytes, m.Pending = p.bytes(d.content), p.pending[d]
	return m
}

// bytes describes the content of a disk, without zeros around it.
func (p *picture) bytes(s sparse) (all []Bytes) {
	if !p.contents {
		return nil
	}
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

// volumes describes the volumes that are not single partitions, and the names of removed ones.
func (p *picture) volumes() (all []Volume) {
	for _, v := range p.objects.volumes.spanning {
		if !p.living[v] {
			continue
		}
		m := p.volume(v)
		for _, e := range v.extents {
			switch {
			case e.disk.nameless:
				m.Size, m.Bytes = Size(e.length), p.bytes(e.disk.content)
			default:
				m.FileSystem = FileSystemNone // its disk has it
				m.Extents = append(m.Extents, Extent{e.disk.Number, Size(e.offset), Size(e.length), p.presence[e.disk] == DiskDetached})
			}
		}
		all = append(all, m)
	}
	removed := map[*volume]bool{}
	for _, names := range []map[string]*volume{p.objects.volumes.byGUID, p.objects.volumes.letters} {
		for _, v := range names {
			removed[v] = !p.living[v]
		}
	}
	var names []Volume
	for v, gone := range removed {
		if gone {
			names = append(names, p.named(v, Volume{Absent: true, FileSystem: FileSystemNone}))
		}
	}
	slices.SortFunc(names, func(a, b Volume) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Letter, b.Letter)) })
	return append(all, names...)
}

func (p *picture) named(v *volume, m Volume) Volume {
	m.ID, m.Letter = string(v.id()), v.Letter
	m.IDTaken = p.objects.volumes.byGUID[v.guid] != v
	m.LetterTaken = v.Letter != "" && p.objects.volumes.letters[v.Letter] != v
	return m
}

func (p *picture) volume(v *volume) Volume {
	m := p.named(v, v.Volume)
	m.FileSystem, m.Absent, m.Pending = FileSystemNone, !v.present, p.pending[v]
	if !m.Arrived.IsZero() {
		m.Arrived = m.Arrived.UTC()
	}
	if fs := v.extents[0].disk.fileSystems[v.extents[0].offset]; fs != nil && (len(v.extents) == 1 || v.extents[0].disk.nameless) {
		p.fileSystem(&m, fs, v.length())
	}
	return m
}

func (p *picture) fileSystem(m *Volume, fs *fileSystem, length int64) {
	fresh := newFileSystem(fs.kind, fs.sectors*fs.sector, fs.sector)
	m.FileSystem, m.Label, m.RootAccess, m.ClusterSize = fs.kind, fs.label, fs.rootAccess, Size(fs.cluster)
	m.Damage = fs.damage
	m.Used, m.NoShortNames = Size(fs.used-fresh.used), fresh.shortNames && !fs.shortNames
	if size := fs.sectors * fs.sector; size != length || m.Used < 0 {
		m.FileSystemSize = Size(size)
	}
	m.Files = p.files(fs.root)
}

// files lists the root, then each entry after its directory. They are not nested: trees can be deeper
// than JSON allows.
func (p *picture) files(root *entry) []File {
	if !p.contents {
		return nil
	}
	entries, files := []*entry{root}, []File{p.file(root, 0)}
	files[0].Path = winpath.Separator
	for at := 0; at < len(entries); at++ {
		for _, inside := range []map[string]*entry{entries[at].streams, entries[at].children} {
			for _, key := range slices.Sorted(maps.Keys(inside)) {
				entries = append(entries, inside[key])
				files = append(files, p.file(inside[key], at+1))
			}
		}
	}
	return files
}

func (p *picture) file(e *entry, in int) File {
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
	f.Path, f.In, f.Short, f.Stream, f.ReadOnly, f.Mounted = e.name, in, e.shortName, e.isStream, e.readOnly, p.folders[e]
	if !e.changedAt.IsZero() {
		f.Changed = e.changedAt.UTC()
	}
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

func (p *picture) services() (all []Service) {
	for _, s := range p.objects.services.all {
		all = append(all, p.service(s))
	}
	return all
}

func (p *picture) service(s *service) Service {
	m := s.Service
	m.Pending = p.pending[s]
	return m
}

func (p *picture) network() (servers []SMBServer, mappings []SMBMapping) {
	n := p.objects.network
	for _, key := range slices.Sorted(maps.Keys(n.byName)) {
		s := n.byName[key]
		if key != winpath.Fold(s.Name) {
			continue // an alias
		}
		m := s.SMBServer
		m.Shares, m.Accounts = slices.Clone(m.Shares), slices.Clone(m.Accounts)
		for i, share := range m.Shares {
			m.Shares[i].MappedFor = "" // the mapping is described itself
			m.Shares[i].Files = p.files(s.shares[winpath.Fold(share.Name)].volume.fileSystem().root)
		}
		servers = append(servers, m)
	}
	for _, key := range slices.Sorted(maps.Keys(n.mappings)) {
		mappings = append(mappings, n.mappings[key].SMBMapping)
	}
	return servers, mappings
}

func (p *picture) initiator(m *ISCSI) {
	in := p.objects.initiator
	*m = in.ISCSI
	m.Portals, m.Targets, m.Logins, m.Sessions = nil, nil, nil, nil
	for _, portal := range in.portals {
		m.Portals = append(m.Portals, portal.ISCSIPortal)
	}
	for _, t := range in.targets {
		described := t.ISCSITarget
		described.Portals, described.LUNs = nil, nil
		for _, portal := range t.portals {
			described.Portals = append(described.Portals, portal.address().String())
		}
		next := 0
		for _, d := range t.luns {
			lun := p.disk(d)
			lun.SCSI, lun.Presence = nil, p.presence[d]
			if int(d.unit) != next {
				lun.SCSI = &SCSI{LUN: d.unit}
			}
			next = int(d.unit) + 1
			described.LUNs = append(described.LUNs, lun)
		}
		m.Targets = append(m.Targets, described)
	}
	for _, login := range in.logins {
		m.Logins = append(m.Logins, ISCSILogin{Target: login.Target, Portal: login.Portal.String(), Secret: login.secret})
	}
	for _, s := range in.sessions {
		described := s.ISCSILogin
		described.Pending = p.pending[s]
		m.Sessions = append(m.Sessions, described)
	}
}
