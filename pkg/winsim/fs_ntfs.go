package winsim

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	// smallestCluster is what NTFS chooses up to 16 TiB; maxClusters is how many it can
	// count, which makes it choose larger ones above.
	// https://learn.microsoft.com/windows-server/storage/file-server/ntfs-overview
	smallestCluster = 4096
	maxClusters     = 1<<32 - 1
	// formatOverhead is what an empty NTFS takes for itself, mostly for its log, or an
	// eighth of a small volume. Real ones vary with the version and size; nothing
	// should depend on the number.
	formatOverhead = 16 * mebibyte
)

// fileSystem is a formatted volume: sizes and a file tree.
type fileSystem struct {
	kind    FileSystem
	sector  int64
	sectors int64 // that it occupies, the backup boot sector of NTFS included
	cluster int64
	used    int64 // bytes besides those of files
	root    *entry

	mirrored *realTree // where it is mirrored, or nil

	shortNames bool // are made for names that do not fit 8.3
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

		shortNames: kind == NTFS || kind == FAT32,
	}
}

// data is the arithmetic of NTFS: it keeps a copy of the boot sector behind its end and
// counts one sector less than it occupies, and only whole clusters.
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

// clusters is about what a tree occupies: files their content, everything else nothing.
func (e *entry) clusters(size int64) int64 {
	sum := alignUp(e.length(), size) / size
	for _, stream := range e.streams {
		sum += stream.clusters(size)
	}
	for _, child := range e.children {
		sum += child.clusters(size)
	}
	return sum
}

// FileSystem names the volume's file system.
func (n *Node) FileSystem(ctx context.Context, id win.VolumeID) (string, error) {
	fs, unlock, err := n.openFileSystem(ctx, "FileSystem", id)
	if err != nil {
		return "", err
	}
	defer unlock()
	return map[FileSystem]string{NTFS: "NTFS", ReFS: "ReFS", FAT32: "FAT32", CDFS: "CDFS"}[fs.kind], nil
}

// VolumeSpace tells size and free space.
func (n *Node) VolumeSpace(ctx context.Context, id win.VolumeID) (win.Space, error) {
	fs, unlock, err := n.openFileSystem(ctx, "VolumeSpace", id)
	if err != nil {
		return win.Space{}, err
	}
	defer unlock()
	data := fs.data()
	return win.Space{Total: data.TotalClusters * fs.cluster, Free: data.FreeClusters * fs.cluster}, nil
}

// NTFSVolumeData tells how NTFS counts the volume.
func (n *Node) NTFSVolumeData(ctx context.Context, id win.VolumeID) (win.NTFSVolumeData, error) {
	fs, unlock, err := n.openFileSystem(ctx, "NTFSVolumeData", id)
	if err != nil {
		return win.NTFSVolumeData{}, err
	}
	defer unlock()
	if fs.kind != NTFS {
		return win.NTFSVolumeData{}, winerr.InvalidFunction
	}
	return fs.data(), nil
}

// ExtendVolume makes the file system larger. It cannot shrink, grows by one cluster at
// least, and only within its volume.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-fsctl_extend_volume
func (n *Node) ExtendVolume(ctx context.Context, id win.VolumeID, sectors int64) error {
	fs, unlock, err := n.openFileSystem(ctx, "ExtendVolume", id)
	if err != nil {
		return err
	}
	defer unlock()
	v := n.volumeByID(string(id))
	if err := v.writable(); err != nil {
		return err
	}
	switch {
	case fs.kind != NTFS && fs.kind != ReFS:
		return winerr.InvalidFunction
	case sectors > v.length()/fs.sector || sectors-fs.sectors < fs.cluster/fs.sector || sectors*fs.sector/fs.cluster > maxClusters:
		return winerr.InvalidParameter
	}
	n.changed()
	fs.sectors = sectors
	return nil
}

// openFileSystem begins a call that asks a volume's file system. The caller unlocks.
func (n *Node) openFileSystem(ctx context.Context, call string, id win.VolumeID) (_ *fileSystem, unlock func(), _ error) {
	if err := n.beginCall(ctx, call, string(id)); err != nil {
		return nil, nil, err
	}
	n.lock()
	fs, err := n.mounted(n.volumeByID(string(id)))
	if err != nil {
		n.mu.Unlock()
		return nil, nil, err
	}
	return fs, n.mu.Unlock, nil
}
