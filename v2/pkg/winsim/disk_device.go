package winsim

import (
	"context"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// The methods below implement the seam; internal/win documents them.

func (m *disks) DiskDevices(_ context.Context) ([]win.Device, error) { return m.list(false) }

func (m *disks) HiddenDiskDevices(_ context.Context) ([]win.Device, error) { return m.list(true) }

func (m *disks) list(hidden bool) ([]win.Device, error) {
	defer m.lock()()
	devices := make([]win.Device, 0, len(m.byNumber))
	for _, d := range m.sorted() {
		if d.Hidden == hidden {
			devices = append(devices, win.Device(d.device))
		}
	}
	return devices, nil
}

func (m *disks) DeviceDescriptor(_ context.Context, device win.Device) (win.DeviceDescriptor, error) {
	return read(m.onDisk, device, func(d *disk) (win.DeviceDescriptor, error) {
		return win.DeviceDescriptor{
			BusType: busTypes[d.Bus], Removable: d.NoMedium, Vendor: strings.Trim(d.Vendor, " "), Product: strings.Trim(d.Product, " "), Serial: strings.Trim(d.Serial, " "),
		}, nil
	})
}

func (m *disks) DeviceIdentifiers(_ context.Context, device win.Device) ([]win.DeviceIdentifier, error) {
	return read(m.onDisk, device, func(d *disk) ([]win.DeviceIdentifier, error) {
		if len(d.identifiers) == 0 {
			return nil, winerr.InvalidFunction // as for VHDs and USB sticks
		}
		identifiers := make([]win.DeviceIdentifier, len(d.identifiers))
		for i, identifier := range d.identifiers {
			identifier.Value = []byte(string(identifier.Value)) // the caller may keep and change it
			identifiers[i] = identifier
		}
		return identifiers, nil
	})
}

func (m *disks) DeviceLocation(_ context.Context, device win.Device) (string, error) {
	return read(m.onDisk, device, func(d *disk) (string, error) {
		if d.Location == "" {
			return "", winerr.NotSupported
		}
		return d.Location, nil
	})
}

func (m *disks) SCSIAddress(_ context.Context, device win.Device) (win.SCSIAddress, error) {
	return read(m.onDisk, device, func(d *disk) (win.SCSIAddress, error) {
		if d.SCSI == nil {
			return win.SCSIAddress{}, winerr.NotSupported
		}
		a := d.SCSI
		return win.SCSIAddress{Port: a.Port, Path: a.Path, Target: a.Target, LUN: a.LUN, BusNumber: a.BusNumber}, nil
	})
}

func (m *disks) DiskGeometry(_ context.Context, device win.Device) (win.DiskGeometry, error) {
	return read(m.onDisk, device, func(d *disk) (win.DiskGeometry, error) {
		return win.DiskGeometry{Size: d.visibleSize, BytesPerSector: uint32(d.sector)}, d.mediumError()
	})
}

func (m *disks) SANPolicy(_ context.Context) (win.SANPolicy, error) {
	defer m.lock()()
	return sanPolicies[m.storage.SANPolicy], nil
}

var sanPolicies = map[SANPolicy]win.SANPolicy{
	"": win.SANOnlineAll, OnlineAll: win.SANOnlineAll, OfflineShared: win.SANOfflineShared, OfflineAll: win.SANOfflineAll,
}

func (d *disk) read(base, length, offset int64, b []byte) error {
	if offset < 0 || offset > length-int64(len(b)) || offset%d.sector != 0 || int64(len(b))%d.sector != 0 {
		return winerr.InvalidParameter
	}
	d.content.read(base+offset, b)
	return nil
}

// onDisk runs a call that needs nothing of the medium, such as those of fromMemory.
func (m *disks) onDisk(device win.Device, do func(*disk) error) error {
	defer m.lock()()
	d := m.diskOf(device)
	if d == nil {
		return winerr.FileNotFound
	}
	return do(d)
}

// onMedium runs a call that reads or writes the disk.
func (m *disks) onMedium(device win.Device, do func(*disk) error) error {
	return m.onDisk(device, func(d *disk) error {
		if err := d.contentError(); err != nil {
			return err
		}
		return do(d)
	})
}

// contentError returns the error of any access to what is on the disk.
func (d *disk) contentError() error {
	if d.Dying {
		return winerr.IODevice
	}
	return d.mediumError()
}

// mediumError is the answer of a reader without a medium. Q-no-media in test/windows asks.
func (d *disk) mediumError() error {
	if d.NoMedium {
		return winerr.NotReady
	}
	return nil
}
