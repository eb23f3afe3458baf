package api

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
)

// boundHost implements HostAPI: a host, and the context of its calls.
type boundHost struct {
	host host
	ctx  context.Context //nolint:containedctx // HostAPI's published methods take none, see WithContext
}

var (
	_ HostAPI              = boundHost{}
	_ ContextBinder        = boundHost{}
	_ Limiter              = boundHost{}
	_ FormatterWithOptions = boundHost{}
	_ OnlyVolumeFinder     = boundHost{}
	_ Excluder             = boundHost{}
	_ HealthKeeper         = boundHost{}
	_ UnmountFlusher       = boundHost{}
	_ GoneUnmounter        = boundHost{}
)

func (b boundHost) WithContext(ctx context.Context) HostAPI {
	b.ctx = ctx
	return b
}

func (b boundHost) Within(p *policy.Policy) HostAPI {
	b.host.limits = p
	return b
}

func (b boundHost) ListVolumesOnDisk(diskNumber, partitionNumber uint32) ([]string, error) {
	return b.host.listVolumesOnDisk(b.ctx, diskNumber, partitionNumber)
}

func (b boundHost) OnlyVolumeOnDisk(diskNumber uint32) (string, error) {
	return b.host.onlyVolumeOnDisk(b.ctx, diskNumber)
}

func (b boundHost) MountVolume(volumeID, targetPath string) error {
	return b.host.atFolder(b.ctx, opMount, volumeID, targetPath, policy.Mount, b.host.mount)
}

func (b boundHost) UnmountVolume(volumeID, targetPath string) error {
	return b.host.atFolder(b.ctx, opUnmount, volumeID, targetPath, policy.Unmount, b.host.unmount)
}

func (b boundHost) UnmountGone(targetPath string) error {
	return b.host.unmountGone(b.ctx, targetPath)
}

func (b boundHost) FlushToUnmount(volumeID, targetPath string) (string, error) {
	return b.host.flushMounted(b.ctx, volumeID, targetPath)
}

func (b boundHost) Exclusively(volumeID, path string, do func(ctx context.Context) error) error {
	return b.host.exclusively(b.ctx, volumeID, path, do)
}

func (b boundHost) IsVolumeFormatted(volumeID string) (bool, error) {
	return b.host.isVolumeFormatted(b.ctx, volumeID)
}

func (b boundHost) FormatVolume(volumeID string) error {
	return b.host.formatVolume(b.ctx, volumeID, FormatOptions{})
}

func (b boundHost) FormatVolumeWithOptions(volumeID string, options FormatOptions) error {
	return b.host.formatVolume(b.ctx, volumeID, options)
}

func (b boundHost) ResizeVolume(volumeID string, sizeBytes int64) error {
	return b.host.resizeVolume(b.ctx, volumeID, sizeBytes)
}

func (b boundHost) GetVolumeStats(volumeID string) (total, used int64, err error) {
	return b.host.volumeStats(b.ctx, volumeID)
}

func (b boundHost) GetDiskNumberFromVolumeID(volumeID string) (uint32, error) {
	return b.host.diskNumber(b.ctx, volumeID)
}

func (b boundHost) GetVolumeIDFromTargetPath(targetPath string) (string, error) {
	return b.host.mountedVolume(b.ctx, targetPath)
}

func (b boundHost) WriteVolumeCache(volumeID string) error {
	return b.host.writeVolumeCache(b.ctx, volumeID)
}

func (b boundHost) GetClosestVolumeIDFromTargetPath(targetPath string) (string, error) {
	return b.host.closestVolume(b.ctx, targetPath)
}

func (b boundHost) Health(volumeID string) (Health, error) { return b.host.health(b.ctx, volumeID) }

func (b boundHost) Scan(volumeID string) (Health, error) { return b.host.scan(b.ctx, volumeID) }

func (b boundHost) Repair(volumeID string, options RepairOptions) (Health, error) {
	return b.host.repair(b.ctx, volumeID, options)
}
