package winlayout

import (
	"bytes"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// STORAGE_DEVICE_DESCRIPTOR: the offsets of texts count from its start; the texts follow it.
//
//	typedef struct _STORAGE_DEVICE_DESCRIPTOR {
//	  DWORD            Version;
//	  DWORD            Size;
//	  BYTE             DeviceType;
//	  BYTE             DeviceTypeModifier;
//	  BOOLEAN          RemovableMedia;
//	  BOOLEAN          CommandQueueing;
//	  DWORD            VendorIdOffset;
//	  DWORD            ProductIdOffset;
//	  DWORD            ProductRevisionOffset;
//	  DWORD            SerialNumberOffset;
//	  STORAGE_BUS_TYPE BusType;
//	  DWORD            RawPropertiesLength;
//	  BYTE             RawDeviceProperties[1];
//	} STORAGE_DEVICE_DESCRIPTOR;
//
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-storage_device_descriptor
const (
	deviceVendorOffset  = 12
	deviceProductOffset = 16
	deviceSerialOffset  = 24
	deviceBusType       = 28
	deviceFixed         = 36 // RawDeviceProperties
)

// DecodeDeviceDescriptor reads a STORAGE_DEVICE_DESCRIPTOR. A text is empty if the descriptor has
// none, or its offset leads out of the descriptor.
func DecodeDeviceDescriptor(b []byte) (win.DeviceDescriptor, error) {
	b, err := descriptor(b, deviceFixed, "STORAGE_DEVICE_DESCRIPTOR")
	if err != nil {
		return win.DeviceDescriptor{}, err
	}
	text := func(field int) string { return strings.Trim(decodeASCII(textAt(b, field)), " ") }
	return win.DeviceDescriptor{
		BusType: win.BusType(uint32At(b, deviceBusType)),
		Vendor:  text(deviceVendorOffset),
		Product: text(deviceProductOffset),
		Serial:  text(deviceSerialOffset),
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
