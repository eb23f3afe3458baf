package winlayout

import "strings"

// STORAGE_DEVICE_LOCATION_DESCRIPTOR is declared in winioctl.h, but not documented.
//
//	typedef struct _DEVICE_LOCATION {
//	  DWORD Socket;
//	  DWORD Slot;
//	  DWORD Adapter;
//	  DWORD Port;
//	  union {
//	    struct {
//	      DWORD Channel;
//	      DWORD Device;
//	    };
//	    struct {
//	      DWORD Target;
//	      DWORD Lun;
//	    };
//	  };
//	} DEVICE_LOCATION;
//
//	typedef struct _STORAGE_DEVICE_LOCATION_DESCRIPTOR {
//	  DWORD           Version;
//	  DWORD           Size;
//	  DEVICE_LOCATION Location;
//	  DWORD           StringOffset;
//	} STORAGE_DEVICE_LOCATION_DESCRIPTOR;
const (
	locationStringOffset = 32
	locationFixed        = 36
)

// DecodeDeviceLocation returns the text of a STORAGE_DEVICE_LOCATION_DESCRIPTOR, which may be
// empty. It can be ASCII or UTF-16, and no field says which; in UTF-16 the second byte of an
// English text is 0.
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
