package winlayout

import (
	"encoding/binary"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// GUID in memory: one 32-bit and two 16-bit numbers, little-endian, then eight bytes as
// they are written.
// https://learn.microsoft.com/windows/win32/api/guiddef/ns-guiddef-guid
const guidSize = 16

func decodeGUID(b []byte) win.GUID {
	var g win.GUID
	binary.BigEndian.PutUint32(g[0:], binary.LittleEndian.Uint32(b[0:]))
	binary.BigEndian.PutUint16(g[4:], binary.LittleEndian.Uint16(b[4:]))
	binary.BigEndian.PutUint16(g[6:], binary.LittleEndian.Uint16(b[6:]))
	copy(g[8:], b[8:guidSize])
	return g
}

func encodeGUID(b []byte, g win.GUID) {
	binary.LittleEndian.PutUint32(b[0:], binary.BigEndian.Uint32(g[0:]))
	binary.LittleEndian.PutUint16(b[4:], binary.BigEndian.Uint16(g[4:]))
	binary.LittleEndian.PutUint16(b[6:], binary.BigEndian.Uint16(g[6:]))
	copy(b[8:guidSize], g[8:])
}
