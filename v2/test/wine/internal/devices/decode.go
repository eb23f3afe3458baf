package devices

import (
	"encoding/binary"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// What drivers are sent, the counterpart of encode.go. Like drivers, these are strict about
// what the documentation demands: a wrong version or length is refused with 87 or 24.

func decodePropertyQuery(b []byte) (winlayout.PropertyID, error) {
	const standardQuery = 0
	if len(b) < 12 || le.Uint32(b[4:]) != standardQuery {
		return 0, winerr.InvalidParameter
	}
	return winlayout.PropertyID(le.Uint32(b[0:])), nil
}

// decodeSetDiskAttributes reads a SET_DISK_ATTRIBUTES. A change that is not persistent is
// one that the emulated node does not know.
func decodeSetDiskAttributes(b []byte) (attributes, mask win.DiskAttributes, err error) {
	const size = 40
	switch {
	case len(b) != size:
		return attributes, mask, winerr.BadLength
	case le.Uint32(b[0:]) != size || b[4] != 1 || le.Uint64(b[8:])&^le.Uint64(b[16:]) != 0:
		return attributes, mask, winerr.InvalidParameter
	}
	return attributesOf(le.Uint64(b[8:])), attributesOf(le.Uint64(b[16:])), nil
}

func attributesOf(bits uint64) win.DiskAttributes {
	return win.DiskAttributes{Offline: bits&1 != 0, ReadOnly: bits&2 != 0}
}

func decodeCreateDisk(b []byte) (win.GUID, error) {
	switch {
	case len(b) != 24:
		return win.GUID{}, winerr.BadLength
	case le.Uint32(b[0:]) != uint32(win.StyleGPT) || le.Uint32(b[20:]) < 128:
		return win.GUID{}, winerr.InvalidParameter
	}
	return decodeGUID(b[4:]), nil
}

func decodeGUID(b []byte) win.GUID {
	var g win.GUID
	binary.BigEndian.PutUint32(g[0:], le.Uint32(b[0:]))
	binary.BigEndian.PutUint16(g[4:], le.Uint16(b[4:]))
	binary.BigEndian.PutUint16(g[6:], le.Uint16(b[6:]))
	copy(g[8:], b[8:16])
	return g
}

func decodeGrowPartition(b []byte) (partition uint32, bytes int64, err error) {
	if len(b) != 16 {
		return 0, 0, winerr.BadLength
	}
	return le.Uint32(b[0:]), int64(le.Uint64(b[8:])), nil
}

func decodeExtendVolume(b []byte) (sectors int64, err error) {
	if len(b) != 8 {
		return 0, winerr.BadLength
	}
	return int64(le.Uint64(b)), nil
}

// decodeSetDriveLayout reads what SetDriveLayout takes. Unlike the answer of a disk it has
// to say of each partition that it is to be written.
func decodeSetDriveLayout(b []byte) (win.DriveLayout, error) {
	layout, err := winlayout.DecodeDriveLayout(b)
	if err != nil {
		return layout, winerr.InvalidParameter
	}
	for i := range layout.Partitions {
		const first, size, rewrite = 48, 144, 28
		if b[first+i*size+rewrite] != 1 {
			return layout, winerr.InvalidParameter
		}
	}
	return layout, nil
}
