package winlayout

// PropertyID is STORAGE_PROPERTY_ID, what IOCTL_STORAGE_QUERY_PROPERTY asks for.
// https://learn.microsoft.com/windows/win32/api/winioctl/ne-winioctl-storage_property_id
type PropertyID uint32

// The properties we ask for. The last one is declared in winioctl.h, but not documented.
const (
	DeviceProperty         PropertyID = 0  // StorageDeviceProperty
	DeviceIDProperty       PropertyID = 2  // StorageDeviceIdProperty
	DeviceLocationProperty PropertyID = 58 // StorageDeviceLocationProperty
)

// storagePropertyQuery is STORAGE_PROPERTY_QUERY; the query type that we use, PropertyStandardQuery, is 0.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-storage_property_query
type storagePropertyQuery struct {
	PropertyID           PropertyID
	QueryType            uint32
	AdditionalParameters byte
	_                    [3]byte
}

// EncodePropertyQuery builds a STORAGE_PROPERTY_QUERY.
func EncodePropertyQuery(property PropertyID) []byte {
	return encode(nil, storagePropertyQuery{PropertyID: property})
}

// storageDescriptorHeader is STORAGE_DESCRIPTOR_HEADER, the beginning of every answer. Size is that of the
// whole descriptor. It can be read alone (Wine's test_disk_query_property, dlls/kernel32/tests/volume.c).
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-storage_descriptor_header
type storageDescriptorHeader struct{ Version, Size uint32 }

// DescriptorSize returns the size that the descriptor at the beginning of b needs, or 0. A
// driver whose answer does not fit says so only here.
func DescriptorSize(b []byte) int {
	header, err := decode[storageDescriptorHeader](b, "")
	if err != nil {
		return 0
	}
	return int(header.Size)
}

// descriptor reads the beginning of a descriptor, and returns the part of b that it fills.
func descriptor[T any](b []byte, structure string) (T, []byte, error) {
	if size := DescriptorSize(b); size < len(b) {
		b = b[:size]
	}
	d, err := decode[T](b, structure)
	return d, b, err
}

// noOffset is what some drivers write if a descriptor has no such text; the documented value
// is 0.
const noOffset = 0xFFFFFFFF

// textAt returns b from an offset on, or nil if the descriptor has no such text.
func textAt(b []byte, offset uint32) []byte {
	if offset == 0 || offset == noOffset || uint64(offset) >= uint64(len(b)) {
		return nil
	}
	return b[offset:]
}
