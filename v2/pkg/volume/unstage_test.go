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

const (
	staged  = `C:\var\lib\kubelet\plugins\globalmount`
	podLink = `C:\var\lib\kubelet\pods\1\mount`
)

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
	azuredisk: func(ctx context.Context, d driver) error {
		if id, err := d.volumeAt(ctx); err == nil {
			_, _ = d.volumes.WriteVolumeCache(ctx, &volume.WriteVolumeCacheRequest{VolumeID: id})
		}
		return d.rmdir(ctx)
	},
}

// TestUnstage: kubelet repeats NodeUnstageVolume until it succeeds, and then removes the folder itself if nothing is mounted there.
// With released drivers it succeeds within a minute, and if the disk hangs when it has been silent for six minutes. If the
// disk was torn away, most of them make no call that removes the mount, and their questions change nothing.
func TestUnstage(t *testing.T) {
	for what, trouble := range map[string]func(*winsim.Node) error{
		"healthy": func(*winsim.Node) error { return nil },
		tornAway:  func(n *winsim.Node) error { return n.DetachDisk(1) },
		"fails":   func(n *winsim.Node) error { return n.FailDisk(1) },
		hangs:     func(n *winsim.Node) error { return n.HangDisk(1) },
	} {
		for name, unstage := range unstages {
			t.Run(what+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					left := testUnstage(t, trouble, unstage)
					if kept := what == tornAway && name != azuredisk; kept != strings.Contains(left, ">") {
						t.Errorf("there is left:\n%s", left)
					}
					limit := time.Minute
					if what == hangs && name != azuredisk { // which does not insist on the flush
						limit = 10 * time.Minute
					}
					if took := time.Since(start); took > limit || limit > time.Minute && took < 6*time.Minute {
						t.Errorf("it took %v", took)
					}
				})
			})
		}
	}
}

const (
	hangs     = "hangs"
	tornAway  = "torn away"
	azuredisk = "azuredisk 1.33"
)

func testUnstage(t *testing.T, trouble func(*winsim.Node) error, unstage func(context.Context, driver) error) (left string) {
	t.Helper()
	node := stagedNode(t)
	d := publishedOn(t, node)
	require.NoError(t, trouble(node))
	_, err := d.files.Rmdir(t.Context(), &filesystem.RmdirRequest{Path: podLink, Force: true}) // NodeUnpublishVolume
	require.NoError(t, err)
	for attempt := 1; ; attempt++ {
		err := unstage(t.Context(), d)
		if err == nil {
			break
		}
		if t.Logf("attempt %d: %v", attempt, err); attempt == 12 {
			t.Fatal("it still fails")
		}
		time.Sleep(min(500*time.Millisecond<<attempt, 122*time.Second)) // as kubelet does
	}
	return node.Tree(staged)
}

// publishedOn has the groups as the daemon has them, and a pod's link to the staged volume.
func publishedOn(t *testing.T, node *winsim.Node) driver {
	t.Helper()
	var d driver
	var err error
	d.files, err = filesystem.New(node.Filesystem())
	require.NoError(t, err)
	d.disks, err = disk.New(node.Disk())
	require.NoError(t, err)
	d.volumes, err = volume.New(node.Volume())
	require.NoError(t, err)
	_, err = d.files.Mkdir(t.Context(), &filesystem.MkdirRequest{Path: `C:\var\lib\kubelet\pods\1`})
	require.NoError(t, err)
	_, err = d.files.CreateSymlink(t.Context(), &filesystem.CreateSymlinkRequest{SourcePath: staged, TargetPath: podLink})
	require.NoError(t, err)
	return d
}

func stagedNode(t *testing.T) *winsim.Node {
	t.Helper()
	model := winsim.Default()
	const id = `\\?\Volume{00000000-0000-4000-8000-000000000001}\`
	model.Disks[1].Layout, model.Disks[1].Partitions = winsim.LayoutGPT, []winsim.Partition{{Volume: &winsim.Volume{ID: id}}}
	node, err := winsim.New(model)
	require.NoError(t, err)
	t.Cleanup(node.Reboot) // ends what hangs
	require.NoError(t, node.MountFolder(staged, id))
	return node
}
