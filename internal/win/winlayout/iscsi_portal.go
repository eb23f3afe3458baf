package winlayout

import (
	"encoding/binary"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// The structures of iscsidsc.dll hold names in arrays of fixed size, ended by a NUL.

// ISCSI_TARGET_PORTALW. Its alignment is 2, which matters inside other structures.
//
//	typedef struct {
//	  WCHAR  SymbolicName[MAX_ISCSI_PORTAL_NAME_LEN];
//	  WCHAR  Address[MAX_ISCSI_PORTAL_ADDRESS_LEN];
//	  USHORT Socket;
//	} ISCSI_TARGET_PORTALW;
//
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-iscsi_target_portalw
const (
	portalSymbolicName = 0
	portalAddress      = 512
	portalSocket       = 1024
	portalSize         = 1026
)

// ISCSI_TARGET_PORTAL_INFOW
//
//	typedef struct {
//	  WCHAR  InitiatorName[MAX_ISCSI_HBANAME_LEN];
//	  ULONG  InitiatorPortNumber;
//	  WCHAR  SymbolicName[MAX_ISCSI_PORTAL_NAME_LEN];
//	  WCHAR  Address[MAX_ISCSI_PORTAL_ADDRESS_LEN];
//	  USHORT Socket;
//	} ISCSI_TARGET_PORTAL_INFOW;
//
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-iscsi_target_portal_infow
const (
	portalInfoInitiator     = 0
	portalInfoInitiatorPort = 512
	portalInfoSymbolicName  = 516
	portalInfoAddress       = 1028
	portalInfoSocket        = 1540
	portalInfoSize          = 1544
)

// The sizes of the arrays that hold names, in characters.
const (
	maxHBAName      = 256 // MAX_ISCSI_HBANAME_LEN
	maxPortalName   = 256 // MAX_ISCSI_PORTAL_NAME_LEN, and _ALIAS_LEN
	maxPortalAddr   = 256 // MAX_ISCSI_PORTAL_ADDRESS_LEN
	maxISCSIName    = 224 // MAX_ISCSI_NAME_LEN + 1
	maxDevicePath   = 260 // MAX_PATH
	nameUnits       = 2   // bytes of a character
	maxSessionNames = 256 // characters of a name in a list of sessions, more than any has
)

// Sizes of the elements of lists, by which buffers for them are made.
const (
	TargetPortalSize     = portalSize
	SendTargetPortalSize = portalInfoSize
)

// EncodeTargetPortal builds an ISCSI_TARGET_PORTALW.
func EncodeTargetPortal(p win.TargetPortal) ([]byte, error) {
	b := make([]byte, portalSize)
	if err := putName(b[portalSymbolicName:], maxPortalName, p.SymbolicName); err != nil {
		return nil, err
	}
	if err := putName(b[portalAddress:], maxPortalAddr, p.Address); err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint16(b[portalSocket:], p.Port)
	return b, nil
}

// DecodeTargetPortals reads an array of count ISCSI_TARGET_PORTALWs.
func DecodeTargetPortals(b []byte, count uint32) ([]win.TargetPortal, error) {
	return decodeArray(b, count, portalSize, "ISCSI_TARGET_PORTALW", decodeTargetPortal)
}

func decodeTargetPortal(b []byte) win.TargetPortal {
	return win.TargetPortal{
		SymbolicName: nameAt(b, portalSymbolicName, maxPortalName),
		Address:      nameAt(b, portalAddress, maxPortalAddr),
		Port:         binary.LittleEndian.Uint16(b[portalSocket:]),
	}
}

// DecodeSendTargetPortals reads an array of count ISCSI_TARGET_PORTAL_INFOWs.
func DecodeSendTargetPortals(b []byte, count uint32) ([]win.SendTargetPortal, error) {
	return decodeArray(b, count, portalInfoSize, "ISCSI_TARGET_PORTAL_INFOW", func(b []byte) win.SendTargetPortal {
		return win.SendTargetPortal{
			Portal: win.TargetPortal{
				SymbolicName: nameAt(b, portalInfoSymbolicName, maxPortalName),
				Address:      nameAt(b, portalInfoAddress, maxPortalAddr),
				Port:         binary.LittleEndian.Uint16(b[portalInfoSocket:]),
			},
			InitiatorInstance: nameAt(b, portalInfoInitiator, maxHBAName),
			InitiatorPort:     uint32At(b, portalInfoInitiatorPort),
		}
	})
}

// decodeArray reads count structures of the same size.
func decodeArray[T any](b []byte, count uint32, size int, structure string, decode func([]byte) T) ([]T, error) {
	if int64(count) > int64(len(b)/size) {
		return nil, fmt.Errorf("%d of %s in %d bytes: %w", count, structure, len(b), ErrTruncated)
	}
	var list []T
	for ; count > 0; count-- {
		list = append(list, decode(b[:size]))
		b = b[size:]
	}
	return list, nil
}

// putName writes a name into an array of so many characters, the NUL included.
func putName(b []byte, characters int, name string) error {
	text := encodeUTF16(name)
	if len(text) > nameUnits*(characters-1) {
		return fmt.Errorf("a name of %d characters where %d fit: %w", len(text)/nameUnits, characters-1, ErrTruncated)
	}
	copy(b, text)
	return nil
}

// nameAt reads a name from an array of so many characters; without a NUL it fills them all.
func nameAt(b []byte, offset, characters int) string {
	b = b[offset : offset+nameUnits*characters]
	for end := 0; end < len(b); end += nameUnits {
		if b[end] == 0 && b[end+1] == 0 {
			return decodeUTF16(b[:end])
		}
	}
	return decodeUTF16(b)
}
