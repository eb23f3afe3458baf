package winlayout

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win"

// volumeDiskExtents is VOLUME_DISK_EXTENTS up to Extents, which are diskExtents: DISK_EXTENT.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-volume_disk_extents
type (
	volumeDiskExtents struct{ NumberOfDiskExtents, _ uint32 }
	diskExtent        struct {
		DiskNumber, _                uint32
		StartingOffset, ExtentLength int64
	}
)

const (
	firstExtent = 8
	extentSize  = 24
)

// VolumeExtentsSize has room for the one extent that most volumes have. With less, Windows answers 87 (Wine's
// test_disk_extents, dlls/kernel32/tests/volume.c).
const VolumeExtentsSize = firstExtent + extentSize

// ExtentsSize returns the size that the VOLUME_DISK_EXTENTS at the beginning of b needs, or 0.
// A driver whose answer does not fit fills in the number alone.
func ExtentsSize(b []byte) int {
	header, err := decode[volumeDiskExtents](b, "")
	if err != nil {
		return 0
	}
	return firstExtent + extentSize*int(header.NumberOfDiskExtents)
}

// DecodeVolumeExtents reads a VOLUME_DISK_EXTENTS.
func DecodeVolumeExtents(b []byte) ([]win.Extent, error) {
	header, err := decode[volumeDiskExtents](b, "VOLUME_DISK_EXTENTS")
	if err != nil {
		return nil, err
	}
	return decodeArray(b[firstExtent:], header.NumberOfDiskExtents, "DISK_EXTENT", func(e diskExtent) win.Extent {
		return win.Extent{Disk: e.DiskNumber, Offset: e.StartingOffset, Length: e.ExtentLength}
	})
}
