package winlayout

import (
	"encoding/binary"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// ntfsVolumeData is NTFS_VOLUME_DATA_BUFFER.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-ntfs_volume_data_buffer
type ntfsVolumeData struct {
	VolumeSerialNumber                                      int64
	NumberSectors                                           int64
	TotalClusters, FreeClusters, TotalReserved              int64
	BytesPerSector, BytesPerCluster                         uint32
	BytesPerFileRecordSegment, ClustersPerFileRecordSegment uint32
	MftValidDataLength, MftStartLcn, Mft2StartLcn           int64
	MftZoneStart, MftZoneEnd                                int64
}

// NTFSVolumeDataSize is how much FSCTL_GET_NTFS_VOLUME_DATA answers.
var NTFSVolumeDataSize = binary.Size(ntfsVolumeData{})

// DecodeNTFSVolumeData reads an NTFS_VOLUME_DATA_BUFFER.
func DecodeNTFSVolumeData(b []byte) (win.NTFSVolumeData, error) {
	d, err := decode[ntfsVolumeData](b, "NTFS_VOLUME_DATA_BUFFER")
	if err != nil {
		return win.NTFSVolumeData{}, err
	}
	return plausible(win.NTFSVolumeData{
		Sectors: d.NumberSectors, TotalClusters: d.TotalClusters, FreeClusters: d.FreeClusters,
		BytesPerSector: d.BytesPerSector, BytesPerCluster: d.BytesPerCluster,
	})
}

// refsVolumeData is REFS_VOLUME_DATA_BUFFER.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-refs_volume_data_buffer
type refsVolumeData struct {
	ByteCount, MajorVersion, MinorVersion, BytesPerPhysicalSector uint32
	VolumeSerialNumber                                            int64
	NumberSectors                                                 int64
	TotalClusters, FreeClusters, TotalReserved                    int64
	BytesPerSector, BytesPerCluster                               uint32
	MaximumSizeOfResidentFile                                     int64
	_                                                             [80]byte // releases differ in what is there
}

// ReFSVolumeDataSize is how much FSCTL_GET_REFS_VOLUME_DATA answers.
var ReFSVolumeDataSize = binary.Size(refsVolumeData{})

// DecodeReFSVolumeData reads a REFS_VOLUME_DATA_BUFFER.
func DecodeReFSVolumeData(b []byte) (win.NTFSVolumeData, error) {
	d, err := decode[refsVolumeData](b, "REFS_VOLUME_DATA_BUFFER")
	if err != nil {
		return win.NTFSVolumeData{}, err
	}
	return plausible(win.NTFSVolumeData{
		Sectors: d.NumberSectors, TotalClusters: d.TotalClusters, FreeClusters: d.FreeClusters,
		BytesPerSector: d.BytesPerSector, BytesPerCluster: d.BytesPerCluster, ReFS: true,
	})
}

func plausible(data win.NTFSVolumeData) (win.NTFSVolumeData, error) {
	if data.Sectors < 0 || data.BytesPerSector == 0 || data.BytesPerCluster == 0 || data.BytesPerCluster%data.BytesPerSector != 0 {
		return win.NTFSVolumeData{}, fmt.Errorf("%d sectors of %d bytes in clusters of %d: %w",
			data.Sectors, data.BytesPerSector, data.BytesPerCluster, ErrMalformed)
	}
	return data, nil
}

// EncodeExtendVolume builds what FSCTL_EXTEND_VOLUME takes, a number of sectors.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-fsctl_extend_volume
func EncodeExtendVolume(sectors int64) []byte { return encode(nil, sectors) }

// VolumeDirtySize is how much FSCTL_IS_VOLUME_DIRTY answers.
const VolumeDirtySize = 4

// DecodeVolumeDirty reads the flags of FSCTL_IS_VOLUME_DIRTY, of which only VOLUME_IS_DIRTY is in use.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-fsctl_is_volume_dirty
func DecodeVolumeDirty(b []byte) (bool, error) {
	flags, err := decode[uint32](b, "the flags of FSCTL_IS_VOLUME_DIRTY")
	return flags&1 != 0, err
}
