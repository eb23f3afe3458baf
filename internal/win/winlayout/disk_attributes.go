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

// GET_DISK_ATTRIBUTES
//
//	typedef struct _GET_DISK_ATTRIBUTES {
//	  DWORD     Version;
//	  DWORD     Reserved1;
//	  DWORDLONG Attributes;
//	} GET_DISK_ATTRIBUTES;
//
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-get_disk_attributes
const (
	getAttributes     = 8
	getAttributesSize = 16
)

// DiskAttributesSize is how much IOCTL_DISK_GET_DISK_ATTRIBUTES answers.
const DiskAttributesSize = getAttributesSize

// DecodeDiskAttributes reads a GET_DISK_ATTRIBUTES.
func DecodeDiskAttributes(b []byte) (win.DiskAttributes, error) {
	if err := need(b, getAttributesSize, "GET_DISK_ATTRIBUTES"); err != nil {
		return win.DiskAttributes{}, err
	}
	bits := binary.LittleEndian.Uint64(b[getAttributes:])
	return win.DiskAttributes{
		Offline:  bits&attributeDiskOffline != 0,
		ReadOnly: bits&attributeDiskReadOnly != 0,
	}, nil
}

// SET_DISK_ATTRIBUTES. Version is its own size, as the header says and published code does;
// the documentation names another structure.
//
//	typedef struct _SET_DISK_ATTRIBUTES {
//	  DWORD     Version;
//	  BOOLEAN   Persist;
//	  BYTE      Reserved1[3];
//	  DWORDLONG Attributes;
//	  DWORDLONG AttributesMask;
//	  DWORD     Reserved2[4];
//	} SET_DISK_ATTRIBUTES;
//
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-set_disk_attributes
const (
	setAttributesVersion = 0
	setAttributesPersist = 4
	setAttributes        = 8
	setAttributesMask    = 16
	setAttributesSize    = 40
)

// EncodeDiskAttributes builds a SET_DISK_ATTRIBUTES that gives the attributes in mask the
// value they have in attributes, across restarts: otherwise the disks of pods would be offline
// after a restart.
func EncodeDiskAttributes(attributes, mask win.DiskAttributes) []byte {
	b := make([]byte, setAttributesSize)
	binary.LittleEndian.PutUint32(b[setAttributesVersion:], setAttributesSize)
	b[setAttributesPersist] = 1
	bits := attributeBits(mask)
	binary.LittleEndian.PutUint64(b[setAttributes:], attributeBits(attributes)&bits)
	binary.LittleEndian.PutUint64(b[setAttributesMask:], bits)
	return b
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
