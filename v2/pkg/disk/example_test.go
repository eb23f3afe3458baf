package disk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
)

// A driver finds its disk by what identifies it, then prepares it by number.
func Example() {
	disks, err := disk.New(&fakeHost{}) // diskapi.New() on a real node
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	list, err := disks.ListDiskIDs(ctx, &disk.ListDiskIDsRequest{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for number, ids := range list.DiskIDs {
		if !strings.HasSuffix(ids.Page83, "pvc-1") {
			continue
		}
		if _, err := disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: number}); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("disk %d is ready\n", number)
	}
	// Output: disk 3 is ready
}

// The host of this machine can be asked on any system; what it cannot do, it says.
func ExampleNew() {
	disks, err := disk.New(diskapi.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = disks.Rescan(context.Background(), &disk.RescanRequest{})
	if errors.Is(err, errors.ErrUnsupported) {
		return // not a Windows node
	}
}
