package devices

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/exchange"
)

// Control codes, in the numbers of winioctl.h. They are not taken from internal/win/winapi:
// that it has them right is one of the things to be shown.
// https://learn.microsoft.com/windows/win32/api/winioctl/
const (
	scsiGetAddress       = 0x00041018
	diskGetLayout        = 0x00070050
	diskSetLayout        = 0x0007C054
	diskCreate           = 0x0007C058
	diskGetGeometry      = 0x000700A0
	diskUpdateSize       = 0x0007C0C8
	diskGrowPartition    = 0x0007C0D0
	diskGetAttributes    = 0x000700F0
	diskSetAttributes    = 0x0007C0F4
	diskUpdateProperties = 0x00070140
	storageDeviceNumber  = 0x002D1080
	storageQueryProperty = 0x002D1400
)

type disk struct {
	machine *winsim.Node
	device  win.Device
}

func (d disk) answer(ctx context.Context, r exchange.Request) ([]byte, error) {
	switch r.Function {
	case exchange.Control:
		return d.control(ctx, r)
	case exchange.Read:
		return read(ctx, d.machine, d.device, r)
	case exchange.Write:
		return nil, d.write(ctx, r)
	default:
		return nil, winerr.InvalidFunction
	}
}

func (d disk) write(ctx context.Context, r exchange.Request) error {
	number, err := d.machine.DeviceNumber(ctx, d.device)
	if err != nil {
		return err
	}
	return d.machine.WriteDisk(number.Number, r.Offset, r.Data)
}

func (d disk) control(ctx context.Context, r exchange.Request) ([]byte, error) {
	m := d.machine
	switch r.Code {
	case storageDeviceNumber:
		return whole(r, encodeDeviceNumber)(m.DeviceNumber(ctx, d.device))
	case storageQueryProperty:
		return d.property(ctx, r)
	case scsiGetAddress:
		return whole(r, encodeSCSIAddress)(m.SCSIAddress(ctx, d.device))
	case diskGetGeometry:
		return whole(r, encodeDiskGeometry)(m.DiskGeometry(ctx, d.device))
	case diskGetAttributes:
		return whole(r, encodeDiskAttributes)(m.DiskAttributes(ctx, d.device))
	case diskGetLayout:
		layout, err := m.DriveLayout(ctx, d.device)
		if err != nil {
			return nil, err
		}
		b, err := encodeDriveLayout(layout)
		return whole(r, same)(b, err)
	case diskSetAttributes:
		attributes, mask, err := decodeSetDiskAttributes(r.Data)
		if err != nil {
			return nil, err
		}
		return nil, m.SetDiskAttributes(ctx, d.device, attributes, mask)
	case diskSetLayout:
		layout, err := decodeSetDriveLayout(r.Data)
		if err != nil {
			return nil, err
		}
		return nil, m.SetDriveLayout(ctx, d.device, layout)
	case diskCreate:
		id, err := decodeCreateDisk(r.Data)
		if err != nil {
			return nil, err
		}
		return nil, m.CreateDisk(ctx, d.device, id)
	case diskGrowPartition:
		partition, bytes, err := decodeGrowPartition(r.Data)
		if err != nil {
			return nil, err
		}
		return nil, m.GrowPartition(ctx, d.device, partition, bytes)
	case diskUpdateProperties:
		return nil, m.UpdateDisk(ctx, d.device)
	case diskUpdateSize:
		if err := m.UpdateDriveSize(ctx, d.device); err != nil {
			return nil, err
		}
		geometry, err := m.DiskGeometry(ctx, d.device)
		return whole(r, func(g win.DiskGeometry) []byte { return encodeDiskGeometry(g)[:24] })(geometry, err)
	default:
		return nil, winerr.InvalidFunction
	}
}

// property is answered as far as there is room; the header says how much is missing.
func (d disk) property(ctx context.Context, r exchange.Request) ([]byte, error) {
	id, err := decodePropertyQuery(r.Data)
	if err != nil {
		return nil, err
	}
	switch id {
	case winlayout.DeviceProperty:
		return some(r, encodeDeviceDescriptor)(d.machine.DeviceDescriptor(ctx, d.device))
	case winlayout.DeviceIDProperty:
		return some(r, encodeDeviceIdentifiers)(d.machine.DeviceIdentifiers(ctx, d.device))
	case winlayout.DeviceLocationProperty:
		return some(r, encodeDeviceLocation)(d.machine.DeviceLocation(ctx, d.device))
	default:
		return nil, winerr.NotSupported
	}
}

// whole encodes an answer for which there must be room.
func whole[T any](r exchange.Request, encode func(T) []byte) func(T, error) ([]byte, error) {
	return func(value T, err error) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		b := encode(value)
		if len(b) > r.Room {
			return nil, winerr.InsufficientBuffer
		}
		return b, nil
	}
}

// some encodes an answer, and cuts it off where the room ends.
func some[T any](r exchange.Request, encode func(T) []byte) func(T, error) ([]byte, error) {
	return func(value T, err error) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		b := encode(value)
		return b[:min(len(b), r.Room)], nil
	}
}

func same(b []byte) []byte { return b }

func read(ctx context.Context, m win.Machine, device win.Device, r exchange.Request) ([]byte, error) {
	return m.ReadDevice(ctx, device, r.Offset, r.Room)
}
