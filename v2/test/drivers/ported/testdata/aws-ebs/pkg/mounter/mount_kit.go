package mounter

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"

	kit "github.com/kubernetes-csi/csi-proxy/mounter"
	mountutils "k8s.io/mount-utils"
)

// NewSafeMounter works through the pipes of CSI Proxy.
func NewSafeMounter() (*mountutils.SafeFormatAndMount, error) { return newSafeMounter(kit.Daemon) }

// NewSafeMounterV2 works in a HostProcess container.
func NewSafeMounterV2() (*mountutils.SafeFormatAndMount, error) { return newSafeMounter(kit.Library) }

func newSafeMounter(mode kit.Mode) (*mountutils.SafeFormatAndMount, error) {
	m, err := kit.New(context.Background(), kit.WithMode(mode))
	if err != nil {
		return nil, err
	}
	return Bind(context.Background(), m), nil
}

// bound is a mounter for one request.
type bound struct {
	*kit.Mounter
	ctx context.Context
}

// Bind returns a mounter whose calls end with ctx.
func Bind(ctx context.Context, m *kit.Mounter) *mountutils.SafeFormatAndMount {
	safe := kit.NewSafeFormatAndMount(m).SafeFormatAndMount
	safe.Interface = bound{m.WithContext(ctx), ctx}
	return safe
}

func (m *NodeMounter) WithContext(ctx context.Context) Mounter {
	return &NodeMounter{Bind(ctx, m.kit())}
}

func (m *NodeMounter) ctx() context.Context { return m.Interface.(bound).ctx }

func (m *NodeMounter) kit() *kit.Mounter { return m.Interface.(bound).Mounter }

func (m *NodeMounter) FindDevicePath(_, volumeID, _, _ string) (string, error) {
	// The serial number is vol0123, an underscore and a number.
	number, err := m.kit().FindDisk(m.ctx(), kit.Disk{SerialPrefix: strings.ReplaceAll(volumeID, "-", "")})
	return strconv.Itoa(int(number)), err
}

func (m *NodeMounter) FormatAndMountSensitiveWithFormatOptions(source, target, fstype string, options, sensitiveOptions, formatOptions []string) error {
	if len(sensitiveOptions)+len(formatOptions) > 0 {
		return errors.New("sensitive options and format options are not supported on Windows")
	}
	number, err := diskNumber(source)
	if err != nil {
		return err
	}
	_, err = m.kit().Stage(m.ctx(), kit.StageRequest{Path: target, Source: kit.DiskNumber(number), FSType: fstype, MountFlags: options})
	return err
}

func diskNumber(device string) (uint32, error) {
	number, err := strconv.ParseUint(device, 10, 32)
	return uint32(number), err
}

// GetDeviceNameFromMount returns the number of the disk, or the volume if its disk is gone, so that
// the node service unstages it.
func (m *NodeMounter) GetDeviceNameFromMount(mountPath string) (string, int, error) {
	staged, err := m.kit().StagedAt(m.ctx(), mountPath)
	switch {
	case err == nil:
		return strconv.Itoa(int(staged.DiskNumber)), 1, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", 0, err
	case staged.VolumeID != "":
		return staged.VolumeID, 1, nil
	}
	return "", 0, nil
}

func (m *NodeMounter) GetBlockSizeBytes(devicePath string) (int64, error) {
	number, err := diskNumber(devicePath)
	if err != nil {
		return -1, err
	}
	return m.kit().DiskBytes(m.ctx(), number)
}

func (m *NodeMounter) NeedResize(_, deviceMountPath string) (bool, error) {
	return m.kit().NeedsResize(m.ctx(), deviceMountPath)
}

func (m *NodeMounter) Resize(_, deviceMountPath string) (bool, error) {
	_, err := m.kit().Expand(m.ctx(), deviceMountPath, 0)
	return err == nil, err
}

// PreparePublishTarget removes a folder that the kubelet made, and an old link.
func (m *NodeMounter) PreparePublishTarget(target string) error { return m.Unpublish(target) }

func (m *NodeMounter) Unpublish(path string) error {
	return m.kit().Unpublish(m.ctx(), path)
}

func (m *NodeMounter) Unstage(path string) error {
	return m.kit().Unstage(m.ctx(), kit.UnstageRequest{Path: path, Offline: true})
}

func (m *NodeMounter) GetVolumeStats(volumePath string) (VolumeStats, error) {
	usage, err := m.kit().Stats(m.ctx(), volumePath)
	return VolumeStats{TotalBytes: usage.TotalBytes, UsedBytes: usage.UsedBytes, AvailableBytes: usage.AvailableBytes}, err
}

func (m *NodeMounter) PathExists(path string) (bool, error) {
	return m.kit().Exists(m.ctx(), path)
}

func (m *NodeMounter) MakeDir(path string) error { return m.kit().MakeDir(m.ctx(), path) }

// There are no block volumes on Windows.

func (m *NodeMounter) MakeFile(string) error { return errors.ErrUnsupported }

func (m *NodeMounter) IsBlockDevice(string) (bool, error) { return false, nil }

func (m *NodeMounter) IsCorruptedMnt(err error) bool { return mountutils.IsCorruptedMnt(err) }
