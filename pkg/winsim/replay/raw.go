package replay

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// reparseCode is FSCTL_GET_REPARSE_POINT.
const reparseCode winapi.ControlCode = 0x000900A8

// decoders read the answers to control codes.
var decoders = map[winapi.ControlCode]func(out []byte) error{
	winapi.SCSIGetAddress:             decoder(winlayout.DecodeSCSIAddress),
	winapi.DiskGetDriveLayoutEx:       decoder(winlayout.DecodeDriveLayout),
	winapi.DiskGetDriveGeometryEx:     decoder(winlayout.DecodeDiskGeometry),
	winapi.DiskGetDiskAttributes:      decoder(winlayout.DecodeDiskAttributes),
	winapi.GetNTFSVolumeData:          decoder(winlayout.DecodeNTFSVolumeData),
	winapi.StorageGetDeviceNumber:     decoder(winlayout.DecodeDeviceNumber),
	winapi.VolumeGetVolumeDiskExtents: decoder(winlayout.DecodeVolumeExtents),
	reparseCode:                       decoder(winlayout.DecodeReparsePoint),
}

// properties are those of StorageQueryProperty.
var properties = map[winlayout.PropertyID]func(out []byte) error{
	winlayout.DeviceProperty:         decoder(winlayout.DecodeDeviceDescriptor),
	winlayout.DeviceIDProperty:       decoder(winlayout.DecodeDeviceIdentifiers),
	winlayout.DeviceLocationProperty: decoder(winlayout.DecodeDeviceLocation),
}

func decoder[T any](decode func([]byte) (T, error)) func([]byte) error {
	return func(out []byte) error {
		_, err := decode(out)
		return err
	}
}

// decodeRaw reports the answers of drivers that the decoders refuse.
func (p *playback) decodeRaw(lines []record.Raw) {
	for _, raw := range lines {
		if raw.Code == 0 || raw.Error != nil || raw.Cut {
			continue
		}
		decode := decoders[winapi.ControlCode(raw.Code)]
		if winapi.ControlCode(raw.Code) == winapi.StorageQueryProperty && len(raw.In) >= 4 {
			decode = properties[winlayout.PropertyID(binary.LittleEndian.Uint32(raw.In))]
		}
		if decode == nil {
			continue // it has no answer
		}
		p.report.Raw++
		if err := decode(bytes.Clone(raw.Out)); err != nil {
			p.report.Differences = append(p.report.Differences, Difference{
				Call: raw.After, Method: fmt.Sprintf("control code %#x", raw.Code), Arguments: hex.EncodeToString(raw.In),
				Kind: Bytes, Recorded: short(hex.EncodeToString(raw.Out)), Emulated: err.Error(),
			})
		}
	}
}
