package winsim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// AttachDisk attaches a disk and returns its number: m.Number, or the lowest free one if that is 0.
func (n *Node) AttachDisk(m Disk) (number uint32, err error) {
	defer n.lock()()
	return n.disks.attach("attach disk", m, func(*disk) {})
}

// attach attaches a disk after fill has given it content. mu is held.
func (m *disks) attach(op string, model Disk, fill func(*disk)) (number uint32, err error) {
	number = model.Number
	if number == 0 {
		number = m.freeNumber()
	}
	if m.attached(number) != nil {
		return 0, winerr.New(winerr.Exists, op, fmt.Sprint(number), "the number is in use; choose another")
	}
	d, problem := model.build(number)
	if problem != nil {
		return 0, winerr.As(winerr.Invalid, op, "", problem, "")
	}
	if m.devices[winpath.Fold(d.Path)] != nil {
		return 0, winerr.New(winerr.Exists, op, d.Path, "the path is in use")
	}
	if d.hanging != nil {
		m.hanging.Add(1)
	}
	fill(d)
	m.volumes.isNew(d)
	m.plug(d)
	return number, nil
}

func (m *disks) boot() {
	// They arrive one after the other, since a copy collides with the one before it.
	inModel := map[*disk]win.DiskAttributes{}
	for _, d := range m.byNumber {
		inModel[d] = d.attributes
		d.attributes.Offline = true
	}
	for _, d := range m.sorted() {
		d.attributes = inModel[d]
		d.attributes = m.arrivalState(d)
		d.relapses = m.storage.OfflineAgain
		if d.hanging != nil {
			m.hanging.Add(1)
		}
	}
}

// plug attaches a disk. mu is held.
func (m *disks) plug(d *disk) {
	d.generation = m.departures
	d.device = d.interfacePath()
	d.attributes = m.arrivalState(d)
	d.relapses = m.storage.OfflineAgain
	m.volumes.takeDown(d)
	if m.storage.AttachByRescan {
		m.unseen = append(m.unseen, d)
	} else {
		m.enumerate(d)
	}
}

// DetachDisk removes a disk without notifying Windows. ReattachDisk brings it back with its content.
func (n *Node) DetachDisk(number uint32) error {
	return n.disks.changeDisk("detach disk", number, func(d *disk) {
		n.disks.unplug(d)
		n.disks.detached = append(n.disks.detached, d)
	})
}

// unplug removes a disk. mu is held.
func (m *disks) unplug(d *disk) {
	m.release(d)
	m.unseen = slices.DeleteFunc(m.unseen, func(other *disk) bool { return other == d })
	m.volumes.takeDown(d)
	delete(m.byNumber, d.Number)
	for _, name := range d.names() {
		delete(m.devices, name)
	}
	m.departures++
}

// connect attaches the disk of an iSCSI session under the lowest free number, if it is not attached. mu is held.
func (m *disks) connect(d *disk, first bool) {
	if m.attached(d.Number) == d {
		return
	}
	m.forget(d)
	d.Number = m.freeNumber()
	if first {
		m.volumes.isNew(d)
	}
	m.plug(d)
}

// forget makes a disk none that can be reattached. mu is held.
func (m *disks) forget(d *disk) {
	m.detached = slices.DeleteFunc(m.detached, func(other *disk) bool { return other == d })
}

// disconnect removes a disk if it is attached. mu is held.
func (m *disks) disconnect(d *disk) {
	if m.attached(d.Number) == d {
		m.unplug(d)
	}
}

// shows reports whether Windows has found a disk. mu is held.
func (m *disks) shows(d *disk) bool { return m.byNumber[d.Number] == d }

// ReattachDisk attaches the disk last detached with this number, and returns its new number, the lowest free one.
func (n *Node) ReattachDisk(number uint32) (newNumber uint32, err error) {
	return n.reattach(fmt.Sprint(number), "this number", func(d *disk) bool { return d.Number == number })
}

// ReattachSerial is ReattachDisk for the disk with a serial number, which other disks do not get.
func (n *Node) ReattachSerial(serial string) (newNumber uint32, err error) {
	return n.reattach(serial, "this serial number", func(d *disk) bool { return d.Serial == serial })
}

func (n *Node) reattach(name, key string, wanted func(*disk) bool) (newNumber uint32, err error) {
	defer n.lock()()
	var d *disk
	for _, other := range n.disks.detached {
		if wanted(other) {
			d = other
		}
	}
	if d == nil {
		return 0, winerr.New(winerr.NotFound, "reattach disk", name, "no detached disk had %s", key)
	}
	if n.disks.devices[winpath.Fold(d.Path)] != nil {
		return 0, winerr.New(winerr.Exists, "reattach disk", d.Path, "the path is in use")
	}
	if other := n.disks.atAddress(d.SCSI); other != nil {
		return 0, winerr.New(winerr.Exists, "reattach disk", name, "disk %d is at its SCSI address; detach that disk first", other.Number)
	}
	n.disks.forget(d)
	d.Number = n.disks.freeNumber()
	n.disks.plug(d)
	return d.Number, nil
}

// GrowDisk enlarges a disk. Storage.CapacityFollows says when Windows sees it.
func (n *Node) GrowDisk(number uint32, size Size) error {
	const op = "grow disk"
	return n.disks.withDisk(op, number, func(d *disk) error {
		if int64(size) < d.size || !size.plausible() {
			return winerr.New(winerr.Invalid, op, fmt.Sprint(number), "%s is smaller than the disk or not a multiple of 4096 bytes", size)
		}
		n.disks.grow(d, int64(size))
		return nil
	})
}

// grow enlarges a disk unless it has that size. mu is held.
func (m *disks) grow(d *disk, size int64) {
	d.size = max(d.size, size)
	if m.storage.CapacityFollows == CapacityAtOnce {
		m.noticeSize(d)
	}
}

// here are the disks that are attached, including those that Windows does not see yet.
func (m *disks) here() []*disk {
	return append(slices.Collect(maps.Values(m.byNumber)), m.unseen...)
}

// attached finds a disk, including one that Windows does not see yet.
func (m *disks) attached(number uint32) *disk {
	if d := m.byNumber[number]; d != nil {
		return d
	}
	for _, d := range m.unseen {
		if d.Number == number {
			return d
		}
	}
	return nil
}

// atAddress finds the disk at a SCSI address, including one that Windows does not see yet.
func (m *disks) atAddress(address *SCSI) *disk {
	for _, d := range m.here() {
		if address != nil && d.SCSI != nil && *d.SCSI == *address {
			return d
		}
	}
	return nil
}

func (m *disks) freeNumber() uint32 {
	number := uint32(0)
	for m.attached(number) != nil {
		number++
	}
	return number
}

func noDisk(op string, number uint32) error {
	return winerr.New(winerr.NotFound, op, fmt.Sprint(number), "disk not found")
}

func (m *disks) newGUID() win.GUID {
	m.guids++
	return win.MustGUID(fmt.Sprintf("a%07x-0000-4000-8000-000000000000", m.guids))
}
