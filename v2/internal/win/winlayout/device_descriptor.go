package winlayout

import (
	"bytes"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// storageDeviceDescriptor is STORAGE_DEVICE_DESCRIPTOR up to RawDeviceProperties. The offsets of texts
// count from its start; the texts follow it.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-storage_device_descriptor
type storageDeviceDescriptor struct {
	Version, Size                             uint32
	DeviceType, DeviceTypeModifier            byte
	RemovableMedia, CommandQueueing           byte
	VendorIDOffset, ProductIDOffset           uint32
	ProductRevisionOffset, SerialNumberOffset uint32
	BusType                                   uint32
	RawPropertiesLength                       uint32
}

// DecodeDeviceDescriptor reads a STORAGE_DEVICE_DESCRIPTOR. A text is empty if the descriptor has
// none, or its offset leads out of the descriptor.
func DecodeDeviceDescriptor(b []byte) (win.DeviceDescriptor, error) {
	d, b, err := descriptor[storageDeviceDescriptor](b, "STORAGE_DEVICE_DESCRIPTOR")
	if err != nil {
		return win.DeviceDescriptor{}, err
	}
	text := func(offset uint32) string { return strings.Trim(decodeASCII(textAt(b, offset)), " ") }
	return win.DeviceDescriptor{
		BusType:   win.BusType(d.BusType),
		Removable: d.RemovableMedia != 0,
		Vendor:    text(d.VendorIDOffset),
		Product:   text(d.ProductIDOffset),
		Serial:    text(d.SerialNumberOffset),
	}, nil
}

// decodeASCII reads to the NUL or the end. Other bytes are read as Latin-1, as WMI does on
// most machines: gRPC needs valid UTF-8.
func decodeASCII(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	text := make([]rune, len(b))
	for i, c := range b {
		text[i] = rune(c)
	}
	return string(text)
}
