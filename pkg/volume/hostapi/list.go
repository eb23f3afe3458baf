package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const opList = "list volumes of"

// arrivalBackoff is how long a list waits for a volume that Windows has not shown yet.
// PartitionDisk and SetDiskState have waited longer before a driver lists volumes.
var arrivalBackoff = win.Backoff{First: 100 * time.Millisecond, Longest: time.Second, Limit: 5 * time.Second}

// listVolumesOnDisk returns no volumes only if Windows shows none: some drivers take the first
// id without checking how many there are, and an empty list crashes them.
func (h host) listVolumesOnDisk(ctx context.Context, diskNumber, partitionNumber uint32) ([]string, error) {
	volumes, err := h.arrivedVolumes(ctx, diskNumber, partitionNumber)
	switch object := fmt.Sprintf("disk %d", diskNumber); {
	case errors.Is(err, winerr.NotFound):
		return nil, winerr.As(winerr.NotFound, opList, object, err, "list the disks with ListDiskIDs")
	case err != nil:
		return nil, winerr.Wrap(opList, object, err)
	}
	ids := make([]string, 0, len(volumes))
	for _, v := range volumes {
		ids = append(ids, string(v.id))
	}
	return ids, nil
}

// arrivedVolumes is volumesOn that waits for a volume on its way, so that the result is empty
// only if no partition should have a volume, or the disk is offline.
func (h host) arrivedVolumes(ctx context.Context, disk, partition uint32) ([]volumeOnDisk, error) {
	volumes, missing, err := h.volumesOn(ctx, disk, partition)
	if err != nil || len(volumes) > 0 || len(missing) == 0 {
		return volumes, err
	}
	// democratic-csi lists the volumes before it calls PartitionDisk, which takes the disk
	// online only if the list is empty. So an offline disk must not be an error.
	switch attributes, err := h.m.DiskAttributes(ctx, win.PhysicalDrive(disk)); {
	case err != nil && !answered(err):
		return nil, err
	case err == nil && attributes.Offline:
		klog.FromContext(ctx).Info("The disk is offline, so Windows shows none of its volumes", "disk", disk)
		return nil, nil
	}
	_, err = win.Poll(ctx, h.m, arrivalBackoff, func(waited time.Duration) (bool, error) {
		if waited == 0 {
			return false, nil // just asked
		}
		volumes, missing, err = h.volumesOn(ctx, disk, partition)
		return len(volumes) > 0 || len(missing) == 0, err
	})
	if err != nil || len(volumes) > 0 || len(missing) == 0 {
		return volumes, err
	}
	return nil, winerr.New(winerr.Unavailable, opList, fmt.Sprintf("disk %d", disk),
		"Windows has not created the volume of partition %d yet; call again, and look at the disk with csi-proxyctl node if that does not help", missing[0].Number)
}

// volumesOn returns the volumes of a disk, or of one of its partitions if that is not 0,
// in the order in which they lie there. If there are none, missing has the partitions that
// should have one.
func (h host) volumesOn(ctx context.Context, disk, partition uint32) (volumes []volumeOnDisk, missing []win.Partition, err error) {
	layout, doubt := h.table(ctx, disk)
	if doubt != nil {
		// Volumes can be found without the table, if the disk exists.
		if !answered(doubt) || errors.Is(doubt, winerr.NotFound) {
			return nil, nil, doubt
		}
		if _, err := h.m.DeviceNumber(ctx, win.PhysicalDrive(disk)); err != nil {
			return nil, nil, err
		}
		layout = win.DriveLayout{}
	} else if !partitioned(layout) {
		return nil, nil, nil // no need to ask other disks' volumes
	}
	hung := win.VolumeID("")
	volumes, complete, err := h.volumesByName(ctx, disk, partition, layout)
	if err != nil && !answered(err) {
		return nil, nil, err
	}
	if !complete {
		doubt = cmp.Or(doubt, err)
		if volumes, hung, err = h.scanVolumes(ctx, disk, expected(layout, partition)); err != nil {
			return nil, nil, err
		}
	}
	if len(volumes) == 0 && doubt != nil {
		// A disk that cannot be asked is not a disk without volumes.
		return nil, nil, doubt
	}
	if volumes = arrange(volumes, layout, partition); len(volumes) == 0 {
		missing = slices.DeleteFunc(layout.Mountable(), func(p win.Partition) bool { return partition != 0 && p.Number != partition })
	}
	if len(missing) > 0 && hung != "" {
		return nil, nil, winerr.New(winerr.Unavailable, opList, fmt.Sprintf("disk %d", disk),
			"volume %s may be the one of partition %d, but does not answer", hung, missing[0].Number)
	}
	return volumes, missing, nil
}

// table reads the partition table of a disk. A disk that has just arrived may look as if it
// had none, so "none" is asked twice.
func (h host) table(ctx context.Context, disk uint32) (win.DriveLayout, error) {
	layout, err := h.m.DriveLayout(ctx, win.PhysicalDrive(disk))
	if err == nil && !partitioned(layout) && layout.Style == win.StyleRaw {
		layout, err = h.m.DriveLayout(ctx, win.PhysicalDrive(disk))
	}
	return layout, err
}

// partitioned reports whether there is more in a table than empty slots.
func partitioned(layout win.DriveLayout) bool {
	return slices.ContainsFunc(layout.Partitions, func(p win.Partition) bool { return p.Length > 0 })
}

// volumeOnDisk is a volume and where on a disk it lies: in one partition, or in extents.
type volumeOnDisk struct {
	id        win.VolumeID
	partition uint32       // 0 for a volume that is the whole disk
	extents   []win.Extent // on this disk, of volumes that are not one partition
}

// volumesByName finds the volumes of a GPT disk by the name that Windows usually gives
// them, the GUID of their partition. It asks only these volumes, so many or hanging volumes
// of other disks do not matter. The result is not complete if a volume has another name or a
// partition an unknown type, and err is Windows' answer if that leaves the name open.
func (h host) volumesByName(ctx context.Context, disk, partition uint32, layout win.DriveLayout) (volumes []volumeOnDisk, complete bool, err error) {
	if layout.Style != win.StyleGPT {
		return nil, false, nil
	}
	for _, p := range layout.Partitions {
		if p.Type == win.PartitionMSR || (partition != 0 && p.Number != partition) {
			continue // reserved ones have no volume
		}
		if p.Type != win.PartitionBasicData && p.Type != win.PartitionEFI && p.Type != win.PartitionRecovery {
			return nil, false, nil
		}
		id := win.VolumeID(`\\?\Volume{` + p.ID.String() + `}\`)
		// Copies of a disk have the same GUIDs, and only one of them has the name.
		switch at, err := h.m.DeviceNumber(ctx, id.Device()); {
		case at == (win.DeviceNumber{Type: win.DeviceTypeDisk, Number: disk, Partition: p.Number}):
			volumes = append(volumes, volumeOnDisk{id: id, partition: p.Number})
		case err == nil || errors.Is(err, winerr.NotFound) || unknown(err):
			return nil, false, nil
		default:
			return nil, false, err
		}
	}
	return volumes, true, nil
}

// expected returns the numbers of the partitions that should have one volume each, or nil if
// the table does not tell.
func expected(layout win.DriveLayout, partition uint32) map[uint32]bool {
	numbers := map[uint32]bool{}
	for _, p := range layout.Partitions {
		switch {
		case !used(layout.Style, p) || p.Type == win.PartitionMSR || p.MBRType == mbrExtended || p.MBRType == mbrExtendedLBA:
			continue
		case p.Type == win.PartitionLDMData || p.Type == win.PartitionLDMMetadata || p.MBRType == mbrLDM:
			return nil // there may be any number of volumes
		case partition == 0 || p.Number == partition:
			numbers[p.Number] = true
		}
	}
	return numbers
}

// locate finds out whether and where a volume lies on a disk. It leaves out a volume that
// does not answer: volumes come and go while they are listed, and one on a dying disk must
// not hide the others.
func (h host) locate(ctx context.Context, id win.VolumeID, disk uint32) (v volumeOnDisk, ok bool, err error) {
	number, err := h.m.DeviceNumber(ctx, id.Device())
	switch {
	case err == nil:
		// CD-ROM 0 and disk 0 have the same number.
		return volumeOnDisk{id: id, partition: number.Partition}, number.Type == win.DeviceTypeDisk && number.Number == disk, nil
	case !answered(err):
		return volumeOnDisk{}, false, err
	case errors.Is(err, winerr.NotFound):
		return volumeOnDisk{}, false, nil
	}
	all, extentsErr := h.m.VolumeExtents(ctx, id)
	switch {
	case extentsErr != nil && !answered(extentsErr):
		return volumeOnDisk{}, false, extentsErr
	case extentsErr != nil:
		klog.FromContext(ctx).V(2).Info("A volume does not report its disk and is left out", "volume", id, "error", extentsErr, "before", err)
		return volumeOnDisk{}, false, nil
	}
	v.id = id
	for _, extent := range all {
		if extent.Disk == disk {
			v.extents = append(v.extents, extent)
		}
	}
	return v, v.extents != nil, nil
}

// arrange sorts volumes by where they begin, which unlike Windows' order is stable, and
// leaves out those that do not touch the partition, unless that is 0.
func arrange(volumes []volumeOnDisk, layout win.DriveLayout, partition uint32) []volumeOnDisk {
	partitions := map[uint32]win.Partition{}
	for _, p := range layout.Partitions {
		partitions[p.Number] = p
	}
	volumes = slices.DeleteFunc(volumes, func(v volumeOnDisk) bool {
		if partition == 0 || v.extents == nil {
			return partition != 0 && v.partition != partition
		}
		p := partitions[partition]
		return !slices.ContainsFunc(v.extents, func(e win.Extent) bool { return p.Offset <= e.Offset && e.Offset < p.End() })
	})
	start := func(v volumeOnDisk) int64 {
		if v.extents == nil {
			return partitions[v.partition].Offset
		}
		return slices.MinFunc(v.extents, func(a, b win.Extent) int { return cmp.Compare(a.Offset, b.Offset) }).Offset
	}
	slices.SortFunc(volumes, func(a, b volumeOnDisk) int {
		return cmp.Or(cmp.Compare(start(a), start(b)), cmp.Compare(a.partition, b.partition), cmp.Compare(a.id, b.id))
	})
	return volumes
}
