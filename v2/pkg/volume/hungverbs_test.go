package volume_test

import (
	"context"
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

// The volumes of disk 1: one is staged, the other one has no file system. Disk 2 is blank.
const (
	hungVolume = `\\?\Volume{11111111-2222-3333-4444-555555555501}\`
	hungRaw    = `\\?\Volume{11111111-2222-3333-4444-555555555502}\`
)

// hungVerbs are the verbs of drivers that reach what hangs.
var hungVerbs = map[string]struct {
	limit time.Duration
	call  func(context.Context, driver) error
}{
	"GetVolumeStats": {question, func(ctx context.Context, d driver) error {
		_, err := d.volumes.GetVolumeStats(ctx, &volume.GetVolumeStatsRequest{VolumeID: hungVolume})
		return err
	}},
	"IsVolumeFormatted": {question, func(ctx context.Context, d driver) error {
		_, err := d.volumes.IsVolumeFormatted(ctx, &volume.IsVolumeFormattedRequest{VolumeID: hungVolume})
		return err
	}},
	"GetClosestVolumeIDFromTargetPath": {question, func(ctx context.Context, d driver) error {
		_, err := d.volumes.GetClosestVolumeIDFromTargetPath(ctx, &volume.GetClosestVolumeIDFromTargetPathRequest{TargetPath: staged + `\dir\below`})
		return err
	}},
	"PathExists": {question, func(ctx context.Context, d driver) error {
		_, err := d.files.PathExists(ctx, &filesystem.PathExistsRequest{Path: staged + `\dir`})
		return err
	}},
	"IsSymlink": {question, func(ctx context.Context, d driver) error {
		_, err := d.files.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: staged + `\dir`})
		return err
	}},
	"GetPathStats": {question, func(ctx context.Context, d driver) error {
		_, err := d.files.GetPathStats(ctx, &filesystem.GetPathStatsRequest{Path: staged})
		return err
	}},
	"ListDirectory": {question, func(ctx context.Context, d driver) error {
		_, err := d.files.ListDirectory(ctx, &filesystem.ListDirectoryRequest{Path: staged + `\dir`})
		return err
	}},
	"Mkdir": {change, func(ctx context.Context, d driver) error {
		_, err := d.files.Mkdir(ctx, &filesystem.MkdirRequest{Path: staged + `\new`})
		return err
	}},
	"Rmdir": {change, func(ctx context.Context, d driver) error {
		_, err := d.files.Rmdir(ctx, &filesystem.RmdirRequest{Path: staged + `\dir`, Force: true})
		return err
	}},
	"RmdirContents": {change, func(ctx context.Context, d driver) error {
		_, err := d.files.RmdirContents(ctx, &filesystem.RmdirContentsRequest{Path: staged + `\dir`})
		return err
	}},
	"CreateSymlink": {change, func(ctx context.Context, d driver) error {
		_, err := d.files.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: staged + `\dir`, TargetPath: staged + `\link`})
		return err
	}},
	"FormatVolume": {change, func(ctx context.Context, d driver) error {
		_, err := d.volumes.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: hungRaw})
		return err
	}},
	"MountVolume": {change, func(ctx context.Context, d driver) error {
		_, err := d.volumes.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: hungVolume, TargetPath: staged + `2`})
		return err
	}},
	"ResizeVolume": {change, func(ctx context.Context, d driver) error {
		_, err := d.volumes.ResizeVolume(ctx, &volume.ResizeVolumeRequest{VolumeID: hungVolume, SizeBytes: int64(5 * winsim.GiB)})
		return err
	}},
	"UnmountVolume": {change, func(ctx context.Context, d driver) error {
		_, err := d.volumes.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeID: hungVolume, TargetPath: staged})
		return err
	}},
	"WriteVolumeCache": {change, func(ctx context.Context, d driver) error {
		_, err := d.volumes.WriteVolumeCache(ctx, &volume.WriteVolumeCacheRequest{VolumeID: hungVolume})
		return err
	}},
	"PartitionDisk": {change, func(ctx context.Context, d driver) error {
		_, err := d.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: 2})
		return err
	}},
	"SetDiskState": {change, func(ctx context.Context, d driver) error {
		_, err := d.disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: 1})
		return err
	}},
}

// The limits for callers without a deadline.
const (
	question = 2 * time.Minute
	change   = 15 * time.Minute
)

// TestHungVerbs: each verb returns from a disk that hangs to a caller without a deadline, and so does its repetition. When
// the disk has healed, the verb succeeds.
func TestHungVerbs(t *testing.T) {
	for name, verb := range hungVerbs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := winsim.Default()
				model.Disks = append(model.Disks[:1], winsim.Disk{Number: 1, Size: 10 * winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{
					{Size: winsim.GiB, Volume: &winsim.Volume{ID: hungRaw, FileSystem: winsim.FileSystemNone}}, {Size: 4 * winsim.GiB, Volume: &winsim.Volume{ID: hungVolume}},
				}}, winsim.Disk{Number: 2, Size: winsim.GiB})
				node, err := winsim.New(model)
				require.NoError(t, err)
				t.Cleanup(node.Reboot)
				d := publishedOn(t, node)
				_, err = d.volumes.MountVolume(t.Context(), &volume.MountVolumeRequest{VolumeID: hungVolume, TargetPath: staged})
				require.NoError(t, err)
				require.NoError(t, node.WriteFile(staged+`\dir\file`, "text"))
				for _, number := range []uint32{1, 2} {
					require.NoError(t, node.HangDisk(number))
				}
				for range 2 {
					start := time.Now()
					err := verb.call(context.WithoutCancel(t.Context()), d)
					took, kind := time.Since(start), winerr.KindOf(err)
					t.Logf("after %v: %v", took, err)
					if kind != winerr.Unavailable && kind != winerr.Deadline || took > verb.limit {
						t.Errorf("after %v: %v (%v)", took, err, kind)
					}
				}
				for _, number := range []uint32{1, 2} {
					require.NoError(t, node.HealDisk(number))
				}
				synctest.Wait() // Windows carries out what it has
				require.NoError(t, verb.call(t.Context(), d))
			})
		})
	}
}
