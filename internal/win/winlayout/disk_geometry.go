package winlayout

import (
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// DISK_GEOMETRY_EX: a DISK_GEOMETRY, the size of the disk, and data of variable length
// about partitions and how the BIOS sees the disk. The size is not what cylinders, tracks
// and sectors multiply to, which is rounded down.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-disk_geometry_ex
const (
	geometryBytesPerSector = 20
	geometryDiskSize       = 24
	geometryFixed          = 32 // Data
)

// DiskGeometrySize has room for what IOCTL_DISK_GET_DRIVE_GEOMETRY_EX answers, which
// refuses to leave out the data that we do not use.
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
