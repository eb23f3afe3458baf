package devices

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/exchange"
)

const (
	fsGetNTFSVolumeData = 0x00090064
	fsIsVolumeDirty     = 0x00090078
	fsGetReFSVolumeData = 0x000902D8
	fsExtendVolume      = 0x000900F0
	volumeGetExtents    = 0x00560000
	volumeOnline        = 0x0056C008
)

type volume struct {
	machine win.Machine
	id      win.VolumeID
}

func (v volume) answer(ctx context.Context, r exchange.Request) ([]byte, error) {
	switch r.Function {
	case exchange.Control:
		return v.control(ctx, r)
	case exchange.Read:
		return read(ctx, v.machine, v.id.Device(), r)
	case exchange.Flush:
		return nil, v.machine.FlushVolume(ctx, v.id)
	case exchange.QueryVolume:
		return v.query(ctx, r)
	default:
		return nil, winerr.InvalidFunction
	}
}

func (v volume) control(ctx context.Context, r exchange.Request) ([]byte, error) {
	m := v.machine
	switch r.Code {
	case storageDeviceNumber:
		return whole(r, encodeDeviceNumber)(m.DeviceNumber(ctx, v.id.Device()))
	case volumeGetExtents:
		extents, err := m.VolumeExtents(ctx, v.id)
		if err != nil {
			return nil, err
		}
		if b := encodeVolumeExtents(extents); len(b) <= r.Room {
			return b, nil
		} else if r.Room >= 8 {
			return b[:8], winerr.MoreData // with the number of extents
		}
		return nil, winerr.InsufficientBuffer
	case volumeOnline:
		return nil, m.OnlineVolume(ctx, v.id)
	case fsGetNTFSVolumeData:
		return whole(r, encodeNTFSVolumeData)(m.NTFSVolumeData(ctx, v.id))
	case fsGetReFSVolumeData:
		return whole(r, encodeReFSVolumeData)(m.ReFSVolumeData(ctx, v.id))
	case fsIsVolumeDirty:
		return whole(r, encodeVolumeDirty)(m.VolumeDirty(ctx, v.id))
	case fsExtendVolume:
		sectors, err := decodeExtendVolume(r.Data)
		if err != nil {
			return nil, err
		}
		return nil, m.ExtendVolume(ctx, v.id, sectors)
	default:
		return nil, winerr.InvalidFunction
	}
}

// What NtQueryVolumeInformationFile asks for, FS_INFORMATION_CLASS.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/wdm/ne-wdm-_fsinfoclass
const (
	fsVolumeInformation    = 1
	fsSizeInformation      = 3
	fsAttributeInformation = 5
)

// query is what GetVolumeInformation and GetDiskFreeSpaceEx come to.
func (v volume) query(ctx context.Context, r exchange.Request) ([]byte, error) {
	switch r.Code {
	case fsVolumeInformation:
		return some(r, encodeVolumeInformation)(v.machine.FileSystem(ctx, v.id))
	case fsAttributeInformation:
		return some(r, encodeAttributeInformation)(v.machine.FileSystem(ctx, v.id))
	case fsSizeInformation:
		return whole(r, encodeSizeInformation)(v.machine.VolumeSpace(ctx, v.id))
	default:
		return nil, winerr.InvalidParameter
	}
}

// encodeVolumeInformation builds a FILE_FS_VOLUME_INFORMATION, with the label only.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntddk/ns-ntddk-_file_fs_volume_information
func encodeVolumeInformation(fileSystem win.FileSystemInfo) []byte {
	const labelAt, size = 18, 24
	label := encodeUTF16(fileSystem.Label)
	b := make([]byte, max(size, labelAt+len(label)))
	le.PutUint32(b[12:], uint32(len(label)))
	copy(b[labelAt:], label)
	return b
}

// encodeAttributeInformation builds a FILE_FS_ATTRIBUTE_INFORMATION.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/ns-ntifs-_file_fs_attribute_information
func encodeAttributeInformation(fileSystem win.FileSystemInfo) []byte {
	const readOnlyVolume = 0x00080000
	name := encodeUTF16(fileSystem.Name)
	b := make([]byte, 12)
	if fileSystem.ReadOnly {
		le.PutUint32(b, readOnlyVolume) // FileSystemAttributes
	}
	le.PutUint32(b[4:], 255) // MaximumComponentNameLength
	le.PutUint32(b[8:], uint32(len(name)))
	return append(b, name...)
}

// encodeSizeInformation builds a FILE_FS_SIZE_INFORMATION.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntddk/ns-ntddk-_file_fs_size_information
func encodeSizeInformation(space win.Space) []byte {
	const sector = 512
	return pack(space.Total/sector, space.Free/sector, uint32(1), uint32(sector)) // one sector per allocation unit
}
