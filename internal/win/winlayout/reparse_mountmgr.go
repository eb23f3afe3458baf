package winlayout

import (
	"encoding/binary"
	"fmt"
	"math"
)

// MOUNTMGR_VOLUME_MOUNT_POINT is followed by the two names. Offsets and lengths are in bytes.
//
//	typedef struct _MOUNTMGR_VOLUME_MOUNT_POINT {
//	  USHORT SourceVolumeNameOffset;
//	  USHORT SourceVolumeNameLength;
//	  USHORT TargetVolumeNameOffset;
//	  USHORT TargetVolumeNameLength;
//	} MOUNTMGR_VOLUME_MOUNT_POINT;
//
// https://learn.microsoft.com/windows-hardware/drivers/ddi/mountmgr/ns-mountmgr-_mountmgr_volume_mount_point
const (
	mountSourceOffset = 0
	mountSourceLength = 2
	mountTargetOffset = 4
	mountTargetLength = 6
	mountSize         = 8
)

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
	b := make([]byte, mountSize, mountSize+sourceLength+targetLength)
	binary.LittleEndian.PutUint16(b[mountSourceOffset:], mountSize)
	binary.LittleEndian.PutUint16(b[mountSourceLength:], uint16(sourceLength))
	binary.LittleEndian.PutUint16(b[mountTargetOffset:], uint16(mountSize+sourceLength))
	binary.LittleEndian.PutUint16(b[mountTargetLength:], uint16(targetLength))
	return append(append(b, source...), target...), nil
}
