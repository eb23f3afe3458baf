package smb

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"

	kit "github.com/kubernetes-csi/csi-proxy/mounter"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/volume"
	mount "k8s.io/mount-utils"
)

func kitOf(m *mount.SafeFormatAndMount) *kit.Mounter { return m.Interface.(*kit.Mounter) }

func withContext(ctx context.Context, m *mount.SafeFormatAndMount) *kit.Mounter {
	return kitOf(m).WithContext(ctx)
}

// Mount stages a share. The options are the user name and the password.
func Mount(ctx context.Context, m *mount.SafeFormatAndMount, source, target, _ string, mountOptions, sensitiveMountOptions []string, _ string) error {
	if len(mountOptions) == 0 || len(sensitiveMountOptions) == 0 {
		return errors.New("a user name and a password are required")
	}
	_, err := kitOf(m).Stage(ctx, kit.StageRequest{
		Path:   target,
		Source: kit.SMB{Remote: withAddress(source), Username: mountOptions[0], Password: sensitiveMountOptions[0]},
	})
	return err
}

// withAddress replaces the name of a service by its address. The node cannot resolve the name.
func withAddress(source string) string {
	host, _, _ := strings.Cut(strings.TrimLeft(source, "/"), "/")
	if !strings.HasSuffix(host, "svc.cluster.local") {
		return source
	}
	ip, err := net.ResolveIPAddr("ip4", host)
	if err != nil {
		klog.Warningf("could not resolve name to IPv4 address for host %s, failed with error: %v", host, err)
		return source
	}
	return strings.Replace(source, host, ip.String(), 1)
}

// CleanupSMBMountPoint unstages a share.
func CleanupSMBMountPoint(ctx context.Context, m *mount.SafeFormatAndMount, target string, _ bool, _ string) error {
	return kitOf(m).Unstage(ctx, kit.UnstageRequest{Path: target})
}

// CleanupMountPoint unpublishes a share, or disconnects one that was mounted at the path, as inline volumes are.
func CleanupMountPoint(ctx context.Context, m *mount.SafeFormatAndMount, target string, _ bool) error {
	return withContext(ctx, m).Unmount(target)
}

// getMetrics measures a share.
func getMetrics(ctx context.Context, m *mount.SafeFormatAndMount, path string) (*volume.Metrics, error) {
	usage, err := kitOf(m).Stats(ctx, path)
	number := func(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.BinarySI) }
	return &volume.Metrics{
		Capacity: number(usage.TotalBytes), Used: number(usage.UsedBytes), Available: number(usage.AvailableBytes),
		Inodes: number(0), InodesUsed: number(0), InodesFree: number(0),
	}, err
}

func Mkdir(ctx context.Context, m *mount.SafeFormatAndMount, name string, _ os.FileMode) error {
	return kitOf(m).MakeDir(ctx, name)
}

// The kit makes and replaces the folders that it needs.

func preparePublishPath(string, *mount.SafeFormatAndMount) error { return nil }

func prepareStagePath(string, *mount.SafeFormatAndMount) error { return nil }
