// Package api says what package disk needs from the machine below it, and
// provides that machine.
//
// Drivers call package disk and come here only for New, or to write a host of
// their own for tests. The package clause is older than the directory's name and
// stays, so that existing imports compile; import it as diskapi.
//
// It compiles on every system. The host that New returns is safe for concurrent
// use.
package api

import "context"

// DiskIDs is what identifies a disk beyond its number; a value the device does
// not report is empty.
type DiskIDs struct {
	// Page83 is the identifier from the SCSI device identification page (83h).
	Page83 string
	// SerialNumber is the serial number the device reports.
	SerialNumber string
}

// DiskLocation is where a disk is attached: decimal numbers as text, empty where
// the kind of bus has no such part.
type DiskLocation struct {
	Adapter string
	Bus     string
	Target  string
	LUNID   string
}

// HostAPI is a machine with disks, which it numbers. A call on a number that no
// disk has fails with an error for which errors.Is(err, fs.ErrNotExist) holds.
// Every call may be repeated.
type HostAPI interface {
	// ListDiskLocations returns the location of each disk that has one, by
	// disk number. A disk that does not answer is left out.
	ListDiskLocations() (map[uint32]DiskLocation, error)

	// IsDiskInitialized reports whether the disk has a partition table, or a file
	// system where that would be. A disk that cannot be read is an error.
	IsDiskInitialized(diskNumber uint32) (bool, error)

	// InitializeDisk writes an empty partition table to a disk that has none. It
	// leaves a disk alone that has one, and refuses a disk that seems to have none
	// but is not empty.
	InitializeDisk(diskNumber uint32) error

	// BasicPartitionsExist reports whether the disk has a partition that is not
	// reserved for the system's own use.
	BasicPartitionsExist(diskNumber uint32) (bool, error)

	// CreateBasicPartition creates one partition over all free space of an
	// initialized disk, unless BasicPartitionsExist, and waits for its volume.
	CreateBasicPartition(diskNumber uint32) error

	// Rescan makes the machine look for disks that came, went or changed size.
	Rescan() error

	// ListDiskIDs returns the ids of each disk, by disk number. A disk that does
	// not answer is left out.
	ListDiskIDs() (map[uint32]DiskIDs, error)

	// GetDiskStats returns the size of the disk in bytes.
	GetDiskStats(diskNumber uint32) (int64, error)

	// SetDiskState brings the disk online or takes it offline, and returns when it has.
	SetDiskState(diskNumber uint32, isOnline bool) error

	// GetDiskState reports whether the disk is online.
	GetDiskState(diskNumber uint32) (bool, error)

	// SetDiskReadOnly sets or clears the read-only attribute of the disk, and returns when it
	// has it. The disk may be online or offline, and stays so. The disk of Windows is refused, and
	// one that is mounted is not made read-only.
	SetDiskReadOnly(diskNumber uint32, isReadOnly bool) error

	// GetDiskReadOnly reports whether the disk is read-only.
	GetDiskReadOnly(diskNumber uint32) (bool, error)
}

// MustBe says which disk a call means. Windows gives the number of a disk that has left to the next one, within seconds.
// What is empty does not count.
type MustBe struct {
	// Device is the path of its interface. Serial and Page83 are its ids.
	Device, Serial, Page83 string
	// VolumeID is a volume on it. Path is where the caller has mounted that: only elsewhere it is in use.
	VolumeID, Path string
}

// Extended is HostAPI with what only we have: hosts that drivers have written still compile. Those of
// this package have it. Package disk refuses with errors.ErrUnsupported what another host would need it for.
type Extended interface {
	HostAPI

	// WithContext returns the same host, its calls bounded by ctx.
	WithContext(ctx context.Context) HostAPI

	// MustBe returns the same host. Its PartitionDisk, SetDiskState, SetDiskReadOnly, OnlineDiskReadOnly and
	// GetDiskReadOnly fail with the kind Busy, and change nothing, if another disk has the number.
	MustBe(mustBe MustBe) Extended

	// PartitionDisk makes an empty disk ready for a file system: it brings the disk online,
	// writes a partition table, creates one partition over all of it and waits for its volume.
	// A disk that has partitions is only brought online, and its volumes are waited for. No other
	// change of the disk comes between these steps.
	PartitionDisk(diskNumber uint32) error

	// OnlineDiskReadOnly brings the disk online read-only, and waits for its volumes. The disk
	// is never online and writable meanwhile: a writable disk that is online goes offline first.
	// The disk of Windows is refused.
	OnlineDiskReadOnly(diskNumber uint32) error
}
