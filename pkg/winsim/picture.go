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
	n.lock()
	defer n.mu.Unlock()
	return n.draw()
}

// draw is Model while n.mu is held.
func (n *Node) draw() (Model, error) {
	if n.mirror != nil {
		return Model{}, errors.New("describe the node: a mirrored node cannot be saved")
	}
	p := &picture{
		objects: n.objects, presence: map[*disk]Presence{}, begins: map[extent]*volume{}, living: map[*volume]bool{},
		pending: map[any][]Event{}, folders: map[*entry]int{},
	}
	p.look()
	m := n.model
	m.Files = nil
	m.Running = p.running(n.origin())
	m.Disks, m.Volumes, m.Services = p.disks(), p.volumes(), p.services()
	m.SMBServers, m.SMBMappings = p.network()
	p.initiator(&m.ISCSI)
	return m, nil
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

// picture describes a node.
type picture struct {
	objects
	presence map[*disk]Presence // of the disks that exist
	begins   map[extent]*volume // by disk and offset
	living   map[*volume]bool   // those that can come back
	pending  map[any][]Event    // by object
	folders  map[*entry]int     // their places in the mount manager's list
}

// look finds what exists, and what is pending.
func (p *picture) look() {
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
		if begin := f.on.extents[0]; !f.dismantled() && p.begins[extent{begin.disk, begin.offset, 0}] == f.on {
			p.folders[f.at] = len(p.folders) + 1
		}
	}
	p.events()
}

func (p *picture) lives(v *volume) {
	if slices.ContainsFunc(v.extents, func(e extent) bool { return !e.disk.nameless && p.presence[e.disk] == "" }) {
		return
	}
	p.living[v] = true
	p.begins[extent{v.extents[0].disk, v.extents[0].offset, 0}] = v
}

// events describes the pending events that will do something.
func (p *picture) events() {
	pending := slices.Clone(p.clock.events)
	slices.SortFunc(pending, func(a, b *event) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.order, b.order))
	})
	order := 0
	for _, e := range pending {
		var of any
		is := Event{Due: e.due.UTC()}
		does := true
		switch what := e.action.(type) {
		case volumeArrival:
			of, is.Kind, does = what.volume, VolumeArrives, p.living[what.volume] && what.absences == what.volume.absences
		case volumeGrowth:
			of, is.Kind, does = what.volume, VolumeGrows, p.living[what.volume]
		case *formatEnd:
			of, is.Kind, does = what.volume, FormatEnds, p.living[what.volume]
			is.ClusterSize, is.Label, is.Interrupted = what.options.ClusterSize, what.options.Label, what.absences != what.volume.absences
		case tableMove:
			of, is.Kind, does = what.disk, TableMoves, p.presence[what.disk] != ""
		case msrArrival:
			of, is.Kind, does = what.disk, MSRAppears, p.presence[what.disk] != ""
			is.Table = what.table.String()
		case offlineRelapse:
			of, is.Kind, does = what.disk, DiskRelapses, p.presence[what.disk] != ""
		case lunArrival:
			of, is.Kind, does = what.session, LUNsArrive, slices.Contains(p.objects.initiator.sessions, what.session)
		case pendingEnd:
			of, is.Kind, does = what.service, ServiceChanges, what.changes == what.service.changes
		default:
			panic(fmt.Sprintf("winsim: no rule to describe %T", what))
		}
		if does {
			order++
			is.Order = order
			p.pending[of] = append(p.pending[of], is)
		}
	}
}

func (p *picture) running(origin string) *Running {
	m := &Running{
		Origin: origin, Time: p.virtual, Booted: p.objects.services.booted.UTC(),
		GUIDs: p.objects.disks.guids, Departures: p.objects.disks.departures, OutOfDate: p.objects.volumes.outOfDate,
	}
	for address, stored := range p.objects.disks.persisted {
		m.Attributes = append(m.Attributes, StoredAttributes{address, stored.Offline, stored.ReadOnly})
	}
	slices.SortFunc(m.Attributes, func(a, b StoredAttributes) int {
		x, y := a.SCSI, b.SCSI
		return cmp.Or(cmp.Compare(x.Port, y.Port), cmp.Compare(x.Path, y.Path), cmp.Compare(x.Target, y.Target), cmp.Compare(x.LUN, y.LUN), cmp.Compare(x.BusNumber, y.BusNumber))
	})
	return m
}

// disks describes all disks but those of targets: the attached ones by number, then the others.
func (p *picture) disks() (all []Disk) {
	luns := map[*disk]bool{}
	for _, t := range p.objects.initiator.targets {
		for _, d := range t.luns {
			luns[d] = true
		}
	}
	m := p.objects.disks
	for _, d := range slices.Concat(m.sorted(), m.unseen, slices.SortedFunc(maps.Values(m.detached), byNumber)) {
		if !luns[d] {
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
		if !begins[offset] {
			var v Volume
			p.fileSystem(&v, d.fileSystems[offset], 0)
			m.FileSystems = append(m.FileSystems, Partition{Offset: Size(offset), Volume: &v})
		}
	}
	m.Bytes, m.Pending = d.content.describe(), p.pending[d]
	return m
}

// describe is the content without zeros around it.
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
				m.Size, m.Bytes = Size(e.length), e.disk.content.describe()
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

// named adds the names of a volume.
func (p *picture) named(v *volume, m Volume) Volume {
	m.ID, m.Letter = v.guid, v.letter
	m.IDTaken = p.objects.volumes.byGUID[v.guid] != v
	m.LetterTaken = v.letter != "" && p.objects.volumes.letters[v.letter] != v
	return m
}

func (p *picture) volume(v *volume) Volume {
	m := p.named(v, Volume{
		State: v.state, CDROM: v.cdrom, FileSystem: FileSystemNone, Absent: !v.present, Arrived: v.arrived.UTC(),
		InServiceCache: v.inServiceCache, LogOpen: v.logOpen, Offline: v.offline, Nameless: v.nameless, Pending: p.pending[v],
	})
	if v.arrived.IsZero() {
		m.Arrived = v.arrived
	}
	if fs := v.extents[0].disk.fileSystems[v.extents[0].offset]; fs != nil && (len(v.extents) == 1 || v.extents[0].disk.nameless) {
		p.fileSystem(&m, fs, v.length())
	}
	return m
}

// fileSystem describes a file system on a volume of that length.
func (p *picture) fileSystem(m *Volume, fs *fileSystem, length int64) {
	fresh := newFileSystem(fs.kind, fs.sectors*fs.sector, fs.sector)
	m.FileSystem, m.Label, m.RootAccess, m.ClusterSize = fs.kind, fs.label, fs.rootAccess, Size(fs.cluster)
	m.Used, m.NoShortNames = Size(fs.used-fresh.used), fresh.shortNames && !fs.shortNames
	if size := fs.sectors * fs.sector; size != length || m.Used < 0 {
		m.FileSystemSize = Size(size)
	}
	m.Files = p.files(fs.root)
}

// files lists the root, then each entry after its directory. They are not nested: trees can be deeper
// than JSON allows.
func (p *picture) files(root *entry) []File {
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
		m := s.Service
		m.State, m.Launched, m.LastExit, m.LastSpecificExit, m.Pending = s.state, s.launched, s.exit, s.specific, p.pending[s]
		all = append(all, m)
	}
	return all
}

func (p *picture) network() (servers []SMBServer, mappings []SMBMapping) {
	n := p.objects.network
	for _, key := range slices.Sorted(maps.Keys(n.byName)) {
		s := n.byName[key]
		if key != winpath.Fold(s.Name) {
			continue // an alias
		}
		m := s.describe()
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
	*m = ISCSI{Initiator: in.name, PnPDelay: in.pnpDelay, Secret: in.secret, SessionCount: in.sessionCount}
	for _, portal := range in.portals {
		described := ISCSIPortal{Address: portal.Address, Port: portal.Port, Down: portal.down, Delay: portal.delay, Registered: portal.registered}
		for _, t := range portal.known {
			described.Known = append(described.Known, t.iqn)
		}
		m.Portals = append(m.Portals, described)
	}
	for _, t := range in.targets {
		described := ISCSITarget{IQN: t.iqn, CHAP: t.chap, BusyLogouts: t.busy, Met: t.attachedBefore}
		for _, portal := range t.portals {
			described.Portals = append(described.Portals, portal.String())
		}
		for _, d := range t.luns {
			lun := p.disk(d)
			lun.SCSI, lun.Presence = nil, p.presence[d]
			described.LUNs = append(described.LUNs, lun)
		}
		m.Targets = append(m.Targets, described)
	}
	m.Logins = in.describeLogins()
	for _, s := range in.sessions {
		m.Sessions = append(m.Sessions, ISCSISession{Number: s.number, Target: s.target.iqn, Portal: s.portal.String(), Pending: p.pending[s]})
	}
}
