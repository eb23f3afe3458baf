package node_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// A driver for Azure gets the LUN from the cloud. On real machines, use node.New() instead of
// node.NewOn.
func ExampleNode_FindDisk() {
	emulated, err := winsim.New(winsim.AzureNVMe())
	if err != nil {
		panic(err)
	}
	machine, err := node.NewOn(emulated)
	if err != nil {
		panic(err)
	}

	disk, err := machine.FindDisk(context.Background(), node.Query{LUN: "1"})
	var ambiguous *node.AmbiguousError
	switch {
	case errors.As(err, &ambiguous):
		fmt.Println("refuse:", ambiguous)
	case errors.Is(err, fs.ErrNotExist):
		fmt.Println("rescan and try again:", err)
	case err != nil:
		fmt.Println("try again later:", err)
	default:
		fmt.Println("disk", *disk.Number, disk.Model)
	}
	// Output: disk 2 MSFT NVMe Accelerator v1.0
}

// The metadata server of Google Compute Engine reports the EUI-64 of a disk as a decimal number.
func ExampleQuery() {
	emulated, err := winsim.New(winsim.GCENVMe())
	if err != nil {
		panic(err)
	}
	machine, err := node.NewOn(emulated)
	if err != nil {
		panic(err)
	}

	const nvmeNamespaceIdentifier = 1210507561596603963
	query := node.Query{Bus: "nvme", EUI64: fmt.Sprintf("%016x", uint64(nvmeNamespaceIdentifier))}
	disk, err := machine.FindDisk(context.Background(), query)
	if err != nil {
		panic(err)
	}
	fmt.Println("disk", *disk.Number)
	// Output: disk 1
}

// A description has what a support ticket needs.
func ExampleNode_Describe() {
	emulated, err := winsim.New(winsim.AzureNVMe())
	if err != nil {
		panic(err)
	}
	machine, err := node.NewOn(emulated, node.WorkingDirs(`C:\var\lib\kubelet`))
	if err != nil {
		panic(err)
	}

	found, err := machine.Describe(context.Background(), node.Links, node.Shares)
	if err != nil {
		panic(err)
	}
	for _, disk := range found.Disks {
		lun := "-"
		if disk.Location != nil && disk.Location.LUNID != "" {
			lun = disk.Location.LUNID
		}
		fmt.Println(strconv.FormatUint(uint64(*disk.Number), 10), disk.Bus, "LUN", lun, disk.Model, disk.Problems)
	}
	// Output:
	// 0 nvme LUN - MSFT NVMe Accelerator v1.0 []
	// 1 nvme LUN 0 MSFT NVMe Accelerator v1.0 []
	// 2 nvme LUN 1 MSFT NVMe Accelerator v1.0 []
	// 3 nvme LUN - Microsoft NVMe Direct Disk v2 []
}
