package winsim_test

import (
	"context"
	"fmt"
	"log"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// A blank disk of the default node becomes a volume, as in a driver's NodeStageVolume.
func Example_storage() {
	node, err := winsim.New(winsim.Default())
	if err != nil {
		log.Fatal(err)
	}
	disks, err := disk.New(node.Disk())
	if err != nil {
		log.Fatal(err)
	}
	volumes, err := volume.New(node.Volume())
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: 1}); err != nil {
		log.Fatal(err)
	}
	list, err := volumes.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: 1})
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range list.VolumeIDs {
		if _, err := volumes.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: id}); err != nil {
			log.Fatal(err)
		}
	}
	info, err := node.DiskInfo(1)
	if err != nil {
		log.Fatal(err)
	}
	msr, data := info.Partitions[0], info.Partitions[1]
	fmt.Println(msr.Type, msr.Size)
	fmt.Println(data.Type, data.Size, data.Volume.FileSystem)
	// Output:
	// msr 16367KiB
	// basic 10223MiB ntfs
}
