package azuredisk

import (
	"context"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	kit "github.com/kubernetes-csi/csi-proxy/mounter"
	"k8s.io/mount-utils"

	"sigs.k8s.io/azuredisk-csi-driver/pkg/azureutils"
	"sigs.k8s.io/azuredisk-csi-driver/pkg/mounter"
)

// findDiskByLun returns the number of the disk. It makes Windows look for it.
func findDiskByLun(lun int, _ azureutils.IOHandler, m *mount.SafeFormatAndMount) (string, error) {
	number, err := mounter.Kit(m).FindDisk(mounter.Context(m), kit.Disk{LUN: strconv.Itoa(lun)})
	return strconv.FormatUint(uint64(number), 10), err
}

// formatAndMount stages the disk with the number that findDiskByLun returned.
func formatAndMount(source, target, fstype string, options []string, m *mount.SafeFormatAndMount) error {
	return m.Mount(source, target, fstype, options)
}

// CleanupMountPoint unstages a volume, or unpublishes it.
func CleanupMountPoint(path string, m *mount.SafeFormatAndMount, _ bool) error {
	return m.Unmount(path)
}

func getDevicePathWithMountPath(mountPath string, m *mount.SafeFormatAndMount) (string, error) {
	staged, err := mounter.Kit(m).StagedAt(mounter.Context(m), mountPath)
	return strconv.FormatUint(uint64(staged.DiskNumber), 10), err
}

func getBlockSizeBytes(devicePath string, m *mount.SafeFormatAndMount) (int64, error) {
	number, err := strconv.ParseUint(devicePath, 10, 32)
	if err != nil {
		return -1, err
	}
	return mounter.Kit(m).DiskBytes(mounter.Context(m), uint32(number))
}

func resizeVolume(_, volumePath string, m *mount.SafeFormatAndMount) error {
	_, err := mounter.Kit(m).Expand(mounter.Context(m), volumePath, 0)
	return err
}

func needResizeVolume(_, volumePath string, m *mount.SafeFormatAndMount) (bool, error) {
	return mounter.Kit(m).NeedsResize(mounter.Context(m), volumePath)
}

func GetVolumeStats(ctx context.Context, m *mount.SafeFormatAndMount, target string, _ hostUtil) ([]*csi.VolumeUsage, error) {
	usage, err := mounter.Kit(m).Stats(ctx, target)
	if err != nil {
		return nil, err
	}
	return []*csi.VolumeUsage{{
		Unit: csi.VolumeUsage_BYTES, Total: usage.TotalBytes, Used: usage.UsedBytes, Available: usage.AvailableBytes,
	}}, nil
}

// The kit does this by itself.

func preparePublishPath(string, *mount.SafeFormatAndMount) error { return nil }

func scsiHostRescan(azureutils.IOHandler, *mount.SafeFormatAndMount) {}

func rescanVolume(azureutils.IOHandler, string) error { return nil }

func rescanAllVolumes(azureutils.IOHandler) error { return nil }
