package winlayout

import (
	"encoding/binary"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// CREATE_DISK with a CREATE_DISK_GPT.
//
//	typedef struct _CREATE_DISK_GPT {
//	  GUID  DiskId;
//	  DWORD MaxPartitionCount;
//	} CREATE_DISK_GPT;
//
//	typedef struct _CREATE_DISK {
//	  PARTITION_STYLE PartitionStyle;
//	  union {
//	    CREATE_DISK_MBR Mbr;
//	    CREATE_DISK_GPT Gpt;
//	  };
//	} CREATE_DISK;
//
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-create_disk
const (
	createStyle         = 0
	createDiskID        = 4
	createMaxPartitions = 20
	createSize          = 24
)

// maxPartitions is the size of a GPT; Windows makes no smaller ones.
const maxPartitions = 128

// EncodeCreateDisk builds a CREATE_DISK for an empty GPT.
func EncodeCreateDisk(id win.GUID) []byte {
	b := make([]byte, createSize)
	binary.LittleEndian.PutUint32(b[createStyle:], uint32(win.StyleGPT))
	EncodeGUID(b[createDiskID:], id)
	binary.LittleEndian.PutUint32(b[createMaxPartitions:], maxPartitions)
	return b
}
