package winlayout

// diskGrowPartition is DISK_GROW_PARTITION.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-disk_grow_partition
type diskGrowPartition struct {
	PartitionNumber uint32
	_               uint32
	BytesToGrow     int64
}

// EncodeGrowPartition builds a DISK_GROW_PARTITION; bytes is the difference.
func EncodeGrowPartition(partition uint32, bytes int64) []byte {
	return encode(nil, diskGrowPartition{PartitionNumber: partition, BytesToGrow: bytes})
}
