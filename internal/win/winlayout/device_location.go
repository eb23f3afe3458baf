package winlayout

import "strings"

// STORAGE_DEVICE_LOCATION_DESCRIPTOR: numbers that we do not use, and the offset of a
// text. It is declared in winioctl.h, but not documented.
const (
	locationStringOffset = 32
	locationFixed        = 36
)

// DecodeDeviceLocation reads the text of a STORAGE_DEVICE_LOCATION_DESCRIPTOR, which is
// empty if there is none. Nothing says whether it is ASCII or UTF-16; the second byte of
// a text in English tells.
func DecodeDeviceLocation(b []byte) (string, error) {
	b, err := descriptor(b, locationFixed, "STORAGE_DEVICE_LOCATION_DESCRIPTOR")
	if err != nil {
		return "", err
	}
	text := textAt(b, locationStringOffset)
	if len(text) < 2 || text[1] != 0 {
		return decodeASCII(text), nil
	}
	location, _, _ := strings.Cut(decodeUTF16(text), "\x00")
	return location, nil
}
