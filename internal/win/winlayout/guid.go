package winlayout

import (
	"encoding/binary"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// GUID: the numbers are little-endian, while text and win.GUID have them big-endian.
//
//	typedef struct _GUID {
//	  unsigned long  Data1;
//	  unsigned short Data2;
//	  unsigned short Data3;
//	  unsigned char  Data4[8];
//	} GUID;
//
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

// EncodeGUID writes a GUID in the layout of memory and disks.
func EncodeGUID(b []byte, g win.GUID) {
	binary.LittleEndian.PutUint32(b[0:], binary.BigEndian.Uint32(g[0:]))
	binary.LittleEndian.PutUint16(b[4:], binary.BigEndian.Uint16(g[4:]))
	binary.LittleEndian.PutUint16(b[6:], binary.BigEndian.Uint16(g[6:]))
	copy(b[8:guidSize], g[8:])
}
