package winlayout

import (
	"fmt"
	"math"
)

// volumeMountPoint is MOUNTMGR_VOLUME_MOUNT_POINT. It is followed by the two names; offsets and lengths are in bytes.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/mountmgr/ns-mountmgr-_mountmgr_volume_mount_point
type volumeMountPoint struct {
	SourceVolumeNameOffset, SourceVolumeNameLength uint16
	TargetVolumeNameOffset, TargetVolumeNameLength uint16
}

const mountSize = 8

// EncodeVolumeMountPoint notifies the mount manager of a mounted folder. Both names are those of
// the kernel and without a trailing backslash: \??\C:\dir and \??\Volume{guid}. The
// documentation calls the first one the name of a volume, but describes and shows the path
// of the folder.
func EncodeVolumeMountPoint(folder, volume string) ([]byte, error) {
	source, target := encodeUTF16(folder), encodeUTF16(volume)
	sourceLength, targetLength := len(source), len(target)
	if sourceLength > math.MaxUint16-mountSize || targetLength > math.MaxUint16 {
		return nil, fmt.Errorf("the names of a mounted folder have %d and %d bytes; at most %d are allowed", sourceLength, targetLength, math.MaxUint16-mountSize)
	}
	b := encode(nil, volumeMountPoint{mountSize, uint16(sourceLength), uint16(mountSize + sourceLength), uint16(targetLength)})
	return append(append(b, source...), target...), nil
}
