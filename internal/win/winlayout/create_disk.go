package winlayout

import (
	"encoding/binary"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// CREATE_DISK with a CREATE_DISK_GPT.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-create_disk
const (
	createStyle         = 0
	createDiskID        = 4
	createMaxPartitions = 20
	createSize          = 24
)

// maxPartitions is how many partitions a GPT has room for; Windows makes it no fewer.
const maxPartitions = 128

// EncodeCreateDisk builds a CREATE_DISK for an empty GPT.
func EncodeCreateDisk(id win.GUID) []byte {
	b := make([]byte, createSize)
	binary.LittleEndian.PutUint32(b[createStyle:], uint32(win.StyleGPT))
	encodeGUID(b[createDiskID:], id)
	binary.LittleEndian.PutUint32(b[createMaxPartitions:], maxPartitions)
	return b
}
