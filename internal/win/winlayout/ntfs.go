package winlayout

import (
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// NTFS_VOLUME_DATA_BUFFER
//
//	typedef struct {
//	  LARGE_INTEGER VolumeSerialNumber;
//	  LARGE_INTEGER NumberSectors;
//	  LARGE_INTEGER TotalClusters;
//	  LARGE_INTEGER FreeClusters;
//	  LARGE_INTEGER TotalReserved;
//	  DWORD         BytesPerSector;
//	  DWORD         BytesPerCluster;
//	  DWORD         BytesPerFileRecordSegment;
//	  DWORD         ClustersPerFileRecordSegment;
//	  LARGE_INTEGER MftValidDataLength;
//	  LARGE_INTEGER MftStartLcn;
//	  LARGE_INTEGER Mft2StartLcn;
//	  LARGE_INTEGER MftZoneStart;
//	  LARGE_INTEGER MftZoneEnd;
//	} NTFS_VOLUME_DATA_BUFFER;
//
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-ntfs_volume_data_buffer
const (
	ntfsSectors         = 8
	ntfsTotalClusters   = 16
	ntfsFreeClusters    = 24
	ntfsBytesPerSector  = 40
	ntfsBytesPerCluster = 44
	ntfsSize            = 96
)

// NTFSVolumeDataSize is how much FSCTL_GET_NTFS_VOLUME_DATA answers.
const NTFSVolumeDataSize = ntfsSize

// DecodeNTFSVolumeData reads an NTFS_VOLUME_DATA_BUFFER.
func DecodeNTFSVolumeData(b []byte) (win.NTFSVolumeData, error) {
	if err := need(b, ntfsSize, "NTFS_VOLUME_DATA_BUFFER"); err != nil {
		return win.NTFSVolumeData{}, err
	}
	data := win.NTFSVolumeData{
		Sectors:         int64At(b, ntfsSectors),
		TotalClusters:   int64At(b, ntfsTotalClusters),
		FreeClusters:    int64At(b, ntfsFreeClusters),
		BytesPerSector:  uint32At(b, ntfsBytesPerSector),
		BytesPerCluster: uint32At(b, ntfsBytesPerCluster),
	}
	if data.Sectors < 0 || data.BytesPerSector == 0 || data.BytesPerCluster == 0 || data.BytesPerCluster%data.BytesPerSector != 0 {
		return win.NTFSVolumeData{}, fmt.Errorf("%d sectors of %d bytes in clusters of %d: %w",
			data.Sectors, data.BytesPerSector, data.BytesPerCluster, ErrMalformed)
	}
	return data, nil
}

// extendSize is the size of a LARGE_INTEGER.
const extendSize = 8

// EncodeExtendVolume builds what FSCTL_EXTEND_VOLUME takes, a number of sectors.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-fsctl_extend_volume
func EncodeExtendVolume(sectors int64) []byte {
	b := make([]byte, extendSize)
	putInt64(b, 0, sectors)
	return b
}
