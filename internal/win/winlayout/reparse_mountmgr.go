package winlayout

import (
	"encoding/binary"
	"fmt"
	"math"
)

// MOUNTMGR_VOLUME_MOUNT_POINT: where two names lie behind it, in bytes.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/mountmgr/ns-mountmgr-_mountmgr_volume_mount_point
const (
	mountSourceOffset = 0
	mountSourceLength = 2
	mountTargetOffset = 4
	mountTargetLength = 6
	mountSize         = 8
)

// EncodeVolumeMountPoint tells the mount manager of a mounted folder. Both names are those of
// the kernel and without a trailing backslash: \??\C:\dir and \??\Volume{guid}. The
// documentation calls the first one the name of a volume, but describes and shows the path
// of the folder.
func EncodeVolumeMountPoint(folder, volume string) ([]byte, error) {
	source, target := encodeUTF16(folder), encodeUTF16(volume)
	if len(source) > math.MaxUint16-mountSize || len(target) > math.MaxUint16 {
		return nil, fmt.Errorf("the names of a mounted folder have %d and %d bytes, more than can be told", len(source), len(target))
	}
	b := make([]byte, mountSize, mountSize+len(source)+len(target))
	binary.LittleEndian.PutUint16(b[mountSourceOffset:], mountSize)
	binary.LittleEndian.PutUint16(b[mountSourceLength:], uint16(len(source)))
	binary.LittleEndian.PutUint16(b[mountTargetOffset:], uint16(mountSize+len(source)))
	binary.LittleEndian.PutUint16(b[mountTargetLength:], uint16(len(target)))
	return append(append(b, source...), target...), nil
}
