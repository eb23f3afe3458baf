package winlayout

import "strings"

// storageDeviceLocation is STORAGE_DEVICE_LOCATION_DESCRIPTOR, with its DEVICE_LOCATION. It is declared in
// winioctl.h, but not documented.
type storageDeviceLocation struct {
	Version, Size               uint32
	Socket, Slot, Adapter, Port uint32
	Target, Lun                 uint32 // or Channel, Device
	StringOffset                uint32
}

// DecodeDeviceLocation returns the text of a STORAGE_DEVICE_LOCATION_DESCRIPTOR, which may be
// empty. It can be ASCII or UTF-16, and no field says which; in UTF-16 the second byte of an
// English text is 0.
func DecodeDeviceLocation(b []byte) (string, error) {
	d, b, err := descriptor[storageDeviceLocation](b, "STORAGE_DEVICE_LOCATION_DESCRIPTOR")
	if err != nil {
		return "", err
	}
	text := textAt(b, d.StringOffset)
	if len(text) < 2 || text[1] != 0 {
		return decodeASCII(text), nil
	}
	location, _, _ := strings.Cut(decodeUTF16(text), "\x00")
	return location, nil
}
