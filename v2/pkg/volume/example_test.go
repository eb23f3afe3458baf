package volume_test

import (
	"context"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// A driver finds a disk, formats it if it is blank, and mounts it. Here it does so on an emulated node; on a real one it
// calls node.New(), and the hosts are diskapi.New() and volumeapi.New().
func Example() {
	ctx := context.Background()
	emulated, err := winsim.New(winsim.Azure())
	if err != nil {
		panic(err)
	}
	machine, err := node.NewOn(emulated)
	if err != nil {
		panic(err)
	}
	disks, err := disk.New(emulated.Disk())
	if err != nil {
		panic(err)
	}
	volumes, err := volume.New(emulated.Volume(), volume.WorkingDirs(`C:\var\lib\kubelet`))
	if err != nil {
		panic(err)
	}

	stage := func(lun, folder string) error {
		found, err := machine.FindDisk(ctx, node.Query{LUN: lun})
		if err != nil {
			return err // fs.ErrNotExist: call disks.Rescan, and try again
		}
		if _, err := disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: *found.Number}); err != nil {
			return err
		}
		list, err := volumes.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: *found.Number})
		if err != nil {
			return err
		}
		if len(list.VolumeIDs) != 1 {
			return fmt.Errorf("disk %d has %d volumes", *found.Number, len(list.VolumeIDs))
		}
		id := list.VolumeIDs[0]
		if _, err := volumes.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: id}); err != nil {
			return err
		}
		_, err = volumes.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: id, TargetPath: folder})
		return err
	}
	const staging = `C:\var\lib\kubelet\plugins\csi.example.com\globalmount`
	if err := emulated.Mkdir(staging); err != nil {
		panic(err)
	}
	fmt.Println(stage("0", staging))
	fmt.Println(emulated.WriteFile(staging+`\data.txt`, "works"))
	// Output:
	// <nil>
	// <nil>
}
