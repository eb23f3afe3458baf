package winsim

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win"

// Two disks with the same id, such as a restored snapshot beside its original, cannot both be
// online. Windows keeps the second one offline. When it is brought online and can be written to,
// Windows first gives it a new id, and new ids to its partitions. As long as it is read-only it
// stays offline, whatever is asked for.
// https://github.com/kubernetes-csi/csi-proxy/issues/287
// https://github.com/hpe-storage/common-host-libs/pull/40
// https://learn.microsoft.com/windows-server/storage/disk-management/troubleshooting-disk-management

// hasTwin reports whether another disk that is online has the id of d. mu is held.
func (m *disks) hasTwin(d *disk) bool {
	for _, other := range m.byNumber {
		if other != d && m.online(other) && other.table.sameID(d.table) {
			return true
		}
	}
	return false
}

// sameID reports whether Windows takes two tables for one. A disk without an id has no twin.
func (t table) sameID(other table) bool {
	switch {
	case t.style != other.style:
		return false
	case t.style == win.StyleGPT:
		return t.id == other.id && t.id != win.GUID{}
	case t.style == win.StyleMBR:
		return t.signature == other.signature && t.signature != 0
	default:
		return false
	}
}

// resolveCollision returns the attributes that a disk really gets, of those that are asked for.
// mu is held.
func (m *disks) resolveCollision(d *disk, wanted win.DiskAttributes) win.DiskAttributes {
	switch {
	case wanted.Offline || !m.hasTwin(d):
	case wanted.ReadOnly:
		wanted.Offline = true
	default:
		m.writeNewIDs(d)
	}
	return wanted
}

// writeNewIDs gives a disk, its partitions and its volumes new ids. mu is held.
func (m *disks) writeNewIDs(d *disk) {
	if d.table.style == win.StyleGPT {
		d.table.id = m.newGUID()
	} else {
		m.guids++
		d.table.signature = 0xe0000000 + m.guids
	}
	for _, p := range d.table.partitions {
		if d.table.style == win.StyleGPT {
			p.ID = m.newGUID()
		}
		if p.volume == nil {
			continue
		}
		m.volumes.rename(p.volume, d.volumeGUID(p).String())
	}
	d.writeTable()
}
