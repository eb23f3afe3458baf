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
	guid    string // lower case
	letter  string // "C" or empty
	state   VolumeState
	cdrom   bool
	extents []extent
	share   *share // for a volume that is a share

	present        bool // its device exists
	expected       bool // will arrive
	logOpen        bool // NTFS has mounted it for writing since it arrived
	absences       int  // how often it has left; an arrival planned before is void
	offline        bool // until IOCTL_VOLUME_ONLINE
	nameless       bool // until then
	arrived        time.Time
	inServiceCache bool // regardless of Storage.ServiceDelay

	formatting bool
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
}

// extent is a part of a disk.
type extent struct {
	disk           *disk
	offset, length int64
}

func newVolume(m Volume, guid string) *volume {
	return &volume{guid: guid, letter: winpath.Fold(m.Letter), state: m.State, cdrom: m.CDROM, offline: m.Offline, nameless: m.Nameless, arrived: m.Arrived, inServiceCache: m.InServiceCache, logOpen: m.LogOpen}
}

func (v *volume) id() win.VolumeID { return win.VolumeID(`\\?\Volume{` + v.guid + `}\`) }

// length is the size of the volume's device.
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

// write writes to the start of the volume.
func (v *volume) write(b []byte) { v.extents[0].disk.content.write(v.extents[0].offset, b) }

// on reports whether a part of the volume is on the disk.
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
	if p := v.partition(); v.cdrom || (p != nil && p.Attributes&win.ReadOnlyPartition != 0) {
		return winerr.WriteProtect
	}
	return nil
}

// partition returns the partition of the volume, or nil.
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
	case v == nil || v.state == Gone || !v.present:
		return winerr.FileNotFound
	case slices.ContainsFunc(v.extents, func(e extent) bool { return e.disk.Dying }):
		return winerr.IODevice
	case v.state == NotReady:
		return winerr.NotReady
	}
	return nil
}

// mounted returns the file system for an access to the volume's files. mu is held.
func (m *volumes) mounted(v *volume) (*fileSystem, error) {
	if err := v.openError(); err != nil {
		return nil, err
	}
	fs := v.fileSystem()
	switch {
	case v.state == Locked:
		return nil, winerr.FVELocked
	case v.offline:
		return nil, winerr.NotReady
	case m.storage.ArrivalTrouble > 0 && m.now().Before(v.arrived.Add(m.storage.ArrivalTrouble)):
		return nil, m.arrivalError()
	case v.state == Raw || fs == nil:
		return nil, winerr.UnrecognizedVolume
	}
	if fs.kind == NTFS && v.share == nil && !v.logOpen && v.writable() == nil {
		v.logOpen = true
		v.extents[0].disk.LogOpened++
		m.changed()
	}
	return fs, nil
}

func (m *volumes) arrivalError() winerr.Code {
	if m.storage.ArrivalError != 0 {
		return winerr.Code(m.storage.ArrivalError)
	}
	return winerr.UnrecognizedVolume
}

// bringUp makes the volumes of an attached, online disk arrive later. mu is held.
func (m *volumes) bringUp(d *disk) {
	for _, v := range m.of(d) {
		if v.present || v.expected || slices.ContainsFunc(v.extents, func(e extent) bool { return !m.disks.online(e.disk) }) {
			continue
		}
		m.changed()
		m.claimName(v)
		v.expected = true
		m.after(m.storage.VolumeArrival, volumeArrival{m, v, v.absences})
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

// volumeArrival makes a volume appear, unless it has left meanwhile.
type volumeArrival struct {
	m        *volumes
	volume   *volume
	absences int // at the time of planning
}

func (a volumeArrival) run() {
	if v := a.volume; v.absences == a.absences {
		v.present, v.expected, v.arrived = true, false, a.m.now()
	}
}

// boot makes the volumes of online disks present.
func (m *volumes) boot() {
	for _, v := range m.byGUID {
		if !slices.ContainsFunc(v.extents, func(e extent) bool { return !m.disks.online(e.disk) }) {
			v.present, v.inServiceCache, v.logOpen = true, true, v.writable() == nil
		}
	}
}

// takeDown makes the volumes on a disk leave.
func (m *volumes) takeDown(d *disk) {
	for _, v := range m.of(d) {
		v.leave()
	}
}

func (v *volume) leave() {
	v.present, v.expected, v.inServiceCache, v.logOpen = false, false, false, false
	v.absences++
}

// rename gives a volume another name.
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
		if other := m.letters[v.letter]; other != nil && other != v && other.present {
			v.letter = ""
		}
		if v.letter != "" {
			m.letters[v.letter] = v
		}
	}
}

// isNew applies the automount policy to the volumes of a new disk.
func (m *volumes) isNew(d *disk) {
	for _, v := range m.of(d) {
		m.applyAutomount(v)
	}
}

// applyAutomount applies the automount policy to a new volume.
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
			v.letter = string(letter)
			m.letters[v.letter] = v
			return
		}
	}
}

// grow makes a volume as long as its partition after Storage.GrowDelay. mu is held.
func (m *volumes) grow(v *volume) {
	m.after(m.storage.GrowDelay, volumeGrowth{v})
}

// volumeGrowth makes a volume as long as its partition.
type volumeGrowth struct{ volume *volume }

func (s volumeGrowth) run() {
	if p := s.volume.partition(); p != nil {
		s.volume.extents[0].length = p.Length
	}
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
