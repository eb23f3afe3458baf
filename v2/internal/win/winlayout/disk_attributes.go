package winlayout

import (
	"encoding/binary"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// DISK_ATTRIBUTE_OFFLINE and DISK_ATTRIBUTE_READ_ONLY. We change no others.
const (
	attributeDiskOffline  = 1
	attributeDiskReadOnly = 2
)

// getDiskAttributes is GET_DISK_ATTRIBUTES.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-get_disk_attributes
type getDiskAttributes struct {
	Version, Reserved1 uint32
	Attributes         uint64
}

// DiskAttributesSize is how much IOCTL_DISK_GET_DISK_ATTRIBUTES answers.
var DiskAttributesSize = binary.Size(getDiskAttributes{})

// DecodeDiskAttributes reads a GET_DISK_ATTRIBUTES.
func DecodeDiskAttributes(b []byte) (win.DiskAttributes, error) {
	a, err := decode[getDiskAttributes](b, "GET_DISK_ATTRIBUTES")
	return win.DiskAttributes{
		Offline:  a.Attributes&attributeDiskOffline != 0,
		ReadOnly: a.Attributes&attributeDiskReadOnly != 0,
	}, err
}

// setDiskAttributes is SET_DISK_ATTRIBUTES. Version is its own size, as the header says and published
// code does; the documentation names another structure.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-set_disk_attributes
type setDiskAttributes struct {
	Version                    uint32
	Persist                    bool
	Reserved1                  [3]byte
	Attributes, AttributesMask uint64
	Reserved2                  [4]uint32
}

// EncodeDiskAttributes builds a SET_DISK_ATTRIBUTES that gives the attributes in mask the
// value they have in attributes, across restarts: otherwise the disks of pods would be offline
// after a restart.
func EncodeDiskAttributes(attributes, mask win.DiskAttributes) []byte {
	bits := attributeBits(mask)
	const size = 40
	return encode(nil, setDiskAttributes{Version: size, Persist: true, Attributes: attributeBits(attributes) & bits, AttributesMask: bits})
}

func attributeBits(attributes win.DiskAttributes) (bits uint64) {
	if attributes.Offline {
		bits |= attributeDiskOffline
	}
	if attributes.ReadOnly {
		bits |= attributeDiskReadOnly
	}
	return bits
}
