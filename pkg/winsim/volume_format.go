package winsim

import (
	"cmp"
	"context"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Format is MSFT_Volume.Format: the storage service looks up the volume in its own cache.
// https://learn.microsoft.com/windows-hardware/drivers/storage/format-msft-volume
func (m *volumes) Format(ctx context.Context, id win.VolumeID, options win.FormatOptions) error {
	return m.format(ctx, id, options, formatCodes{
		fileSystem: winerr.StorageFileSystem, system: winerr.StorageSystemPartition, busy: winerr.StorageInUse, offline: winerr.StorageIOError, readOnly: winerr.StorageReadOnly,
		label: winerr.StorageInvalidParameter, clusters: winerr.StorageClusterSize, tooMany: winerr.StorageTooManyClusters, interrupted: winerr.StorageIOError,
		cached: true,
	})
}

// FormatLegacy is Win32_Volume.Format, which has no cache.
// https://learn.microsoft.com/previous-versions/windows/desktop/legacy/aa390432(v=vs.85)
func (m *volumes) FormatLegacy(ctx context.Context, id win.VolumeID, options win.FormatOptions) error {
	return m.format(ctx, id, options, formatCodes{
		fileSystem: winerr.LegacyFormatCode(1), system: winerr.LegacyFormatAccessDenied, busy: winerr.LegacyFormatLockFailed, offline: winerr.LegacyFormatNotMounted, readOnly: winerr.LegacyFormatWriteProtected,
		label: winerr.LegacyFormatLabel, clusters: winerr.LegacyFormatClustersTooSmall, tooMany: winerr.LegacyFormatTooManyClusters, interrupted: winerr.LegacyFormatIOError,
	})
}

// formatCodes are the answers of one of the two calls.
type formatCodes struct {
	fileSystem, system, busy, offline, readOnly, label, clusters, tooMany, interrupted error
	cached                                                                             bool // knows only the volumes in the cache
}

// refuseFormat returns why a volume cannot be formatted. mu is held.
func (m *volumes) refuseFormat(v *volume, options win.FormatOptions, codes formatCodes) error {
	known := v.contentError() == nil && (!codes.cached || v.InServiceCache || !m.now().Before(v.Arrived.Add(m.storage.ServiceDelay)))
	switch {
	case !known:
		return winerr.WMINotFound
	case codes.cached && m.outOfDate > 0:
		m.outOfDate--
		m.changed()
		return winerr.StorageCacheOutOfDate
	case slices.Contains(m.systemVolumes(), v):
		return codes.system
	case v.formatting || v.repair != "":
		return codes.busy
	case v.Offline:
		return codes.offline
	case v.writable() != nil:
		return codes.readOnly
	case winpath.UTF16Len(options.Label) > maxLabel:
		return codes.label
	case isReFS(options) && m.storage.NoReFS:
		return codes.fileSystem
	case !v.clusterFits(options):
		return codes.clusters
	case options.ClusterSize != 0 && v.length()/int64(options.ClusterSize) > maxClusters:
		return codes.tooMany
	}
	return nil
}

const (
	maxLabel = 32 // UTF-16 units of NTFS
	// largestCluster is since Windows Server 2019; before, it was 64 KiB.
	// https://learn.microsoft.com/windows-server/storage/file-server/ntfs-overview
	largestCluster = 2 * mebibyte
)

func isReFS(options win.FormatOptions) bool { return winpath.Equal(options.FileSystem, string(ReFS)) }

// clusterFits reports whether the file system can have clusters of the size; 0 means the default. ReFS has two:
// https://learn.microsoft.com/windows-server/storage/refs/refs-overview
func (v *volume) clusterFits(options win.FormatOptions) bool {
	size := options.ClusterSize
	if isReFS(options) {
		return size == 0 || size == 4<<10 || size == 64<<10
	}
	return size == 0 || size&(size-1) == 0 && int64(size) >= v.extents[0].disk.sector && int64(size) <= largestCluster
}

// format formats a volume. The provider continues even if its caller goes away.
func (m *volumes) format(ctx context.Context, id win.VolumeID, options win.FormatOptions, codes formatCodes) error {
	m.lock()
	v := m.volumeByID(string(id))
	if err := m.refuseFormat(v, options, codes); err != nil {
		m.mu.Unlock()
		return err
	}
	v.formatting, v.interrupted = true, false
	result := codes.interrupted // guarded by mu
	m.after(m.storage.FormatTime, m.formatEnd(v, options, func() { result = nil }))
	m.changed()
	m.mu.Unlock()
	if err := m.Sleep(ctx, m.storage.FormatTime); err != nil {
		return err
	}
	defer m.lock()()
	return result
}

// formatEnd completes a format, and calls done unless the volume has left.
func (m *volumes) formatEnd(v *volume, options win.FormatOptions, done func()) event {
	is := Event{Kind: formatEnds, FileSystem: options.FileSystem, ClusterSize: options.ClusterSize, Label: options.Label}
	return event{Event: is, of: v, run: func() {
		v.formatting = false
		if v.interrupted {
			return
		}
		v.makeFileSystem(options)
		for _, e := range v.extents {
			m.disks.grow(e.disk, int64(e.disk.GrowsTo))
		}
		done()
	}}
}

func (v *volume) makeFileSystem(options win.FormatOptions) {
	kind, sector := NTFS, v.extents[0].disk.sector
	if isReFS(options) {
		kind = ReFS
	}
	v.write(bootSector(kind, false, sector))
	fs := newFileSystem(kind, v.length(), sector)
	fs.label, fs.cluster = options.Label, cmp.Or(int64(options.ClusterSize), fs.cluster)
	v.setFileSystem(fs)
	if v.State == Raw || v.State == Locked {
		v.State = Healthy
	}
}

// RefreshStorageCache adds every volume to the storage service's cache.
func (m *volumes) RefreshStorageCache(_ context.Context) error {
	defer m.lock()()
	m.changed()
	m.outOfDate = 0
	for _, v := range m.byGUID {
		v.InServiceCache = v.InServiceCache || v.present
	}
	return nil
}
