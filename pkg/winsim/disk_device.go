package winsim

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// The methods below implement the seam; internal/win documents them.

// DiskDevices lists the disks.
func (n storage) DiskDevices(_ context.Context) ([]win.Device, error) {
	n.lock()
	defer n.mu.Unlock()
	devices := make([]win.Device, 0, len(n.disks))
	for _, d := range n.sortedDisks() {
		devices = append(devices, win.Device(d.path))
	}
	return devices, nil
}

// DeviceNumber returns the disk and partition of a device.
func (n storage) DeviceNumber(_ context.Context, device win.Device) (win.DeviceNumber, error) {
	if isVolume(device) {
		return n.volumeNumber(device)
	}
	d, unlock, err := n.openFor(device)
	if err != nil {
		return win.DeviceNumber{}, err
	}
	defer unlock()
	return win.DeviceNumber{Type: win.DeviceTypeDisk, Number: d.number}, nil
}

// volumeNumber is DeviceNumber of a volume. For a volume that is not a single partition, the
// volume manager does not support the request.
func (n *Node) volumeNumber(device win.Device) (win.DeviceNumber, error) {
	v, unlock, err := n.openVolume(device)
	if err != nil {
		return win.DeviceNumber{}, err
	}
	defer unlock()
	if v.cdrom {
		return win.DeviceNumber{Type: win.DeviceTypeCDROM, Partition: 0xffffffff}, nil
	}
	p := v.partition()
	if p == nil {
		return win.DeviceNumber{}, winerr.InvalidFunction
	}
	return win.DeviceNumber{Type: win.DeviceTypeDisk, Number: v.extents[0].disk.number, Partition: p.Number}, nil
}

// DeviceDescriptor returns bus and serial number.
func (n storage) DeviceDescriptor(_ context.Context, device win.Device) (win.DeviceDescriptor, error) {
	d, unlock, err := n.openFor(device)
	if err != nil {
		return win.DeviceDescriptor{}, err
	}
	defer unlock()
	descriptor := d.descriptor
	for _, text := range []*string{&descriptor.Vendor, &descriptor.Product, &descriptor.Serial} {
		*text = strings.Trim(*text, " ")
	}
	return descriptor, nil
}

// DeviceIdentifiers lists the identifiers of page 83.
func (n storage) DeviceIdentifiers(_ context.Context, device win.Device) ([]win.DeviceIdentifier, error) {
	d, unlock, err := n.openFor(device)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if len(d.identifiers) == 0 {
		return nil, winerr.InvalidFunction // as for VHDs and USB sticks
	}
	identifiers := make([]win.DeviceIdentifier, len(d.identifiers))
	for i, identifier := range d.identifiers {
		identifier.Value = []byte(string(identifier.Value)) // the caller may keep and change it
		identifiers[i] = identifier
	}
	return identifiers, nil
}

// DeviceLocation returns the location of the disk as text.
func (n storage) DeviceLocation(_ context.Context, device win.Device) (string, error) {
	d, unlock, err := n.openFor(device)
	if err != nil {
		return "", err
	}
	defer unlock()
	if d.location == "" {
		return "", winerr.NotSupported
	}
	return d.location, nil
}

// SCSIAddress returns the address of the disk.
func (n storage) SCSIAddress(_ context.Context, device win.Device) (win.SCSIAddress, error) {
	d, unlock, err := n.openFor(device)
	if err != nil {
		return win.SCSIAddress{}, err
	}
	defer unlock()
	if d.scsi == nil {
		return win.SCSIAddress{}, winerr.NotSupported
	}
	a := d.scsi
	return win.SCSIAddress{Port: a.Port, Path: a.Path, Target: a.Target, LUN: a.LUN, BusNumber: a.BusNumber}, nil
}

// DiskGeometry returns the size that Windows sees.
func (n storage) DiskGeometry(_ context.Context, device win.Device) (win.DiskGeometry, error) {
	d, unlock, err := n.openFor(device)
	if err != nil {
		return win.DiskGeometry{}, err
	}
	defer unlock()
	return win.DiskGeometry{Size: d.visibleSize, BytesPerSector: uint32(d.sector)}, nil
}

// SANPolicy tells what happens to new disks.
func (n storage) SANPolicy(_ context.Context) (win.SANPolicy, error) {
	n.lock()
	defer n.mu.Unlock()
	switch n.storage.SANPolicy {
	case OfflineShared:
		return win.SANOfflineShared, nil
	case OfflineAll:
		return win.SANOfflineAll, nil
	default:
		return win.SANOnlineAll, nil
	}
}

// ReadDevice reads the bytes of a disk or volume. They do not include file contents.
func (n storage) ReadDevice(_ context.Context, device win.Device, offset int64, b []byte) error {
	if isVolume(device) {
		return n.readVolume(device, offset, b)
	}
	d, unlock, err := n.openFor(device)
	if err != nil {
		return err
	}
	defer unlock()
	return d.read(0, d.visibleSize, offset, b)
}

func (n *Node) readVolume(device win.Device, offset int64, b []byte) error {
	v, unlock, err := n.openVolume(device)
	if err != nil {
		return err
	}
	defer unlock()
	first := v.extents[0]
	if v.offline {
		return winerr.NotReady
	}
	return first.disk.read(first.offset, first.length, offset, b)
}

// read reads from the part of a disk at base.
func (d *disk) read(base, length, offset int64, b []byte) error {
	if offset < 0 || offset > length-int64(len(b)) || offset%d.sector != 0 || int64(len(b))%d.sector != 0 {
		return winerr.InvalidParameter
	}
	d.content.read(base+offset, b)
	return nil
}

// isVolume reports whether a device is a volume, not a disk.
func isVolume(device win.Device) bool {
	_, ok := win.ParseVolumeID(string(device))
	return ok || partitionDevice.MatchString(string(device))
}

var partitionDevice = regexp.MustCompile(`^(?i)\\\\\?\\GLOBALROOT\\Device\\Harddisk(\d{1,9})\\Partition(\d{1,9})$`)

// volumeAt finds a volume by its ID, or by disk and partition number. n.mu is held.
func (n *Node) volumeAt(device win.Device) *volume {
	numbers := partitionDevice.FindStringSubmatch(string(device))
	if numbers == nil {
		return n.volumeByID(string(device))
	}
	disk, _ := strconv.ParseUint(numbers[1], 10, 32) // at most nine digits
	partition, _ := strconv.ParseUint(numbers[2], 10, 32)
	if d := n.disks[uint32(disk)]; d != nil && partition > 0 && partition <= uint64(len(d.table.partitions)) {
		return d.table.partitions[partition-1].volume
	}
	return nil
}

// openFor opens a disk for a call. The caller unlocks.
func (n *Node) openFor(device win.Device) (_ *disk, unlock func(), _ error) {
	n.lock()
	d, err := n.openDisk(device)
	if err != nil {
		n.mu.Unlock()
		return nil, nil, err
	}
	return d, n.mu.Unlock, nil
}

// openVolume opens a volume's device for a call. The caller unlocks.
func (n *Node) openVolume(device win.Device) (_ *volume, unlock func(), _ error) {
	n.lock()
	v := n.volumeAt(device)
	if err := v.openError(); err != nil {
		n.mu.Unlock()
		return nil, nil, err
	}
	return v, n.mu.Unlock, nil
}
