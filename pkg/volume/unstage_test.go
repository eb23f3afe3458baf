package volume_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const staged = `C:\var\lib\kubelet\plugins\globalmount`

// driver has the groups that drivers use, and the order in which they use them to unstage a volume.
type driver struct {
	files   *filesystem.Filesystem
	disks   *disk.Disk
	volumes *volume.Volume
}

func (d driver) volumeAt(ctx context.Context) (string, error) {
	response, err := d.volumes.GetVolumeIDFromTargetPath(ctx, &volume.GetVolumeIDFromTargetPathRequest{TargetPath: staged})
	if err != nil {
		return "", err
	}
	return response.VolumeID, nil
}

func (d driver) rmdir(ctx context.Context) error {
	_, err := d.files.Rmdir(ctx, &filesystem.RmdirRequest{Path: staged, Force: true})
	return err
}

// unmount is what aws-ebs, gcp-pd and vsphere do.
func (d driver) unmount(ctx context.Context, id string) error {
	if _, err := d.volumes.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeID: id, TargetPath: staged}); err != nil {
		return err
	}
	if err := d.rmdir(ctx); err != nil {
		return err
	}
	number, err := d.volumes.GetDiskNumberFromVolumeID(ctx, &volume.GetDiskNumberFromVolumeIDRequest{VolumeID: id})
	if err != nil {
		return err
	}
	_, err = d.disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: number.DiskNumber, IsOnline: false})
	return err
}

var unstages = map[string]func(context.Context, driver) error{
	"aws-ebs 1.63": func(ctx context.Context, d driver) error {
		id, err := d.volumeAt(ctx)
		if err != nil {
			if strings.Contains(err.Error(), "because it does not exist") {
				return nil // not mounted
			}
			return err
		}
		if _, err := d.volumes.GetDiskNumberFromVolumeID(ctx, &volume.GetDiskNumberFromVolumeIDRequest{VolumeID: id}); err != nil {
			return err
		}
		return d.unmount(ctx, id)
	},
	"gcp-pd 1.28, vsphere 3.3": func(ctx context.Context, d driver) error {
		exists, err := d.files.PathExists(ctx, &filesystem.PathExistsRequest{Path: staged})
		if err != nil || !exists.Exists {
			return err
		}
		id, err := d.volumeAt(ctx)
		if err != nil {
			return err
		}
		return d.unmount(ctx, id)
	},
	"azuredisk 1.33": func(ctx context.Context, d driver) error {
		if id, err := d.volumeAt(ctx); err == nil {
			_, _ = d.volumes.WriteVolumeCache(ctx, &volume.WriteVolumeCacheRequest{VolumeID: id})
		}
		return d.rmdir(ctx)
	},
}

// TestUnstage: kubelet repeats NodeUnstageVolume until it succeeds, and then removes the folder itself if it is there.
// With released drivers it succeeds within a minute, whatever the disk does.
func TestUnstage(t *testing.T) {
	for what, trouble := range map[string]func(*winsim.Node) error{
		"healthy":   func(*winsim.Node) error { return nil },
		"torn away": func(n *winsim.Node) error { return n.DetachDisk(1) },
		"fails":     func(n *winsim.Node) error { return n.FailDisk(1) },
		"hangs":     func(n *winsim.Node) error { return n.HangDisk(1) },
	} {
		for name, unstage := range unstages {
			t.Run(what+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					testUnstage(t, trouble, unstage, what == "torn away")
					if took := time.Since(start); took > time.Minute {
						t.Errorf("it took %v", took)
					}
				})
			})
		}
	}
}

func testUnstage(t *testing.T, trouble func(*winsim.Node) error, unstage func(context.Context, driver) error, leavesFolder bool) {
	t.Helper()
	model := winsim.Default()
	const id = `\\?\Volume{00000000-0000-4000-8000-000000000001}\`
	model.Disks[1].Layout, model.Disks[1].Partitions = winsim.LayoutGPT, []winsim.Partition{{Volume: &winsim.Volume{ID: id}}}
	node, err := winsim.New(model)
	require.NoError(t, err)
	require.NoError(t, node.MountFolder(staged, id))
	require.NoError(t, trouble(node))
	var d driver
	d.files, err = filesystem.New(node.Filesystem())
	require.NoError(t, err)
	d.disks, err = disk.New(node.Disk())
	require.NoError(t, err)
	d.volumes, err = volume.New(node.Volume())
	require.NoError(t, err)
	for attempt := 1; ; attempt++ {
		err := unstage(t.Context(), d)
		if err == nil {
			break
		}
		if t.Logf("attempt %d: %v", attempt, err); attempt == 3 {
			t.Fatal("it still fails")
		}
	}
	if node.Exists(staged) && !leavesFolder {
		t.Error("the folder is left")
	}
}
