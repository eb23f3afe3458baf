package winsim

import (
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// volume is a volume as the mount manager knows it. It remembers names and letters of volumes
// that are away.
type volume struct {
	Volume         // its letter and state now
	guid    string // lower case
	extents []extent
	share   *share // for a volume that is a share

	present     bool // its device exists
	arrived     time.Time
	offline     bool // by automount
	nameless    bool // and without a name, too
	cached      bool // by the storage service
	logOpen     bool // see Disk.LogOpened
	expected    bool // will arrive
	absences    int  // how often it has left; an arrival planned before is void
	formatting  bool
	interrupted bool // it has left during the format
}

// volumes are the volumes of a node, and what the mount manager and the storage service know of them.
type volumes struct {
	*clock
	storage Storage // of the model
	disks   *disks

	byGUID         map[string]*volume // including those that are away
	letters        map[string]*volume
	spanning       []*volume // those that are not a single partition
	mountedFolders []mountedFolder
	outOfDate      int // formats that the storage service still refuses
	formatLocks    map[win.VolumeID]*formatLock
}

type extent struct {
	disk           *disk
	offset, length int64
}

func newVolume(m Volume, guid string) *volume {
	return &volume{guid: guid, Volume: Volume{
		Letter: winpath.Fold(m.Letter), State: m.State, CDROM: m.CDROM,
	}}
}

func (v *volume) id() win.VolumeID { return win.VolumeID(`\\?\Volume{` + v.guid + `}\`) }

func (v *volume) length() (total int64) {
	for _, e := range v.extents {
		total += e.length
	}
	return total
}

// fileSystem returns the recognised file system, or nil.
func (v *volume) fileSystem() *fileSystem {
	first := v.extents[0]
	if fs := first.disk.fileSystems[first.offset]; fs != nil && fs.sectors*fs.sector <= v.length() {
		return fs
	}
	return nil
}

func (v *volume) setFileSystem(fs *fileSystem) {
	v.extents[0].disk.fileSystems[v.extents[0].offset] = fs
}

// writeBoot writes the boot sector, and that of NTFS also at the end.
func (v *volume) writeBoot(kind FileSystem, locked bool, sector int64) {
	boot, first, last := bootSector(kind, locked, sector), v.extents[0], v.extents[len(v.extents)-1]
	first.disk.content.write(first.offset, boot)
	if kind == NTFS && !locked {
		last.disk.content.write(last.offset+last.length-sector, boot)
	}
}

func (v *volume) on(d *disk) bool {
	return slices.ContainsFunc(v.extents, func(e extent) bool { return e.disk == d })
}

// writable returns the error of a write to the volume, if it refuses writes.
func (v *volume) writable() error {
	for _, e := range v.extents {
		if err := e.disk.writable(); err != nil {
			return err
		}
	}
	if p := v.partition(); v.CDROM || (p != nil && p.Attributes&win.ReadOnlyPartition != 0) {
		return winerr.WriteProtect
	}
	return nil
}

func (v *volume) partition() *partition {
	for _, p := range v.extents[0].disk.table.partitions {
		if p.volume == v {
			return p
		}
	}
	return nil
}

// openError returns the error of any access to the volume's device; v may be nil.
func (v *volume) openError() error {
	switch {
	case v == nil || v.State == Gone || !v.present:
		return winerr.FileNotFound
	case v.State == NotReady:
		return winerr.NotReady
	}
	return nil
}

// contentError returns the error of any access to what is on the volume; v may be nil.
func (v *volume) contentError() error {
	if err := v.openError(); err != nil {
		return err
	}
	for _, e := range v.extents {
		if err := e.disk.contentError(); err != nil {
			return err
		}
	}
	return nil
}

// mounted returns the file system for an access to the volume's files. mu is held.
func (m *volumes) mounted(v *volume) (*fileSystem, error) {
	if err := v.contentError(); err != nil {
		return nil, err
	}
	fs := v.fileSystem()
	switch {
	case v.State == Locked:
		return nil, winerr.FVELocked
	case v.offline:
		return nil, winerr.NotReady
	case m.storage.ArrivalTrouble > 0 && m.now().Before(v.arrived.Add(m.storage.ArrivalTrouble)):
		return nil, winerr.UnrecognizedVolume
	case v.State == Raw || fs == nil:
		return nil, winerr.UnrecognizedVolume
	}
	if fs.kind == NTFS && v.share == nil && !v.logOpen && v.writable() == nil {
		v.logOpen = true
		v.extents[0].disk.LogOpened++
	}
	return fs, nil
}

// bringUp makes the volumes of an attached, online disk arrive later. mu is held.
func (m *volumes) bringUp(d *disk) {
	for _, v := range m.of(d) {
		if v.present || v.expected || slices.ContainsFunc(v.extents, func(e extent) bool { return !m.disks.online(e.disk) }) {
			continue
		}
		m.claimName(v)
		v.expected = true
		m.afterUnlessChanged(&v.absences, m.storage.VolumeArrival, func() { v.present, v.expected, v.arrived = true, false, m.now() })
	}
}

// claimName gives a volume that arrives its name, or another one if a volume that is there has it:
// copies of a disk have the same names. mu is held.
func (m *volumes) claimName(v *volume) {
	if other := m.byGUID[v.guid]; other != nil && other != v && (other.present || other.expected) {
		v.guid = m.disks.newGUID().String()
	}
	m.byGUID[v.guid] = v
}

// boot makes the volumes of online disks present.
func (m *volumes) boot() {
	for _, v := range m.byGUID {
		if !slices.ContainsFunc(v.extents, func(e extent) bool { return !m.disks.online(e.disk) }) {
			v.present, v.cached, v.logOpen = true, true, v.writable() == nil
		}
	}
}

func (m *volumes) takeDown(d *disk) {
	for _, v := range m.of(d) {
		v.leave()
	}
}

func (v *volume) leave() {
	v.present, v.expected, v.cached, v.logOpen = false, false, false, false
	v.absences++
	v.interrupted = v.formatting
}

func (m *volumes) rename(v *volume, guid string) {
	if m.byGUID[v.guid] == v {
		delete(m.byGUID, v.guid)
	}
	v.guid = guid
	m.byGUID[guid] = v
}

// claimNames gives the volumes of a disk that arrives their names and letters, or others if volumes that are there
// have them, as those of a copied disk. mu is held.
func (m *volumes) claimNames(d *disk) {
	for _, v := range m.of(d) {
		m.claimName(v)
		if other := m.letters[v.Letter]; other != nil && other != v && other.present {
			v.Letter = ""
		}
		if v.Letter != "" {
			m.letters[v.Letter] = v
		}
	}
}

// isNew applies the automount policy to the volumes of a new disk.
func (m *volumes) isNew(d *disk) {
	for _, v := range m.of(d) {
		m.applyAutomount(v)
	}
}

func (m *volumes) applyAutomount(v *volume) {
	v.offline = m.storage.Automount == AutomountOffline || m.storage.Automount == AutomountNameless
	v.nameless = m.storage.Automount == AutomountNameless
}

// add adds a volume. The mount manager names it after its partition unless that
// name is in use. mu is held.
func (m *volumes) add(d *disk, p *partition) *volume {
	guid := d.volumeGUID(p).String()
	if taken := m.byGUID[guid]; m.storage.ForeignVolumeIDs || (taken != nil && taken.present) {
		guid = m.disks.newGUID().String()
	}
	v := &volume{guid: guid, extents: []extent{{d, p.Offset, p.Length}}}
	m.applyAutomount(v)
	m.byGUID[guid] = v
	if p.Attributes&win.NoDriveLetter == 0 && !v.offline {
		m.assignLetter(v)
	}
	return v
}

// assignLetter gives a volume the first free letter, as automount does. mu is held.
func (m *volumes) assignLetter(v *volume) {
	for letter := 'D'; letter <= 'Z'; letter++ {
		if m.letters[string(letter)] == nil {
			v.Letter = string(letter)
			m.letters[v.Letter] = v
			return
		}
	}
}

// grow makes a volume as long as its partition after Storage.GrowDelay. mu is held.
func (m *volumes) grow(v *volume) {
	m.after(m.storage.GrowDelay, func() {
		if p := v.partition(); p != nil {
			v.extents[0].length = p.Length
		}
	})
}

func (m *volumes) volumeByID(id string) *volume {
	if v := m.byGUID[normalGUID(id)]; v != nil && !v.nameless {
		return v
	}
	return nil
}

func (m *volumes) volumeByLetter(letter string) *volume {
	if v := m.letters[winpath.Fold(letter)]; v != nil && v.present {
		return v
	}
	return nil
}

// of returns the volumes on a disk, present or not.
func (m *volumes) of(d *disk) []*volume {
	var volumes []*volume
	for _, p := range d.table.partitions {
		if p.volume != nil {
			volumes = append(volumes, p.volume)
		}
	}
	for _, v := range m.spanning {
		if v.on(d) {
			volumes = append(volumes, v)
		}
	}
	return volumes
}
