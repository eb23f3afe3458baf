package disk

import diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"

// MustBe says which disk a request means. The request fails, and changes nothing, if another one has the number. The host
// must be a diskapi.Extended.
type MustBe = diskapi.MustBe

// DiskIDs is what identifies a disk beyond its number.
type DiskIDs struct {
	// Page83 is the identifier from the SCSI device identification page (83h):
	// text as the device gives it, or hexadecimal if the device gives bytes.
	// Empty if the disk has none.
	Page83 string

	// SerialNumber is the serial number the device reports. Empty if it
	// reports none.
	SerialNumber string
}

// DiskLocation is where a disk is attached: decimal numbers as text. A part that
// the kind of bus does not have is empty, such as Target and LUNID of NVMe disks.
type DiskLocation struct {
	// Adapter is the number Windows gave the disk's controller.
	Adapter string
	// Bus is the number of the bus that the controller is on.
	Bus string
	// Target is the number of the target behind the controller.
	Target string
	// LUNID is the logical unit number at the target. Disks behind different
	// adapters may share it.
	LUNID string
}

// GetDiskStateRequest names a disk.
type GetDiskStateRequest struct {
	// DiskNumber is the number Windows gave the disk.
	DiskNumber uint32
}

// GetDiskStateResponse is the state of a disk.
type GetDiskStateResponse struct {
	// IsOnline is true if Windows uses the disk, false if the disk is offline.
	IsOnline bool
}

// GetDiskStatsRequest names a disk.
type GetDiskStatsRequest struct {
	// DiskNumber is the number Windows gave the disk.
	DiskNumber uint32
}

// GetDiskStatsResponse is the size of a disk.
type GetDiskStatsResponse struct {
	// TotalBytes is the capacity of the whole disk in bytes, partitioned or not.
	TotalBytes int64
}

// ListDiskIDsRequest asks for the ids of all disks.
type ListDiskIDsRequest struct{}

// ListDiskIDsResponse holds the ids of all disks.
type ListDiskIDsResponse struct {
	// DiskIDs maps disk numbers to ids. The caller owns the map.
	DiskIDs map[uint32]*DiskIDs
}

// ListDiskLocationsRequest asks for the locations of all disks.
type ListDiskLocationsRequest struct{}

// ListDiskLocationsResponse holds the locations of all disks that have one.
type ListDiskLocationsResponse struct {
	// DiskLocations maps disk numbers to locations. The caller owns the map.
	DiskLocations map[uint32]*DiskLocation
}

// PartitionDiskRequest names the disk to partition.
type PartitionDiskRequest struct {
	// DiskNumber is the number Windows gave the disk.
	DiskNumber uint32
	// MustBe says which disk is meant.
	MustBe MustBe
}

// PartitionDiskResponse is empty: the disk has a basic partition.
type PartitionDiskResponse struct{}

// RescanRequest asks Windows to look for disks.
type RescanRequest struct{}

// RescanResponse is empty: Windows has looked.
type RescanResponse struct{}

// SetDiskStateRequest names a disk and the state it should have.
type SetDiskStateRequest struct {
	// DiskNumber is the number Windows gave the disk.
	DiskNumber uint32

	// IsOnline is true to bring the disk online, false to take it offline.
	IsOnline bool

	// MustBe says which disk is meant. With it, a disk is not taken offline that is mounted at another path.
	MustBe MustBe
}

// SetDiskStateResponse is empty: the disk is in the wanted state.
type SetDiskStateResponse struct{}

// SetDiskReadOnlyRequest names a disk and its new state.
type SetDiskReadOnlyRequest struct {
	// DiskNumber is the number Windows gave the disk.
	DiskNumber uint32
	// IsReadOnly is true to make the disk read-only, false to make it writable.
	IsReadOnly bool
	// MustBe says which disk is meant.
	MustBe MustBe
}

// SetDiskReadOnlyResponse is empty.
type SetDiskReadOnlyResponse struct{}

// OnlineDiskReadOnlyRequest names a disk.
type OnlineDiskReadOnlyRequest struct {
	// DiskNumber is the number Windows gave the disk.
	DiskNumber uint32
	// MustBe says which disk is meant.
	MustBe MustBe
}

// OnlineDiskReadOnlyResponse is empty: the disk is online and read-only.
type OnlineDiskReadOnlyResponse struct{}

// GetDiskReadOnlyRequest names a disk.
type GetDiskReadOnlyRequest struct {
	// DiskNumber is the number Windows gave the disk.
	DiskNumber uint32
	// MustBe says which disk is meant.
	MustBe MustBe
}

// GetDiskReadOnlyResponse is the state of a disk.
type GetDiskReadOnlyResponse struct {
	// IsReadOnly is true if Windows refuses to write to the disk.
	IsReadOnly bool
}
