package gceGCEDriver

import (
	"fmt"
	"strconv"

	kit "github.com/kubernetes-csi/csi-proxy/mounter"
	"k8s.io/mount-utils"
	"sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/common"
	mounter "sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/mount-manager"
)

// formatAndMount stages the disk with the number that getDevicePath returned.
func (ns *GCENodeServer) formatAndMount(source, target, fstype string, options []string, m *mount.SafeFormatAndMount) error {
	return m.Mount(source, target, fstype, options)
}

// getDevicePath returns the number of the disk.
func getDevicePath(ns *GCENodeServer, volumeID, _ string) (string, error) {
	_, volumeKey, err := common.VolumeIDToKey(volumeID)
	if err != nil {
		return "", err
	}
	deviceName, err := common.GetDeviceName(volumeKey)
	if err != nil {
		return "", fmt.Errorf("error getting device name: %w", err)
	}
	ctx := mounter.Context(ns.Mounter)
	number, err := mounter.Kit(ns.Mounter).FindDisk(ctx, mounter.DiskKeys(ctx, deviceName))
	return strconv.FormatUint(uint64(number), 10), err
}

func getBlockSizeBytes(devicePath string, m *mount.SafeFormatAndMount) (int64, error) {
	number, err := strconv.ParseUint(devicePath, 10, 32)
	if err != nil {
		return 0, err
	}
	return mounter.Kit(m).DiskBytes(mounter.Context(m), uint32(number))
}

// The kit makes and replaces the folders that it needs.

func preparePublishPath(string, *mount.SafeFormatAndMount) error { return nil }

func prepareStagePath(string, *mount.SafeFormatAndMount) error { return nil }

func cleanupPublishPath(path string, m *mount.SafeFormatAndMount) error {
	return mounter.Kit(m).Unpublish(mounter.Context(m), path)
}

func cleanupStagePath(path string, m *mount.SafeFormatAndMount) error {
	return mounter.Kit(m).Unstage(mounter.Context(m), kit.UnstageRequest{Path: path, Offline: true})
}

// There is no read-ahead to set on Windows.

func setReadAheadKB(string, int64, *mount.SafeFormatAndMount) error { return nil }
