package winsim

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// process is the node as a process sees it.
type process struct {
	win.Machine
	ended *atomic.Bool
}

// processKey is the key of a process' end in the context of its calls.
type processKey struct{}

// Process is the node as another process sees it. The machine has a method End, which ends the process as Windows does: its
// locks are abandoned, what it asked for goes on, and it asks for nothing more.
func (p process) Process(f win.Interceptor) win.Machine {
	ended := new(atomic.Bool)
	return process{p.Machine.Process(func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
		ctx = context.WithValue(ctx, processKey{}, ended)
		if ended.Load() {
			return context.Canceled
		}
		if f == nil {
			return next(ctx)
		}
		return f(ctx, c, next)
	}), ended}
}

// End ends the process.
func (p process) End() { p.ended.Store(true) }

// formatLock is a lock of volumes.formatLocks. The node's own process does not end.
type formatLock struct{ ended *atomic.Bool }

// LockFormat takes a lock that outlives its owner.
func (m *volumes) LockFormat(ctx context.Context, id win.VolumeID) (win.FormatLock, error) {
	defer m.lock()()
	last := m.formatLocks[id]
	if last != nil && !last.ended.Load() {
		return win.FormatLock{}, winerr.WaitTimeout
	}
	ended, ok := ctx.Value(processKey{}).(*atomic.Bool)
	if !ok {
		ended = new(atomic.Bool)
	}
	lock := &formatLock{ended}
	m.formatLocks[id] = lock
	return win.FormatLock{Abandoned: last != nil, Release: func() {
		defer m.lock()()
		if !ended.Load() && m.formatLocks[id] == lock {
			delete(m.formatLocks, id)
		}
	}}, nil
}

// Format is MSFT_Volume.Format: the storage service looks up the volume in its own cache.
// Without Force it refuses a volume that programs have open, as VDS documents it. Whether it formats one with a file system
// that is not in use is not documented: it does.
// https://learn.microsoft.com/windows-hardware/drivers/storage/format-msft-volume
// https://learn.microsoft.com/windows/win32/api/vds/nf-vds-ivdsvolumemf-format
func (m *volumes) Format(ctx context.Context, id win.VolumeID, options win.FormatOptions) error {
	return m.format(ctx, id, options, formatCodes{
		fileSystem: winerr.StorageFileSystem, system: winerr.StorageSystemPartition, busy: winerr.StorageInUse, offline: winerr.StorageIOError, readOnly: winerr.StorageReadOnly,
		label: winerr.StorageInvalidParameter, clusters: winerr.StorageClusterSize, tooMany: winerr.StorageTooManyClusters, interrupted: winerr.StorageIOError,
		cached: true, asked: !options.Force,
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
	asked                                                                              bool // without force
}

// refuseFormat returns why a volume cannot be formatted. mu is held.
func (m *volumes) refuseFormat(v *volume, options win.FormatOptions, codes formatCodes) error {
	known := v.contentError() == nil && (!codes.cached || v.cached || !m.now().Before(v.arrived.Add(m.storage.ServiceDelay)))
	switch {
	case !known:
		return winerr.WMINotFound
	case codes.cached && m.outOfDate > 0:
		m.outOfDate--
		return winerr.StorageCacheOutOfDate
	case slices.Contains(m.systemVolumes(), v):
		return codes.system
	case v.formatting, codes.asked && v.fileSystem() != nil && v.fileSystem().root.anyInUse():
		return codes.busy
	case v.offline:
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
	m.after(m.storage.FormatTime, func() {
		v.formatting = false
		if v.interrupted {
			return
		}
		v.makeFileSystem(options)
		for _, e := range v.extents {
			m.disks.grow(e.disk, int64(e.disk.GrowsTo))
		}
		result = nil
	})
	m.mu.Unlock()
	if err := m.Sleep(ctx, m.storage.FormatTime); err != nil {
		return err
	}
	defer m.lock()()
	return result
}

func (v *volume) makeFileSystem(options win.FormatOptions) {
	kind, sector := NTFS, v.extents[0].disk.sector
	if isReFS(options) {
		kind = ReFS
	}
	v.writeBoot(kind, false, sector)
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
	m.outOfDate = 0
	for _, v := range m.byGUID {
		v.cached = v.cached || v.present
	}
	return nil
}
