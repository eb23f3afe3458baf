package winlayout

import "encoding/binary"

// PropertyID is STORAGE_PROPERTY_ID, what IOCTL_STORAGE_QUERY_PROPERTY asks for.
// https://learn.microsoft.com/windows/win32/api/winioctl/ne-winioctl-storage_property_id
type PropertyID uint32

// The properties we ask for. The last one is declared in winioctl.h, but not documented.
const (
	DeviceProperty         PropertyID = 0  // StorageDeviceProperty
	DeviceIDProperty       PropertyID = 2  // StorageDeviceIdProperty
	DeviceLocationProperty PropertyID = 58 // StorageDeviceLocationProperty
)

// STORAGE_PROPERTY_QUERY; the query type that we use, PropertyStandardQuery, is 0.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-storage_property_query
const (
	queryProperty = 0
	querySize     = 12
)

// EncodePropertyQuery builds a STORAGE_PROPERTY_QUERY.
func EncodePropertyQuery(property PropertyID) []byte {
	b := make([]byte, querySize)
	binary.LittleEndian.PutUint32(b[queryProperty:], uint32(property))
	return b
}

// STORAGE_DESCRIPTOR_HEADER, with which every answer begins: a version, and the size of
// the whole descriptor.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-storage_descriptor_header
const (
	descriptorSize   = 4
	descriptorHeader = 8
)

// DescriptorSize returns how large the descriptor wants to be that b begins with, or 0. A
// driver whose answer does not fit says so only here.
func DescriptorSize(b []byte) int {
	if len(b) < descriptorHeader {
		return 0
	}
	return int(uint32At(b, descriptorSize))
}

// descriptor returns the part of b that the descriptor fills.
func descriptor(b []byte, fixed int, structure string) ([]byte, error) {
	if size := DescriptorSize(b); size < len(b) {
		b = b[:size]
	}
	return b, need(b, fixed, structure)
}

// noOffset is how some drivers say that a descriptor has no such text; 0 is the
// documented way.
const noOffset = 0xFFFFFFFF

// textAt returns what follows the offset that stands in b at field, or nothing if the
// descriptor has no such text.
func textAt(b []byte, field int) []byte {
	offset := uint32At(b, field)
	if offset == 0 || offset == noOffset || uint64(offset) >= uint64(len(b)) {
		return nil
	}
	return b[offset:]
}
