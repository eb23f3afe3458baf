package local

import (
	"context"
	"strconv"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/cim"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// ResizePartition is https://learn.microsoft.com/windows-hardware/drivers/storage/resize-msft-partition
//
// Copies of a disk have partitions with the same GUID. So it looks for the one on the disk, and
// calls that by its key.
func (machine) ResizePartition(ctx context.Context, disk uint32, partition win.GUID, size int64) error {
	partitions := cim.Object{
		Namespace: cim.Storage, Class: "MSFT_Partition",
		Property: "Guid", Value: "{" + partition.String() + "}",
	}
	found, err := cim.Query(ctx, partitions, "DiskNumber", "ObjectId")
	if err != nil {
		return err
	}
	for _, instance := range found {
		key, _ := instance["ObjectId"].(string)
		if instance["DiskNumber"] != int64(disk) || key == "" {
			continue
		}
		one := partitions
		one.Property, one.Value = "ObjectId", key
		return storageError(cim.Call(ctx, one, "Resize", map[string]any{"Size": strconv.FormatInt(size, 10)}))
	}
	return winerr.WMINotFound
}
