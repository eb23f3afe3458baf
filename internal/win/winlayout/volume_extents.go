package winlayout

import (
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// VOLUME_DISK_EXTENTS
//
//	typedef struct _DISK_EXTENT {
//	  DWORD         DiskNumber;
//	  LARGE_INTEGER StartingOffset;
//	  LARGE_INTEGER ExtentLength;
//	} DISK_EXTENT;
//
//	typedef struct _VOLUME_DISK_EXTENTS {
//	  DWORD       NumberOfDiskExtents;
//	  DISK_EXTENT Extents[1];
//	} VOLUME_DISK_EXTENTS;
//
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-volume_disk_extents
const (
	extentsCount = 0
	extentsFirst = 8

	extentDisk   = 0
	extentOffset = 8
	extentLength = 16
	extentSize   = 24
)

// VolumeExtentsSize has room for the one extent that most volumes have.
const VolumeExtentsSize = extentsFirst + extentSize

// ExtentsSize returns the size that the VOLUME_DISK_EXTENTS at the beginning of b needs, or 0.
// A driver whose answer does not fit fills in the number alone.
func ExtentsSize(b []byte) int {
	if len(b) < extentsFirst {
		return 0
	}
	return extentsFirst + extentSize*int(uint32At(b, extentsCount))
}

// DecodeVolumeExtents reads a VOLUME_DISK_EXTENTS.
func DecodeVolumeExtents(b []byte) ([]win.Extent, error) {
	if err := need(b, extentsFirst, "VOLUME_DISK_EXTENTS"); err != nil {
		return nil, err
	}
	count := uint64(uint32At(b, extentsCount))
	b = b[extentsFirst:]
	if count > uint64(len(b)/extentSize) {
		return nil, fmt.Errorf("%d extents in %d bytes: %w", count, len(b), ErrTruncated)
	}
	var extents []win.Extent
	for ; count > 0; count-- {
		extents = append(extents, win.Extent{
			Disk:   uint32At(b, extentDisk),
			Offset: int64At(b, extentOffset),
			Length: int64At(b, extentLength),
		})
		b = b[extentSize:]
	}
	return extents, nil
}
