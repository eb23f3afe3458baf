package winlayout

import (
	"bytes"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// STORAGE_DEVICE_DESCRIPTOR: offsets to texts from the start of the descriptor, and the
// bus. The texts lie after the fixed part.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-storage_device_descriptor
const (
	deviceSerialOffset = 24
	deviceBusType      = 28
	deviceFixed        = 36 // RawDeviceProperties
)

// DecodeDeviceDescriptor reads a STORAGE_DEVICE_DESCRIPTOR. A serial number that is not
// there, or not within the descriptor, is empty.
func DecodeDeviceDescriptor(b []byte) (win.DeviceDescriptor, error) {
	b, err := descriptor(b, deviceFixed, "STORAGE_DEVICE_DESCRIPTOR")
	if err != nil {
		return win.DeviceDescriptor{}, err
	}
	return win.DeviceDescriptor{
		BusType: win.BusType(uint32At(b, deviceBusType)),
		Serial:  strings.Trim(decodeASCII(textAt(b, deviceSerialOffset)), " "),
	}, nil
}

// decodeASCII reads to the NUL or the end. What is not ASCII is taken for Latin-1, as
// WMI does in most of the world: a text must be valid UTF-8 to travel any further.
func decodeASCII(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	text := make([]rune, len(b))
	for i, c := range b {
		text[i] = rune(c)
	}
	return string(text)
}
