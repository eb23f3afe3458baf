package winsim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// The methods below act as the storage backend. They do not count as calls, and faults do not
// affect them.

// AttachDisk attaches a disk and returns its number: m.Number, or if that is 0 the lowest free
// number.
func (n *Node) AttachDisk(m Disk) (number uint32, err error) {
	n.lock()
	defer n.mu.Unlock()
	return n.attach("attach disk", m, func(*disk) {})
}

// attach attaches a disk after fill has changed its content. n.mu is held.
func (n *Node) attach(op string, m Disk, fill func(*disk)) (number uint32, err error) {
	number = m.Number
	if number == 0 {
		number = n.freeNumber()
	}
	if n.attached(number) != nil {
		return 0, winerr.New(winerr.Exists, op, fmt.Sprint(number), "the number is in use; choose another")
	}
	d, problem := m.build(number)
	if problem != nil {
		return 0, winerr.As(winerr.Invalid, op, "", problem, "")
	}
	if n.devices[winpath.Fold(d.slot)] != nil {
		return 0, winerr.New(winerr.Exists, op, d.slot, "the path is in use")
	}
	fill(d)
	if d.hanging != nil {
		n.hanging.Add(1)
	}
	for _, v := range n.volumesOn(d) {
		n.applyAutomount(v)
	}
	n.plug(d)
	return number, nil
}

// plug attaches a disk. n.mu is held.
func (n *Node) plug(d *disk) {
	n.changed()
	d.path = d.interfacePath(n.departures)
	d.attributes = n.arrivalState(d)
	d.offlineAgain = n.storage.OfflineAgain
	takeDownVolumes(n.volumesOn(d)...)
	if n.storage.AttachByRescan {
		n.unseen = append(n.unseen, d)
	} else {
		n.enumerate(d)
	}
}

// DetachDisk removes a disk without telling Windows, as a backend does. ReattachDisk brings it
// back with its content.
func (n *Node) DetachDisk(number uint32) error {
	n.lock()
	defer n.mu.Unlock()
	d := n.attached(number)
	if d == nil {
		return noDisk("detach disk", number)
	}
	n.unplug(d)
	n.detached[number] = d
	return nil
}

// unplug removes a disk. n.mu is held.
func (n *Node) unplug(d *disk) {
	n.changed()
	n.release(d)
	n.unseen = slices.DeleteFunc(n.unseen, func(other *disk) bool { return other == d })
	takeDownVolumes(n.volumesOn(d)...)
	delete(n.disks, d.number)
	for _, name := range d.names() {
		delete(n.devices, name)
	}
	n.departures++
}

// connect attaches the disk of an iSCSI session under the lowest free number, if it is not attached. n.mu is held.
func (n *Node) connect(d *disk, first bool) {
	if n.attached(d.number) == d {
		return
	}
	d.number = n.freeNumber()
	if first {
		for _, v := range n.volumesOn(d) {
			n.applyAutomount(v)
		}
	}
	n.plug(d)
}

// disconnect removes a disk if it is attached. n.mu is held.
func (n *Node) disconnect(d *disk) {
	if n.attached(d.number) == d {
		n.unplug(d)
	}
}

// shows reports whether Windows has found a disk. n.mu is held.
func (n *Node) shows(d *disk) bool { return n.disks[d.number] == d }

// ReattachDisk attaches the disk last detached with this number, with its content. It returns
// the new number, the lowest free one.
func (n *Node) ReattachDisk(number uint32) (newNumber uint32, err error) {
	n.lock()
	defer n.mu.Unlock()
	d := n.detached[number]
	if d == nil {
		return 0, noDisk("reattach disk", number)
	}
	if n.devices[winpath.Fold(d.slot)] != nil {
		return 0, winerr.New(winerr.Exists, "reattach disk", d.slot, "the path is in use")
	}
	if other := n.atAddress(d.scsi); other != nil {
		return 0, winerr.New(winerr.Exists, "reattach disk", fmt.Sprint(number), "disk %d is at its SCSI address; detach that disk first", other.number)
	}
	delete(n.detached, number)
	d.number = n.freeNumber()
	n.plug(d)
	return d.number, nil
}

// GrowDisk enlarges a disk. Storage.CapacityFollows says when Windows sees the new size.
func (n *Node) GrowDisk(number uint32, size Size) error {
	n.lock()
	defer n.mu.Unlock()
	d := n.attached(number)
	switch {
	case d == nil:
		return noDisk("grow disk", number)
	case int64(size) < d.size || !size.plausible():
		return winerr.New(winerr.Invalid, "grow disk", fmt.Sprint(number), "%s is smaller than the disk or not a multiple of 4096 bytes", size)
	}
	n.grow(d, int64(size))
	return nil
}

// grow enlarges a disk unless it has that size. n.mu is held.
func (n *Node) grow(d *disk, size int64) {
	n.changed()
	d.size = max(d.size, size)
	if n.storage.CapacityFollows == CapacityAtOnce {
		n.noticeSize(d)
	}
}

// attached finds a disk, including one that Windows does not see yet.
func (n *Node) attached(number uint32) *disk {
	if d := n.disks[number]; d != nil {
		return d
	}
	for _, d := range n.unseen {
		if d.number == number {
			return d
		}
	}
	return nil
}

// atAddress finds the disk at a SCSI address, including one that Windows does not see yet.
func (n *Node) atAddress(address *SCSI) *disk {
	if address == nil {
		return nil
	}
	for _, d := range slices.Concat(slices.Collect(maps.Values(n.disks)), n.unseen) {
		if d.scsi != nil && *d.scsi == *address {
			return d
		}
	}
	return nil
}

func (n *Node) freeNumber() uint32 {
	number := uint32(0)
	for n.attached(number) != nil {
		number++
	}
	return number
}

func noDisk(op string, number uint32) error {
	return winerr.New(winerr.NotFound, op, fmt.Sprint(number), "disk not found")
}
