package winlayout

import (
	"encoding/binary"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// The structures of iscsidsc.dll hold names in arrays of fixed size, ended by a NUL.

// targetPortal is ISCSI_TARGET_PORTALW. Its alignment is 2, which matters inside other structures.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-iscsi_target_portalw
type targetPortal struct {
	SymbolicName [nameUnits * maxPortalName]byte
	Address      [nameUnits * maxPortalAddr]byte
	Socket       uint16
}

// targetPortalInfo is ISCSI_TARGET_PORTAL_INFOW.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-iscsi_target_portal_infow
type targetPortalInfo struct {
	InitiatorName       [nameUnits * maxHBAName]byte
	InitiatorPortNumber uint32
	Portal              targetPortal // the same three fields
	_                   uint16
}

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
var (
	TargetPortalSize     = binary.Size(targetPortal{})
	SendTargetPortalSize = binary.Size(targetPortalInfo{})
)

// EncodeTargetPortal builds an ISCSI_TARGET_PORTALW.
func EncodeTargetPortal(p win.TargetPortal) ([]byte, error) {
	portal := targetPortal{Socket: p.Port}
	if err := putName(portal.SymbolicName[:], p.SymbolicName); err != nil {
		return nil, err
	}
	if err := putName(portal.Address[:], p.Address); err != nil {
		return nil, err
	}
	return encode(nil, portal), nil
}

// DecodeTargetPortals reads an array of count ISCSI_TARGET_PORTALWs.
func DecodeTargetPortals(b []byte, count uint32) ([]win.TargetPortal, error) {
	return decodeArray(b, count, "ISCSI_TARGET_PORTALW", targetPortal.value)
}

func (p targetPortal) value() win.TargetPortal {
	return win.TargetPortal{SymbolicName: name(p.SymbolicName[:]), Address: name(p.Address[:]), Port: p.Socket}
}

// DecodeSendTargetPortals reads an array of count ISCSI_TARGET_PORTAL_INFOWs.
func DecodeSendTargetPortals(b []byte, count uint32) ([]win.SendTargetPortal, error) {
	return decodeArray(b, count, "ISCSI_TARGET_PORTAL_INFOW", func(p targetPortalInfo) win.SendTargetPortal {
		return win.SendTargetPortal{Portal: p.Portal.value(), InitiatorInstance: name(p.InitiatorName[:]), InitiatorPort: p.InitiatorPortNumber}
	})
}

// putName writes a name into an array, which has room for a NUL too.
func putName(b []byte, name string) error {
	text := encodeUTF16(name)
	if most := len(b) - nameUnits; len(text) > most {
		return fmt.Errorf("a name of %d characters where %d fit: %w", len(text)/nameUnits, most/nameUnits, ErrTruncated)
	}
	copy(b, text)
	return nil
}

// name reads a name from an array; without a NUL it fills the array.
func name(b []byte) string {
	for end := 0; end < len(b); end += nameUnits {
		if b[end] == 0 && b[end+1] == 0 {
			return decodeUTF16(b[:end])
		}
	}
	return decodeUTF16(b)
}
