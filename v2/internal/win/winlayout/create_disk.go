package winlayout

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win"

// createDisk is CREATE_DISK with a CREATE_DISK_GPT.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-create_disk
type createDisk struct {
	PartitionStyle    uint32
	DiskID            guid
	MaxPartitionCount uint32
}

// maxPartitions is the size of a GPT; Windows makes no smaller ones.
const maxPartitions = 128

// EncodeCreateDisk builds a CREATE_DISK for an empty GPT.
func EncodeCreateDisk(id win.GUID) []byte {
	return encode(nil, createDisk{uint32(win.StyleGPT), toGUID(id), maxPartitions})
}
