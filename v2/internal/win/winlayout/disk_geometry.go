package winlayout

import (
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// diskGeometryEx is DISK_GEOMETRY_EX without Data, which has variable length and which we do not use.
// DiskSize is exact; cylinders, tracks and sectors are rounded down.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-disk_geometry_ex
type diskGeometryEx struct {
	Cylinders                          int64
	MediaType                          uint32
	TracksPerCylinder, SectorsPerTrack uint32
	BytesPerSector                     uint32
	DiskSize                           int64
}

// DiskGeometrySize has room for Data too: IOCTL_DISK_GET_DRIVE_GEOMETRY_EX fails without.
const DiskGeometrySize = 256

// DecodeDiskGeometry reads a DISK_GEOMETRY_EX.
func DecodeDiskGeometry(b []byte) (win.DiskGeometry, error) {
	g, err := decode[diskGeometryEx](b, "DISK_GEOMETRY_EX")
	if err != nil {
		return win.DiskGeometry{}, err
	}
	if g.DiskSize < 0 || g.BytesPerSector == 0 {
		return win.DiskGeometry{}, fmt.Errorf("a disk of %d bytes in sectors of %d: %w", g.DiskSize, g.BytesPerSector, ErrMalformed)
	}
	return win.DiskGeometry{Size: g.DiskSize, BytesPerSector: g.BytesPerSector}, nil
}
