package mountmanager

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"cloud.google.com/go/compute/metadata"
	kit "github.com/kubernetes-csi/csi-proxy/mounter"
	"k8s.io/klog/v2"
	"k8s.io/mount-utils"
)

// NewSafeMounter works in a HostProcess container, and otherwise through the pipes of CSI Proxy.
func NewSafeMounter(int, time.Duration) (*mount.SafeFormatAndMount, error) {
	m, err := kit.New(context.Background())
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
func Bind(ctx context.Context, m *kit.Mounter) *mount.SafeFormatAndMount {
	safe := kit.NewSafeFormatAndMount(m).SafeFormatAndMount
	safe.Interface = bound{m.WithContext(ctx), ctx}
	return safe
}

func (b bound) WithContext(ctx context.Context) *mount.SafeFormatAndMount {
	return Bind(ctx, b.Mounter)
}

// Kit returns the mounter in m.
func Kit(m *mount.SafeFormatAndMount) *kit.Mounter { return m.Interface.(bound).Mounter }

// Context returns the context of the request.
func Context(m *mount.SafeFormatAndMount) context.Context { return m.Interface.(bound).ctx }

// DiskKeys returns the keys by which Windows knows a disk: the EUI-64 of an NVMe disk, which the
// metadata server reports as a number, or the name of a SCSI disk on page 83.
func DiskKeys(ctx context.Context, deviceName string) kit.Disk {
	text, err := metadata.GetWithContext(ctx, "instance/disks/?recursive=true")
	var disks []struct {
		DeviceName, Interface   string
		NvmeNamespaceIdentifier uint64
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &disks)
	}
	if err != nil {
		klog.V(4).Infof("Without the metadata server %s is taken for a SCSI disk: %v", deviceName, err)
	}
	for _, disk := range disks {
		if disk.DeviceName == deviceName && disk.Interface == "NVME" {
			return kit.Disk{EUI64: fmt.Sprintf("%016x", disk.NvmeNamespaceIdentifier)}
		}
	}
	return kit.Disk{Page83: "Google  " + deviceName}
}

type realStatter struct {
	mounter *mount.SafeFormatAndMount
}

var _ Statter = &realStatter{}

func NewStatter(mounter *mount.SafeFormatAndMount) *realStatter {
	return &realStatter{mounter: mounter}
}

// IsBlockDevice is false: there are no block volumes on Windows.
func (*realStatter) IsBlockDevice(string) (bool, error) { return false, nil }

// StatFS returns volume usage information.
func (r *realStatter) StatFS(path string) (available, capacity, used, inodesFree, inodes, inodesUsed int64, err error) {
	usage, err := Kit(r.mounter).Stats(Context(r.mounter), path)
	return usage.AvailableBytes, usage.TotalBytes, usage.UsedBytes, 0, 0, 0, err
}

// fakeStatter is for tests.
type fakeStatter struct{ realStatter }

func NewFakeStatter(*mount.SafeFormatAndMount) *fakeStatter { return &fakeStatter{} }

func (*fakeStatter) StatFS(string) (available, capacity, used, inodesFree, inodes, inodesUsed int64, err error) {
	return 1, 1, 1, 1, 1, 1, nil
}
