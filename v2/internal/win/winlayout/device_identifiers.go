package winlayout

import (
	"bytes"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// storageDeviceIDDescriptor is STORAGE_DEVICE_ID_DESCRIPTOR up to Identifiers.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntddstor/ns-ntddstor-_storage_device_id_descriptor
type storageDeviceIDDescriptor struct {
	Version, Size       uint32
	NumberOfIdentifiers uint32
}

// storageIdentifier is STORAGE_IDENTIFIER up to Identifier. NextOffset counts from the start of this one.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/storduid/ns-storduid-_storage_identifier
type storageIdentifier struct {
	CodeSet        uint32
	Type           uint32
	IdentifierSize uint16
	NextOffset     uint16
	Association    uint32
}

const (
	firstIdentifier = 12 // where Identifiers is
	identifierValue = 16 // where Identifier is
)

// DecodeDeviceIdentifiers reads a STORAGE_DEVICE_ID_DESCRIPTOR, in the device's order.
// A broken chain of identifiers ends at the break: those before it are valid, and host logic
// uses the first one that identifies the device.
func DecodeDeviceIdentifiers(b []byte) ([]win.DeviceIdentifier, error) {
	d, b, err := descriptor[storageDeviceIDDescriptor](b, "STORAGE_DEVICE_ID_DESCRIPTOR")
	if err != nil {
		return nil, err
	}
	var identifiers []win.DeviceIdentifier
	b = b[firstIdentifier:]
	for count := d.NumberOfIdentifiers; count > 0 && len(b) >= identifierValue; count-- {
		id, err := decode[storageIdentifier](b, "STORAGE_IDENTIFIER")
		if err != nil {
			return nil, err
		}
		end := identifierValue + int(id.IdentifierSize)
		if end > len(b) {
			break
		}
		identifiers = append(identifiers, win.DeviceIdentifier{
			CodeSet:     win.CodeSet(id.CodeSet),
			Type:        win.IdentifierType(id.Type),
			Association: id.Association,
			Value:       bytes.Clone(b[identifierValue:end]),
		})
		if id.NextOffset < identifierValue || int(id.NextOffset) > len(b) {
			break // 0 on the last one; a smaller offset would loop
		}
		b = b[id.NextOffset:]
	}
	return identifiers, nil
}
