package devices

import (
	"encoding/binary"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// What drivers answer. internal/win/winlayout reads these structures, and says where they are
// documented; the tests let it read what is written here.

var le = binary.LittleEndian

// pack lays values of fixed size one behind the other, without alignment.
func pack(values ...any) (b []byte) {
	for _, value := range values {
		b, _ = binary.Append(b, le, value) // fails only for other types
	}
	return b
}

func encodeDeviceNumber(n win.DeviceNumber) []byte {
	return pack(uint32(n.Type), n.Number, n.Partition)
}

// encodeDeviceDescriptor builds a STORAGE_DEVICE_DESCRIPTOR, with the texts behind it.
func encodeDeviceDescriptor(d win.DeviceDescriptor) []byte {
	const fixed = 40
	b := make([]byte, fixed)
	text := func(field int, value string) {
		if value != "" {
			le.PutUint32(b[field:], uint32(len(b)))
			b = append(append(b, value...), 0)
		}
	}
	if d.Removable {
		b[10] = 1 // RemovableMedia
	}
	b[11] = 1 // CommandQueueing
	le.PutUint32(b[28:], uint32(d.BusType))
	text(12, d.Vendor)
	text(16, d.Product)
	text(24, d.Serial)
	return describe(b, fixed)
}

// encodeDeviceIdentifiers builds a STORAGE_DEVICE_ID_DESCRIPTOR. Each identifier begins at
// a multiple of four.
func encodeDeviceIdentifiers(identifiers []win.DeviceIdentifier) []byte {
	const first, value = 12, 16
	b := make([]byte, first)
	le.PutUint32(b[8:], uint32(len(identifiers)))
	for i, identifier := range identifiers {
		size := (value + len(identifier.Value) + 3) &^ 3
		next := size
		if i == len(identifiers)-1 {
			next = 0
		}
		entry := pack(uint32(identifier.CodeSet), uint32(identifier.Type), uint16(len(identifier.Value)), uint16(next), identifier.Association, identifier.Value)
		b = append(b, append(entry, make([]byte, size-len(entry))...)...)
	}
	return describe(b, len(b))
}

// encodeDeviceLocation builds a STORAGE_DEVICE_LOCATION_DESCRIPTOR.
func encodeDeviceLocation(location string) []byte {
	const fixed = 36
	b := make([]byte, fixed)
	le.PutUint32(b[32:], fixed)
	return describe(append(append(b, location...), 0), fixed)
}

// describe fills in the STORAGE_DESCRIPTOR_HEADER: the version is the size without what
// varies.
func describe(b []byte, version int) []byte {
	le.PutUint32(b[0:], uint32(version))
	le.PutUint32(b[4:], uint32(len(b)))
	return b
}

func encodeSCSIAddress(a win.SCSIAddress) []byte {
	return pack(uint32(8), a.Port, a.Path, a.Target, a.LUN)
}

// encodeDiskGeometry builds a DISK_GEOMETRY_EX without the data behind it.
func encodeDiskGeometry(g win.DiskGeometry) []byte {
	const tracks, sectors, fixedMedia = 255, 63, 12
	cylinders := uint64(g.Size) / (uint64(g.BytesPerSector) * tracks * sectors)
	return pack(cylinders, uint32(fixedMedia), uint32(tracks), uint32(sectors), g.BytesPerSector, g.Size, uint64(0))
}

func encodeDiskAttributes(a win.DiskAttributes) []byte {
	bits := uint64(0)
	if a.Offline {
		bits |= 1
	}
	if a.ReadOnly {
		bits |= 2
	}
	return pack(uint64(16), bits)
}

// encodeDriveLayout builds a DRIVE_LAYOUT_INFORMATION_EX, also of a disk without a table,
// which drivers show but callers do not write. Its entries are empty.
func encodeDriveLayout(l win.DriveLayout) ([]byte, error) {
	if l.Style != win.StyleRaw {
		return winlayout.EncodeDriveLayout(l)
	}
	b := make([]byte, 48+144*len(l.Partitions)) // entries of zeros have the style MBR
	le.PutUint32(b[0:], uint32(win.StyleRaw))
	le.PutUint32(b[4:], uint32(len(l.Partitions)))
	return b, nil
}

func encodeVolumeExtents(extents []win.Extent) []byte {
	b := pack(uint64(len(extents)))
	for _, e := range extents {
		b = append(b, pack(uint64(e.Disk), e.Offset, e.Length)...)
	}
	return b
}

func encodeNTFSVolumeData(d win.NTFSVolumeData) []byte {
	const bytesPerFileRecordSegment = uint32(1024)
	return pack(uint64(0), d.Sectors, d.TotalClusters, d.FreeClusters, uint64(0), d.BytesPerSector, d.BytesPerCluster, bytesPerFileRecordSegment, [44]byte{})
}

func encodeReFSVolumeData(d win.NTFSVolumeData) []byte {
	return pack(uint64(152), [16]byte{}, d.Sectors, d.TotalClusters, d.FreeClusters, uint64(0), d.BytesPerSector, d.BytesPerCluster, [88]byte{})
}

func encodeVolumeDirty(dirty bool) []byte {
	return pack(dirty, [3]byte{}) // VOLUME_IS_DIRTY is 1
}
