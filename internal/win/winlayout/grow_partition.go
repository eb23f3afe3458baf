package winlayout

import "encoding/binary"

// DISK_GROW_PARTITION
//
//	typedef struct _DISK_GROW_PARTITION {
//	  DWORD         PartitionNumber;
//	  LARGE_INTEGER BytesToGrow;
//	} DISK_GROW_PARTITION;
//
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-disk_grow_partition
const (
	growNumber = 0
	growBytes  = 8
	growSize   = 16
)

// EncodeGrowPartition builds a DISK_GROW_PARTITION; bytes is the difference.
func EncodeGrowPartition(partition uint32, bytes int64) []byte {
	b := make([]byte, growSize)
	binary.LittleEndian.PutUint32(b[growNumber:], partition)
	putInt64(b, growBytes, bytes)
	return b
}
