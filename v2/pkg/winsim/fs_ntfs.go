package winsim

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	// smallestCluster is the cluster size up to 16 TiB. Above, maxClusters forces larger
	// clusters.
	// https://learn.microsoft.com/windows-server/storage/file-server/ntfs-overview
	smallestCluster = 4096
	maxClusters     = 1<<32 - 1
	// formatOverhead is the space that an empty NTFS uses, at most an eighth of the volume.
	// Real values vary; do not depend on the number.
	formatOverhead = 16 * mebibyte
)

type fileSystem struct {
	kind    FileSystem
	sector  int64
	sectors int64 // including the backup boot sector of NTFS
	cluster int64
	used    int64 // bytes in addition to files
	root    *entry
	label   string

	rootAccess string // the access list of the root
	damage     Damage

	mirrored *realTree // where it is mirrored, or nil

	shortNames bool // create 8.3 names
}

func newFileSystem(kind FileSystem, length, sector int64) *fileSystem {
	cluster := int64(smallestCluster)
	for length/cluster > maxClusters {
		cluster *= 2
	}
	return &fileSystem{
		kind:    kind,
		cluster: cluster,
		sector:  sector,
		sectors: length / sector,
		used:    min(formatOverhead, length/8),
		root:    newDirectory(),

		rootAccess: sddl.NewRoot,

		shortNames: kind == NTFS || kind == FAT32,
	}
}

// data computes sizes as NTFS does: only whole clusters, and one sector less than it occupies,
// for the backup boot sector at the end.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-ntfs_volume_data_buffer
func (fs *fileSystem) data() win.NTFSVolumeData {
	fs.refreshBelow(fs.root, false)
	total := (fs.sectors - 1) * fs.sector / fs.cluster
	used := fs.used/fs.cluster + fs.root.clusters(fs.cluster)
	return win.NTFSVolumeData{
		Sectors:         fs.sectors - 1,
		TotalClusters:   total,
		FreeClusters:    max(0, total-used),
		BytesPerSector:  uint32(fs.sector),
		BytesPerCluster: uint32(fs.cluster),
	}
}

// clusters is the approximate space of a tree: only file contents count.
func (e *entry) clusters(size int64) int64 {
	sum := alignUp(e.length(), size) / size
	for _, child := range e.children {
		sum += child.clusters(size)
	}
	return sum
}

// FileSystem describes the volume's file system. A volume on a read-only disk is read-only.
func (m *volumes) FileSystem(_ context.Context, id win.VolumeID) (win.FileSystemInfo, error) {
	return read(m.onFileSystem, id, func(fs *fileSystem) (win.FileSystemInfo, error) {
		name := map[FileSystem]string{NTFS: "NTFS", ReFS: "ReFS", FAT32: "FAT32", CDFS: "CDFS"}[fs.kind]
		return win.FileSystemInfo{Name: name, Label: fs.label, ReadOnly: m.volumeByID(string(id)).writable() != nil}, nil
	})
}

func (m *volumes) VolumeSpace(_ context.Context, id win.VolumeID) (win.Space, error) {
	return read(m.onFileSystem, id, func(fs *fileSystem) (win.Space, error) {
		return fs.space(), nil
	})
}

func (fs *fileSystem) space() win.Space {
	data := fs.data()
	return win.Space{Total: data.TotalClusters * fs.cluster, Free: data.FreeClusters * fs.cluster}
}

func (m *volumes) NTFSVolumeData(_ context.Context, id win.VolumeID) (win.NTFSVolumeData, error) {
	return read(m.onFileSystem, id, func(fs *fileSystem) (win.NTFSVolumeData, error) {
		if fs.kind != NTFS {
			return win.NTFSVolumeData{}, winerr.InvalidFunction
		}
		return fs.data(), nil
	})
}

// ReFSVolumeData has no backup boot sector to leave out.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-refs_volume_data_buffer
func (m *volumes) ReFSVolumeData(_ context.Context, id win.VolumeID) (win.NTFSVolumeData, error) {
	return read(m.onFileSystem, id, func(fs *fileSystem) (win.NTFSVolumeData, error) {
		if fs.kind != ReFS {
			return win.NTFSVolumeData{}, winerr.InvalidFunction
		}
		data := fs.data()
		data.Sectors, data.ReFS = fs.sectors, true
		return data, nil
	})
}

// ExtendVolume enlarges the file system by at least one cluster, within its volume.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-fsctl_extend_volume
func (m *volumes) ExtendVolume(_ context.Context, id win.VolumeID, sectors int64) error {
	return m.changeFileSystem(id, func(fs *fileSystem) error {
		v := m.volumeByID(string(id))
		switch {
		case fs.kind != NTFS && fs.kind != ReFS:
			return winerr.InvalidFunction
		case sectors > v.length()/fs.sector || sectors-fs.sectors < fs.cluster/fs.sector || (fs.kind == NTFS && sectors*fs.sector/fs.cluster > maxClusters):
			return winerr.InvalidParameter
		}
		fs.sectors = sectors
		v.writeBoot(fs.kind, false, fs.sector)
		return nil
	})
}

func (m *volumes) onFileSystem(id win.VolumeID, do func(*fileSystem) error) error {
	defer m.lock()()
	fs, err := m.mounted(m.volumeByID(string(id)))
	if err != nil {
		return err
	}
	return do(fs)
}
