package winsim_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

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

// A slow node: the volume is late, the storage service does not know it, and the first format
// fails.
func ExampleNode_Inject_storage() {
	model := winsim.Default()
	model.Storage.VolumeArrival = 20e9
	model.Storage.ServiceDelay = 60e9
	node, err := winsim.New(model)
	if err != nil {
		log.Fatal(err)
	}
	fault, err := node.Inject(winsim.Fault{Call: "Format", Times: 1, Error: 6})
	if err != nil {
		log.Fatal(err)
	}
	disks, volumes := node.Disk(), node.Volume()
	for _, step := range []func() error{
		func() error { return disks.InitializeDisk(1) },
		func() error { return disks.CreateBasicPartition(1) },
		func() error {
			ids, err := volumes.ListVolumesOnDisk(1, 0)
			if err != nil {
				return err
			}
			return volumes.FormatVolume(ids[0])
		},
	} {
		if err := step(); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("formatted in spite of", fault.Hits(), "failure")
	// Output: formatted in spite of 1 failure
}

// Changes to a node survive the end of its process.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "node")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "node.json")

	node, closeFile, err := winsim.Open(winsim.Default(), file, func(err error) { log.Print(err) })
	if err != nil {
		log.Fatal(err)
	}
	if err := node.WriteFile(`C:\var\lib\kubelet\pods\1\data`, "written"); err != nil {
		log.Fatal(err)
	}
	closeFile() // a process that ends or is killed does so, too

	node, closeFile, err = winsim.Open(winsim.Default(), file, func(err error) { log.Print(err) })
	if err != nil {
		log.Fatal(err)
	}
	defer closeFile()
	content, err := node.ReadFile(`C:\var\lib\kubelet\pods\1\data`)
	fmt.Println(content, err)
	// Output: written <nil>
}
