package volume_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// stage is what a driver does for a pod, from a blank disk on.
func (d driver) stage(ctx context.Context) error {
	if _, err := d.disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: 1, IsOnline: true}); err != nil {
		return err
	}
	if _, err := d.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: 1}); err != nil {
		return err
	}
	found, err := d.volumes.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: 1})
	if err != nil {
		return err
	}
	id := found.VolumeIDs[0]
	if _, err := d.volumes.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: id}); err != nil {
		return err
	}
	_, err = d.volumes.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: id, TargetPath: staged})
	return err
}

const lateVolume = `\\?\Volume{00000000-0000-4000-8000-000000000001}\`

// lateRequests are requests that Windows carries out late: the call, what is on the disk, and the operation that makes it.
var lateRequests = map[string]struct {
	call       string
	partitions []winsim.Partition
	prepare    func(*winsim.Node) error
	request    func(context.Context, driver) error
	doing      string // as errors of others name it
}{
	"flush": {
		call: "FlushVolume", partitions: precious(), doing: "writing the cache of volume",
		prepare: func(n *winsim.Node) error { return n.MountFolder(staged, lateVolume) },
		request: func(ctx context.Context, d driver) error {
			_, err := d.volumes.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeID: lateVolume, TargetPath: staged})
			return err
		},
	},
	"offline": {
		call: "SetDiskAttributes", partitions: precious(), doing: "taking disk 1 offline",
		request: func(ctx context.Context, d driver) error {
			_, err := d.disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: 1})
			return err
		},
	},
	"format": {
		call: "Format", partitions: []winsim.Partition{{Volume: &winsim.Volume{ID: lateVolume, FileSystem: winsim.FileSystemNone}}}, doing: "formatting volume",
		request: func(ctx context.Context, d driver) error {
			_, err := d.volumes.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: lateVolume})
			return err
		},
	},
	"initialize": {call: "CreateDisk", request: partition, doing: "initializing disk 1"},
	"partition":  {call: "SetDriveLayout", request: partition, doing: "partitioning disk 1"},
	"extend": {
		call: "ExtendVolume", partitions: precious(), doing: "growing volume",
		prepare: func(n *winsim.Node) error { return n.GrowDisk(1, 20*winsim.GiB) },
		request: func(ctx context.Context, d driver) error {
			_, err := d.volumes.ResizeVolume(ctx, &volume.ResizeVolumeRequest{VolumeID: lateVolume})
			return err
		},
	},
	"mount": {
		call: "SetMountPoint", partitions: precious(), doing: "mounting volume",
		request: func(ctx context.Context, d driver) error {
			_, err := d.volumes.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: lateVolume, TargetPath: otherMount})
			return err
		},
	},
}

const otherMount = `C:\var\lib\kubelet\plugins\second`

func precious() []winsim.Partition {
	return []winsim.Partition{{Volume: &winsim.Volume{ID: lateVolume, Files: []winsim.File{{Path: `\precious`, Content: "data"}}}}}
}

func partition(ctx context.Context, d driver) error {
	_, err := d.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: 1})
	return err
}

// TestLateRequests: a request hangs, its caller gives up, and another pod wants the volume. It does not get it before Windows
// has carried out the request, and keeps it after.
func TestLateRequests(t *testing.T) {
	for name, c := range lateRequests {
		for how, trouble := range map[string]winsim.Fault{
			"with the disk": {Do: func(n *winsim.Node) { _ = n.HangDisk(1) }},
			"alone":         {Delay: 1000 * time.Hour},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					model := winsim.Default()
					model.Disks[1] = winsim.Disk{Size: 10 * winsim.GiB, Partitions: c.partitions}
					if c.partitions != nil {
						model.Disks[1].Layout = winsim.LayoutGPT
					}
					node, err := winsim.New(model)
					require.NoError(t, err)
					t.Cleanup(node.Reboot)
					if c.prepare != nil {
						require.NoError(t, c.prepare(node))
					}
					d := publishedOn(t, node)
					trouble.Call, trouble.Times = c.call, 1
					fault, err := node.Inject(trouble)
					require.NoError(t, err)

					given, leave := context.WithTimeout(t.Context(), 2*time.Minute)
					defer leave()
					if err := c.request(given, d); err == nil || fault.Hits() != 1 {
						t.Fatalf("%d calls of %s hang, and the request ends with %v", fault.Hits(), c.call, err)
					}
					named := false
					for range 10 { // over at least 10 minutes, after which no change waits for Windows
						given, leave := context.WithTimeout(t.Context(), 2*time.Minute)
						err := d.stage(given)
						leave()
						if err == nil {
							t.Fatalf("another pod has the volume, although Windows is still %s", c.doing)
						}
						named = named || errors.Is(err, winerr.Unavailable) && strings.Contains(err.Error(), c.doing)
						time.Sleep(time.Minute)
					}
					if !named {
						t.Errorf("no error says that it is %s", c.doing)
					}

					fault.Remove()
					require.NoError(t, node.HealDisk(1))
					synctest.Wait()
					require.NoError(t, d.stage(t.Context()))
					require.NoError(t, node.WriteFile(staged+`\new`, "pod"))
					time.Sleep(time.Hour)
					if got, err := node.ReadFile(staged + `\new`); got != "pod" || err != nil {
						t.Errorf("the new pod reads %q, %v", got, err)
					}
					if c.partitions != nil && c.partitions[0].Volume.Files != nil {
						if got, err := node.ReadFile(staged + `\precious`); got != "data" || err != nil {
							t.Errorf("the data of before: %q, %v", got, err)
						}
					}
					if info, err := node.DiskInfo(1); err != nil || info.Offline || info.ReadOnly {
						t.Errorf("the disk is offline %v, read-only %v, %v", info.Offline, info.ReadOnly, err)
					}
					if c.call == "SetMountPoint" && node.Tree(otherMount) != otherMount+"\n" && node.Exists(otherMount) {
						t.Error("a mount that was given up is left")
					}
				})
			})
		}
	}
}

// TestLateRequests_MountSeen: Windows shows a mount before it answers, and the mount is undone if its caller has left. Until
// then no question answers that the volume is mounted: a pod would lose the folder.
func TestLateRequests_MountSeen(t *testing.T) {
	for _, diskHangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			model := winsim.Default()
			model.Disks[1] = winsim.Disk{Size: 10 * winsim.GiB, Layout: winsim.LayoutGPT, Partitions: precious()}
			node, err := winsim.New(model)
			require.NoError(t, err)
			t.Cleanup(node.Reboot)
			d := publishedOn(t, node)
			fault, err := node.Inject(winsim.Fault{Call: "SetMountPoint", Times: 1, Late: 1000 * time.Hour})
			require.NoError(t, err)
			given, leave := context.WithTimeout(t.Context(), 2*time.Minute)
			defer leave()
			go func() {
				if time.Sleep(time.Second); diskHangs {
					require.NoError(t, node.HangDisk(1))
				}
			}()
			mount := func(ctx context.Context) error {
				_, err := d.volumes.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: lateVolume, TargetPath: staged})
				return err
			}
			if err := mount(given); err == nil {
				t.Error("a mount succeeds without an answer")
			}
			require.NoError(t, node.HealDisk(1))
			for range 12 { // while the change waits for Windows, and after that
				if id, err := d.volumeAt(t.Context()); !errors.Is(err, winerr.Unavailable) {
					t.Errorf("GetVolumeIDFromTargetPath: %q, %v", id, err)
				}
				if answer, err := d.files.IsSymlink(t.Context(), &filesystem.IsSymlinkRequest{Path: staged}); !errors.Is(err, winerr.Unavailable) {
					t.Errorf("IsSymlink: %v, %v", answer, err)
				}
				time.Sleep(time.Minute)
			}
			fault.Remove()
			synctest.Wait() // it is undone
			require.NoError(t, mount(t.Context()))
			require.NoError(t, node.WriteFile(staged+`\new`, "pod"))
			time.Sleep(time.Hour)
			if got, err := node.ReadFile(staged + `\new`); got != "pod" || err != nil {
				t.Errorf("the pod reads %q, %v", got, err)
			}
		})
	}
}
