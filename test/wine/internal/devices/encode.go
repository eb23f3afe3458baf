package devices

import (
	"encoding/binary"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// What drivers answer. internal/win/winlayout reads these structures, and says where they are
// documented; the tests let it read what is written here.

var le = binary.LittleEndian

func encodeDeviceNumber(n win.DeviceNumber) []byte {
	b := make([]byte, 12)
	le.PutUint32(b[0:], uint32(n.Type))
	le.PutUint32(b[4:], n.Number)
	le.PutUint32(b[8:], n.Partition)
	return b
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
		entry := make([]byte, size)
		le.PutUint32(entry[0:], uint32(identifier.CodeSet))
		le.PutUint32(entry[4:], uint32(identifier.Type))
		le.PutUint16(entry[8:], uint16(len(identifier.Value)))
		if i < len(identifiers)-1 {
			le.PutUint16(entry[10:], uint16(size))
		}
		le.PutUint32(entry[12:], identifier.Association)
		copy(entry[value:], identifier.Value)
		b = append(b, entry...)
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
	b := make([]byte, 8)
	le.PutUint32(b[0:], 8)
	b[4], b[5], b[6], b[7] = a.Port, a.Path, a.Target, a.LUN
	return b
}

// encodeDiskGeometry builds a DISK_GEOMETRY_EX without the data behind it.
func encodeDiskGeometry(g win.DiskGeometry) []byte {
	const tracks, sectors = 255, 63
	b := make([]byte, 40)
	le.PutUint64(b[0:], uint64(g.Size)/(uint64(g.BytesPerSector)*tracks*sectors))
	le.PutUint32(b[8:], 12) // FixedMedia
	le.PutUint32(b[12:], tracks)
	le.PutUint32(b[16:], sectors)
	le.PutUint32(b[20:], g.BytesPerSector)
	le.PutUint64(b[24:], uint64(g.Size))
	return b
}

func encodeDiskAttributes(a win.DiskAttributes) []byte {
	b := make([]byte, 16)
	le.PutUint32(b[0:], 16)
	if a.Offline {
		b[8] |= 1
	}
	if a.ReadOnly {
		b[8] |= 2
	}
	return b
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
	b := make([]byte, 8, 8+24*len(extents))
	le.PutUint32(b[0:], uint32(len(extents)))
	for _, e := range extents {
		entry := make([]byte, 24)
		le.PutUint32(entry[0:], e.Disk)
		le.PutUint64(entry[8:], uint64(e.Offset))
		le.PutUint64(entry[16:], uint64(e.Length))
		b = append(b, entry...)
	}
	return b
}

func encodeNTFSVolumeData(d win.NTFSVolumeData) []byte {
	b := make([]byte, 96)
	le.PutUint64(b[8:], uint64(d.Sectors))
	le.PutUint64(b[16:], uint64(d.TotalClusters))
	le.PutUint64(b[24:], uint64(d.FreeClusters))
	le.PutUint32(b[40:], d.BytesPerSector)
	le.PutUint32(b[44:], d.BytesPerCluster)
	le.PutUint32(b[48:], 1024) // BytesPerFileRecordSegment
	return b
}

func encodeReFSVolumeData(d win.NTFSVolumeData) []byte {
	b := make([]byte, 152)
	le.PutUint32(b[0:], 152)
	le.PutUint64(b[24:], uint64(d.Sectors))
	le.PutUint64(b[32:], uint64(d.TotalClusters))
	le.PutUint64(b[40:], uint64(d.FreeClusters))
	le.PutUint32(b[56:], d.BytesPerSector)
	le.PutUint32(b[60:], d.BytesPerCluster)
	return b
}

func encodeVolumeDirty(dirty bool) []byte {
	b := make([]byte, 4)
	if dirty {
		b[0] = 1 // VOLUME_IS_DIRTY
	}
	return b
}
