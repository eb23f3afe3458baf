package winlayout

import (
	"encoding/binary"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// guid is GUID: its first three numbers are little-endian, while text and win.GUID have them big-endian.
// https://learn.microsoft.com/windows/win32/api/guiddef/ns-guiddef-guid
type guid [16]byte

func (g guid) value() (swapped win.GUID) {
	EncodeGUID(swapped[:], win.GUID(g)) // to swap bytes twice changes nothing
	return swapped
}

func toGUID(id win.GUID) (g guid) {
	EncodeGUID(g[:], id)
	return g
}

// EncodeGUID writes a GUID in the layout of memory and disks.
func EncodeGUID(b []byte, g win.GUID) {
	binary.LittleEndian.PutUint32(b[0:], binary.BigEndian.Uint32(g[0:]))
	binary.LittleEndian.PutUint16(b[4:], binary.BigEndian.Uint16(g[4:]))
	binary.LittleEndian.PutUint16(b[6:], binary.BigEndian.Uint16(g[6:]))
	copy(b[8:], g[8:])
}
