package winlayout

import (
	"bytes"
	"encoding/binary"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// STORAGE_DEVICE_ID_DESCRIPTOR
//
//	typedef struct _STORAGE_DEVICE_ID_DESCRIPTOR {
//	  ULONG Version;
//	  ULONG Size;
//	  ULONG NumberOfIdentifiers;
//	  UCHAR Identifiers[1];
//	} STORAGE_DEVICE_ID_DESCRIPTOR;
//
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntddstor/ns-ntddstor-_storage_device_id_descriptor
const (
	idCount = 8
	idFirst = 12
)

// STORAGE_IDENTIFIER: NextOffset counts from the start of this one.
//
//	typedef struct _STORAGE_IDENTIFIER {
//	  STORAGE_IDENTIFIER_CODE_SET CodeSet;
//	  STORAGE_IDENTIFIER_TYPE     Type;
//	  USHORT                      IdentifierSize;
//	  USHORT                      NextOffset;
//	  STORAGE_ASSOCIATION_TYPE    Association;
//	  UCHAR                       Identifier[1];
//	} STORAGE_IDENTIFIER;
//
// https://learn.microsoft.com/windows-hardware/drivers/ddi/storduid/ns-storduid-_storage_identifier
const (
	identifierCodeSet     = 0
	identifierType        = 4
	identifierSize        = 8
	identifierNext        = 10
	identifierAssociation = 12
	identifierValue       = 16
)

// DecodeDeviceIdentifiers reads a STORAGE_DEVICE_ID_DESCRIPTOR, in the device's order.
// A broken chain of identifiers ends at the break: those before it are valid, and host logic
// uses the first one that identifies the device.
func DecodeDeviceIdentifiers(b []byte) ([]win.DeviceIdentifier, error) {
	b, err := descriptor(b, idFirst, "STORAGE_DEVICE_ID_DESCRIPTOR")
	if err != nil {
		return nil, err
	}
	var identifiers []win.DeviceIdentifier
	count := uint32At(b, idCount)
	for b = b[idFirst:]; count > 0 && len(b) >= identifierValue; count-- {
		end := identifierValue + int(binary.LittleEndian.Uint16(b[identifierSize:]))
		if end > len(b) {
			break
		}
		identifiers = append(identifiers, win.DeviceIdentifier{
			CodeSet:     win.CodeSet(uint32At(b, identifierCodeSet)),
			Type:        win.IdentifierType(uint32At(b, identifierType)),
			Association: uint32At(b, identifierAssociation),
			Value:       bytes.Clone(b[identifierValue:end]),
		})
		next := int(binary.LittleEndian.Uint16(b[identifierNext:]))
		if next < identifierValue || next > len(b) {
			break // 0 on the last one; a smaller offset would loop
		}
		b = b[next:]
	}
	return identifiers, nil
}
