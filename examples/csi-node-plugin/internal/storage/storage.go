// Package storage is what the node plugin needs from a Windows node, and the two ways to
// get it: [Proxy] asks the CSI Proxy daemon over gRPC, [Library] does it in this process.
//
// The plugin knows only [Node]. It chooses once, at the start; a driver that moves from the daemon
// to the library changes nothing else.
package storage

import "context"

// Node is the storage of a Windows node. Every method may be repeated: one that finds its
// work done succeeds. Paths are absolute and in backslash form. Volumes go by the id that
// Windows gives them, \\?\Volume{GUID}\.
//
// Errors carry a gRPC status (Proxy), or match those of io/fs, errors and context (Library).
type Node interface {
	// Disks returns the serial number of every disk, by the number that the disk has now.
	Disks(ctx context.Context) (map[uint32]string, error)
	// Rescan makes Windows look for disks that were attached or have grown.
	Rescan(ctx context.Context) error
	// DiskSize returns the size of a disk in bytes.
	DiskSize(ctx context.Context, disk uint32) (int64, error)
	// Partition gives a blank disk a partition table with one partition.
	Partition(ctx context.Context, disk uint32) error
	// SetOnline brings a disk online or takes it offline.
	SetOnline(ctx context.Context, disk uint32, online bool) error

	// Volumes lists the volumes on a disk.
	Volumes(ctx context.Context, disk uint32) ([]string, error)
	// DiskOf returns the disk on which a volume is.
	DiskOf(ctx context.Context, volume string) (uint32, error)
	// IsFormatted tells whether a volume has a file system.
	IsFormatted(ctx context.Context, volume string) (bool, error)
	// Format gives a volume an empty NTFS.
	Format(ctx context.Context, volume string) error
	// Mount makes a volume appear at a folder, Unmount takes it away from there.
	Mount(ctx context.Context, volume, folder string) error
	Unmount(ctx context.Context, volume, folder string) error
	// MountedAt returns the volume at a folder, or at the one to which a link leads.
	MountedAt(ctx context.Context, path string) (volume string, err error)
	// Grow makes a volume as large as its disk has room for.
	Grow(ctx context.Context, volume string) error
	// VolumeSpace returns size and used space of a volume in bytes.
	VolumeSpace(ctx context.Context, volume string) (total, used int64, err error)

	// Exists tells whether there is something at a path.
	Exists(ctx context.Context, path string) (bool, error)
	// IsLink tells whether a path is a link or a mounted folder whose target can be reached.
	IsLink(ctx context.Context, path string) (bool, error)
	// MakeDir makes a folder, and its missing parents.
	MakeDir(ctx context.Context, path string) error
	// Link makes a link at path that leads to target. Something else there, a link to another
	// target included, stays, and the call fails.
	Link(ctx context.Context, path, target string) error
	// Remove removes a link or an empty folder, and nothing behind it.
	Remove(ctx context.Context, path string) error

	// MapShare connects the node to a share, and makes a link to it. Without a user it does
	// so as a guest.
	MapShare(ctx context.Context, share, link, user, password string) error
	// UnmapShare disconnects the share, unless another link uses it.
	UnmapShare(ctx context.Context, share string) error
}
