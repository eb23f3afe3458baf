package winlayout

import (
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// DISK_GEOMETRY_EX: Data has variable length, and we do not use it. DiskSize is exact; cylinders,
// tracks and sectors are rounded down.
//
//	typedef struct _DISK_GEOMETRY {
//	  LARGE_INTEGER Cylinders;
//	  MEDIA_TYPE    MediaType;
//	  DWORD         TracksPerCylinder;
//	  DWORD         SectorsPerTrack;
//	  DWORD         BytesPerSector;
//	} DISK_GEOMETRY;
//
//	typedef struct _DISK_GEOMETRY_EX {
//	  DISK_GEOMETRY Geometry;
//	  LARGE_INTEGER DiskSize;
//	  BYTE          Data[1];
//	} DISK_GEOMETRY_EX;
//
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-disk_geometry_ex
const (
	geometryBytesPerSector = 20
	geometryDiskSize       = 24
	geometryFixed          = 32 // Data
)

// DiskGeometrySize has room for Data too: IOCTL_DISK_GET_DRIVE_GEOMETRY_EX fails without.
const DiskGeometrySize = 256

// DecodeDiskGeometry reads a DISK_GEOMETRY_EX.
func DecodeDiskGeometry(b []byte) (win.DiskGeometry, error) {
	if err := need(b, geometryFixed, "DISK_GEOMETRY_EX"); err != nil {
		return win.DiskGeometry{}, err
	}
	geometry := win.DiskGeometry{
		Size:           int64At(b, geometryDiskSize),
		BytesPerSector: uint32At(b, geometryBytesPerSector),
	}
	if geometry.Size < 0 || geometry.BytesPerSector == 0 {
		return win.DiskGeometry{}, fmt.Errorf("a disk of %d bytes in sectors of %d: %w", geometry.Size, geometry.BytesPerSector, ErrMalformed)
	}
	return geometry, nil
}
