package winsim

import (
	"fmt"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// The methods below are what a storage backend does to a node. They are not counted as
// calls and no fault hits them.

// AttachDisk attaches a disk and returns its number: the one given, if it is not 0, or
// else the lowest that is free.
func (n *Node) AttachDisk(m Disk) (number uint32, err error) {
	n.lock()
	defer n.mu.Unlock()
	number = m.Number
	if number == 0 {
		number = n.freeNumber()
	}
	if n.attached(number) != nil {
		return 0, winerr.New(winerr.Exists, "attach disk", fmt.Sprint(number), "the number is in use")
	}
	d, problem := m.build(number)
	if problem != nil {
		return 0, winerr.As(winerr.Invalid, "attach disk", "", problem, "")
	}
	for _, v := range n.volumesOn(d) {
		n.applyAutomount(v)
	}
	n.plug(d)
	return number, nil
}

// plug connects a disk. n.mu is held.
func (n *Node) plug(d *disk) {
	n.changed()
	d.path = interfacePath(d.bus, d.number, n.departures)
	d.attributes = n.arrivalState(d)
	d.offlineAgain = n.storage.OfflineAgain
	takeDownVolumes(n.volumesOn(d)...)
	if n.storage.AttachByRescan {
		n.unseen = append(n.unseen, d)
	} else {
		n.enumerate(d)
	}
}

// DetachDisk takes a disk away, without a word to Windows, as a backend does. Its content
// is kept for ReattachDisk.
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

// unplug takes a disk away. n.mu is held.
func (n *Node) unplug(d *disk) {
	n.changed()
	n.unseen = slices.DeleteFunc(n.unseen, func(other *disk) bool { return other == d })
	takeDownVolumes(n.volumesOn(d)...)
	delete(n.disks, d.number)
	for _, name := range d.names() {
		delete(n.devices, name)
	}
	n.departures++
}

// ReattachDisk attaches again the disk that was last detached under a number, with its
// content. It gets the lowest number that is free.
func (n *Node) ReattachDisk(number uint32) (newNumber uint32, err error) {
	n.lock()
	defer n.mu.Unlock()
	d := n.detached[number]
	if d == nil {
		return 0, noDisk("reattach disk", number)
	}
	delete(n.detached, number)
	d.number = n.freeNumber()
	n.plug(d)
	return d.number, nil
}

// GrowDisk makes a disk larger. Windows sees it when the model's CapacityFollows says.
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

// grow makes a disk larger, if it is not. n.mu is held.
func (n *Node) grow(d *disk, size int64) {
	n.changed()
	d.size = max(d.size, size)
	if n.storage.CapacityFollows == CapacityAtOnce {
		n.noticeSize(d)
	}
}

// attached finds a disk, also one that Windows does not see yet.
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
