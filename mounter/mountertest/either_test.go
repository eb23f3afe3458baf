package mountertest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/mounter/remote"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// csiDriver is written for the interfaces of the library.
type csiDriver struct {
	machine nodeapi.Interface
	disks   disk.Extended
	volumes volume.Extended
}

// stage mounts the disk at a LUN.
func (d csiDriver) stage(ctx context.Context, lun string) (volume.Health, error) {
	found, err := d.machine.FindDisk(ctx, nodeapi.Query{LUN: lun, Adapter: "1"})
	if err != nil {
		return volume.Health{}, err
	}
	mustBe := disk.MustBe{Device: found.Path, Serial: found.Serial, Page83: found.Page83}
	if _, err := d.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: *found.Number, MustBe: mustBe}); err != nil {
		return volume.Health{}, err
	}
	list, err := d.volumes.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: *found.Number})
	if err != nil || len(list.VolumeIDs) != 1 {
		return volume.Health{}, fmt.Errorf("disk %d has the volumes %q: %w", *found.Number, list.VolumeIDs, err)
	}
	id := list.VolumeIDs[0]
	if _, err := d.volumes.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: id, Label: "data"}); err != nil {
		return volume.Health{}, err
	}
	if _, err := d.volumes.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: id, TargetPath: either}); err != nil {
		return volume.Health{}, err
	}
	return d.volumes.Health(ctx, id)
}

// inProcess opens an emulated node. On a real one the hosts are diskapi.New() and volumeapi.New(), and the machine is
// node.New().
func inProcess(emulated *winsim.Node) (d csiDriver, err error) {
	if d.machine, err = nodeapi.NewOn(emulated); err != nil {
		return d, err
	}
	if d.disks, err = disk.New(emulated.Disk()); err != nil {
		return d, err
	}
	d.volumes, err = volume.New(emulated.Volume(), volume.WorkingDirs(`C:\var\lib\kubelet`))
	return d, err
}

const either = `C:\var\lib\kubelet\plugins\csi.example.com\globalmount`

// A driver over the library. TestDriver_ThroughTheDaemon runs the same one over package remote.
func Example() {
	emulated, err := winsim.New(winsim.Azure())
	if err != nil {
		panic(err)
	}
	driver, err := inProcess(emulated)
	if err != nil {
		panic(err)
	}
	health, err := driver.stage(context.Background(), "0")
	fmt.Println(health.FileSystem, health.Dirty, err)
	_, err = driver.stage(context.Background(), "7")
	fmt.Println(err != nil)
	// Output:
	// NTFS false <nil>
	// true
}

// TestDriver_ThroughTheDaemon runs the driver of the example with another line that opens the node.
func TestDriver_ThroughTheDaemon(t *testing.T) {
	emulated, err := winsim.New(winsim.Azure())
	must(t, err)
	daemon, err := remote.New(t.Context(), remote.WithPipePaths(served(t, emulated))) // on a real node: remote.New(ctx)
	must(t, err)
	defer daemon.Close()
	driver := csiDriver{daemon.Node(), daemon.Disk(), daemon.Volume()}
	health, err := driver.stage(t.Context(), "0")
	if err != nil || health.FileSystem != "NTFS" || health.Dirty || len(health.Disks) != 1 {
		t.Errorf("%+v, %v", health, err)
	}
	if _, err := driver.stage(t.Context(), "7"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a LUN without a disk: %v", err)
	}
}
