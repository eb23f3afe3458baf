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
	absences       int  // how often it has left; an arrival planned before is void
	offline        bool // until IOCTL_VOLUME_ONLINE
	nameless       bool // until then
	arrived        time.Time
	inServiceCache bool // regardless of Storage.ServiceDelay

	formatting bool
}

// extent is a part of a disk.
type extent struct {
	disk           *disk
	offset, length int64
}

func newVolume(m Volume, guid string) *volume {
	return &volume{guid: guid, letter: winpath.Fold(m.Letter), state: m.State, cdrom: m.CDROM}
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
	case slices.ContainsFunc(v.extents, func(e extent) bool { return e.disk.dying }):
		return winerr.IODevice
	case v.state == NotReady:
		return winerr.NotReady
	}
	return nil
}

// mounted returns the file system for an access to the volume's files. n.mu is held.
func (n *Node) mounted(v *volume) (*fileSystem, error) {
	if err := v.openError(); err != nil {
		return nil, err
	}
	if v.share != nil {
		if err := n.network.checkShare(v.share); err != nil {
			return nil, err
		}
	}
	fs := v.fileSystem()
	switch {
	case v.state == Locked:
		return nil, winerr.FVELocked
	case v.offline:
		return nil, winerr.NotReady
	case n.storage.ArrivalTrouble > 0 && n.now().Before(v.arrived.Add(n.storage.ArrivalTrouble)):
		return nil, n.arrivalError()
	case v.state == Raw || fs == nil:
		return nil, winerr.UnrecognizedVolume
	}
	return fs, nil
}

func (n *Node) arrivalError() winerr.Code {
	if n.storage.ArrivalError != 0 {
		return winerr.Code(n.storage.ArrivalError)
	}
	return winerr.UnrecognizedVolume
}

// bringUpVolumes makes the volumes of an attached, online disk arrive after a delay. n.mu is
// held.
func (n *Node) bringUpVolumes(d *disk, delay time.Duration) {
	for _, v := range n.volumesOn(d) {
		if v.present || v.expected || slices.ContainsFunc(v.extents, func(e extent) bool { return !n.online(e.disk) }) {
			continue
		}
		n.changed()
		n.claimName(v)
		v.expected = true
		n.after(delay, volumeArrival{n, v, v.absences})
	}
}

// claimName gives a volume that arrives its name, or another one if a volume that is there has it:
// copies of a disk have the same names. n.mu is held.
func (n *Node) claimName(v *volume) {
	if other := n.volumes[v.guid]; other != nil && other != v && (other.present || other.expected) {
		v.guid = n.newGUID().String()
	}
	n.volumes[v.guid] = v
}

// volumeArrival makes a volume appear, unless it has left meanwhile.
type volumeArrival struct {
	n        *Node
	volume   *volume
	absences int // at the time of planning
}

func (a volumeArrival) run() {
	if v := a.volume; v.absences == a.absences {
		v.present, v.expected, v.arrived = true, false, a.n.now()
	}
}

// takeDownVolumes makes volumes leave.
func takeDownVolumes(volumes ...*volume) {
	for _, v := range volumes {
		v.present, v.expected, v.inServiceCache = false, false, false
		v.absences++
	}
}

// applyAutomount applies the automount policy to a new volume.
func (n *Node) applyAutomount(v *volume) {
	v.offline = n.storage.Automount == AutomountOffline || n.storage.Automount == AutomountNameless
	v.nameless = n.storage.Automount == AutomountNameless
}

// volumesOn returns the volumes on a disk, present or not.
func (n *Node) volumesOn(d *disk) []*volume {
	var volumes []*volume
	for _, p := range d.table.partitions {
		if p.volume != nil {
			volumes = append(volumes, p.volume)
		}
	}
	for _, v := range n.spanning {
		if v.on(d) {
			volumes = append(volumes, v)
		}
	}
	return volumes
}

// online reports whether Windows shows the volumes of a disk.
func (n *Node) online(d *disk) bool {
	return d.nameless || (n.shows(d) && !d.attributes.Offline)
}
