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
//
//	typedef struct _STORAGE_PROPERTY_QUERY {
//	  STORAGE_PROPERTY_ID PropertyId;
//	  STORAGE_QUERY_TYPE  QueryType;
//	  BYTE                AdditionalParameters[1];
//	} STORAGE_PROPERTY_QUERY;
//
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

// STORAGE_DESCRIPTOR_HEADER is the beginning of every answer. Size is that of the whole
// descriptor.
//
//	typedef struct _STORAGE_DESCRIPTOR_HEADER {
//	  DWORD Version;
//	  DWORD Size;
//	} STORAGE_DESCRIPTOR_HEADER;
//
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-storage_descriptor_header
const (
	descriptorSize   = 4
	descriptorHeader = 8
)

// DescriptorSize returns the size that the descriptor at the beginning of b needs, or 0. A
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

// noOffset is what some drivers write if a descriptor has no such text; the documented value
// is 0.
const noOffset = 0xFFFFFFFF

// textAt returns b from the offset on that the field holds, or nil if the descriptor has no
// such text.
func textAt(b []byte, field int) []byte {
	offset := uint32At(b, field)
	if offset == 0 || offset == noOffset || uint64(offset) >= uint64(len(b)) {
		return nil
	}
	return b[offset:]
}
