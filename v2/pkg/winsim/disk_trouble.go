package winsim

import (
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// fromMemory are the calls that Windows answers without the disk, also while it fails or hangs: its drivers remember
// what they have learned when the disk and its volumes arrived.
//
//   - The number was "assigned to a device by the driver when the device is started":
//     https://learn.microsoft.com/windows-hardware/drivers/ddi/ntddstor/ni-ntddstor-ioctl_storage_get_device_number
//   - The port driver keeps what a disk says of itself from the time when it enumerates it:
//     https://learn.microsoft.com/windows-hardware/drivers/ddi/ntddstor/ni-ntddstor-ioctl_storage_query_property
//   - The partition manager has a "cached partition table" until IOCTL_DISK_UPDATE_PROPERTIES, and the attributes:
//     https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_disk_update_properties
//   - The volume manager knows where volumes lie, and the mount manager where they are mounted:
//     https://learn.microsoft.com/windows-hardware/drivers/storage/supporting-mount-manager-requests-in-a-storage-class-driver
//
// No page promises it of page 83 and of the size. Q-failing-disk in test/windows asks.
var fromMemory = map[string]bool{
	"DeviceNumber": true, "DeviceDescriptor": true, "DeviceIdentifiers": true, "DeviceLocation": true, "SCSIAddress": true,
	"DiskGeometry": true, "DiskAttributes": true, "DriveLayout": true, "VolumeExtents": true, "VolumePaths": true,
	"UpdateDisk": true, // it makes the drivers forget, and Windows reads the table later
}

// FailDisk makes every request to what is on a disk fail with ERROR_IO_DEVICE (1117), until HealDisk.
func (n *Node) FailDisk(number uint32) error {
	return n.disks.changeDisk("fail disk", number, func(d *disk) { d.Dying = true })
}

// HangDisk makes every request to what is on a disk, and to the files on it, wait until HealDisk. It is carried out then,
// also if its caller has left, as on Windows.
func (n *Node) HangDisk(number uint32) error {
	return n.disks.changeDisk("hang disk", number, n.disks.hang)
}

// hang makes the requests to a disk wait. mu is held.
func (m *disks) hang(d *disk) {
	if d.hanging == nil {
		d.hanging = make(chan struct{})
		m.hanging.Add(1)
	}
}

// HealDisk ends FailDisk and HangDisk. Requests that wait continue.
func (n *Node) HealDisk(number uint32) error {
	return n.disks.changeDisk("heal disk", number, func(d *disk) {
		d.Dying = false
		n.disks.release(d)
	})
}

// release lets the requests that wait for a hanging disk continue. mu is held.
func (m *disks) release(d *disk) {
	if d.hanging != nil {
		close(d.hanging)
		d.hanging = nil
		m.hanging.Add(-1)
	}
}

// withDisk runs do for a disk that is attached, also if Windows does not see it yet.
func (m *disks) withDisk(op string, number uint32, do func(*disk) error) error {
	defer m.lock()()
	d := m.attached(number)
	if d == nil {
		return noDisk(op, number)
	}
	return do(d)
}

func (m *disks) changeDisk(op string, number uint32, change func(*disk)) error {
	return m.withDisk(op, number, func(d *disk) error {
		change(d)
		return nil
	})
}

// aborted is ERROR_OPERATION_ABORTED, the answer to requests that a restart ends.
const aborted winerr.Code = 995

// awaitDisk waits while the disk of a call's object hangs. A restart of the node ends the call.
func (n *Node) awaitDisk(c *win.Call, restarted <-chan struct{}) error {
	for hanging := n.hangsAt(c); hanging != nil; hanging = n.hangsAt(c) {
		select {
		case <-hanging:
			if c.Resumed != nil {
				c.Resumed()
			}
		case <-restarted:
			return aborted
		}
	}
	return nil
}

// hangsAt returns what a call waits for, because the disk of its object hangs, or nil.
func (n *Node) hangsAt(c *win.Call) <-chan struct{} {
	if n.disks.hanging.Load() == 0 || fromMemory[c.Method] {
		return nil
	}
	objects, follow := n.objectsOf(c), follows(c)
	defer n.lock()()
	for _, object := range objects {
		if hanging := n.hangingAt(object, follow); hanging != nil {
			return hanging
		}
	}
	return nil
}

// follows reports whether a call reaches what is behind a mounted folder.
func follows(c *win.Call) bool {
	args := c.Args()
	if len(args) == 0 {
		return false
	}
	path, ok := args[0].Value.(win.Path)
	return ok && (path.Rest == "" || c.Method == "TargetInfo")
}

// hangingAt returns what a request to an object, a device, volume or file, waits for, or nil.
// mu is held.
func (n *Node) hangingAt(object string, follow bool) <-chan struct{} {
	if d := n.disks.diskOf(win.Device(object)); d != nil {
		return d.hanging
	}
	v := n.volumes.volumeByID(object)
	if v == nil {
		at, err := n.files.walk(object, follow)
		if err != nil {
			return nil
		}
		v = at.volume
	}
	for _, e := range v.extents {
		if e.disk != nil && e.disk.hanging != nil {
			return e.disk.hanging
		}
	}
	return nil
}
