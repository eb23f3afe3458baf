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

// rawBackoff is how long a disk without a partition table is looked at: disks that have just
// arrived look blank. PartitionDisk takes as long before it writes a table.
var rawBackoff = win.Backoff{First: 100 * time.Millisecond, Longest: 200 * time.Millisecond, Limit: 500 * time.Millisecond}

// ListVolumesOnDisk returns no volumes only if Windows shows none: some drivers take the first
// id without checking how many there are, and an empty list crashes them.
func (b boundHost) ListVolumesOnDisk(diskNumber, partitionNumber uint32) ([]string, error) {
	ctx, h := b.ctx, b.host
	found, err := h.arrivedVolumes(ctx, diskNumber, partitionNumber)
	if err != nil {
		return nil, listFailed(diskNumber, err)
	}
	ids := make([]string, 0, len(found.volumes))
	for _, v := range found.volumes {
		ids = append(ids, string(v.id))
	}
	return ids, nil
}

// OnlyVolumeOnDisk returns the volume of a disk that has no other, and whose partition table
// agrees: the volume of another partition may not be there yet.
func (b boundHost) OnlyVolumeOnDisk(diskNumber uint32) (string, error) {
	ctx, h := b.ctx, b.host
	found, err := h.arrivedVolumes(ctx, diskNumber, 0)
	object := fmt.Sprintf("disk %d", diskNumber)
	switch {
	case err != nil:
		return "", listFailed(diskNumber, err)
	case found.tableErr != nil:
		return "", winerr.As(winerr.Unavailable, opList, object, found.tableErr, "without the partition table, the disk may have more volumes than Windows shows")
	case len(found.volumes) == 0:
		return "", winerr.New(winerr.NotFound, opList, object, "the disk has no volume")
	case len(found.volumes) > 1:
		return "", winerr.New(winerr.Invalid, opList, object,
			"the disk has %d volumes, so its number names none of them; ListVolumesOnDisk returns their ids", len(found.volumes))
	case found.mountable != 1 || len(found.missing) > 0:
		return "", winerr.New(winerr.Invalid, opList, object,
			"the disk has 1 volume and %d partitions for data, so its number names no volume; ListVolumesOnDisk returns the id", found.mountable)
	}
	return string(found.volumes[0].id), nil
}

func listFailed(disk uint32, err error) error {
	object := fmt.Sprintf("disk %d", disk)
	if errors.Is(err, winerr.NotFound) {
		return winerr.As(winerr.NotFound, opList, object, err, "list the disks with ListDiskIDs")
	}
	return winerr.Wrap(opList, object, err)
}

// diskVolumes is what one look at a disk, or at one of its partitions, shows.
type diskVolumes struct {
	volumes   []volumeOnDisk  // in the order in which they lie on the disk
	mountable int             // how many partitions Windows makes volumes of
	missing   []win.Partition // those without a volume
	tableErr  error           // why the partition table is not known; mountable and missing are empty then
	unproven  error           // why an empty list may be wrong
	hung      win.VolumeID    // one that may be missing, but does not answer
}

// complete reports whether there is nothing to wait for.
func (d diskVolumes) complete() bool {
	return len(d.missing) == 0 && (len(d.volumes) > 0 || (d.unproven == nil && d.hung == ""))
}

// arrivedVolumes is volumesOn that waits for volumes on their way. A driver that sees one of two
// volumes may take it for the only one. So it fails while a partition lacks its volume, unless the
// disk is offline.
func (h host) arrivedVolumes(ctx context.Context, disk, partition uint32) (diskVolumes, error) {
	found, err := h.volumesOn(ctx, disk, partition)
	if err != nil || found.complete() {
		return found, err
	}
	// democratic-csi lists the volumes before it calls PartitionDisk, which takes the disk
	// online only if the list is empty. So an offline disk must not be an error.
	switch attributes, err := h.m.DiskAttributes(ctx, win.PhysicalDrive(disk)); {
	case err != nil && !answered(err):
		return diskVolumes{}, err
	case err == nil && attributes.Offline:
		klog.FromContext(ctx).Info("The disk is offline, so Windows shows none of its volumes", "disk", disk)
		return found, nil
	}
	_, err = win.Poll(ctx, h.m, arrivalBackoff, func(waited time.Duration) (_ bool, err error) {
		if waited > 0 {
			found, err = h.volumesOn(ctx, disk, partition)
		}
		return found.complete() || found.hung != "", err // a hung volume has taken long enough
	})
	if err != nil || found.complete() {
		return found, err
	}
	return diskVolumes{}, found.incomplete(disk)
}

func (d diskVolumes) incomplete(disk uint32) error {
	object := fmt.Sprintf("disk %d", disk)
	switch {
	case len(d.missing) == 0 && d.hung != "":
		return winerr.New(winerr.Unavailable, opList, object, "volume %s may be on the disk, but does not answer", d.hung)
	case len(d.missing) == 0:
		return winerr.As(winerr.Unavailable, opList, object, d.unproven, "")
	case d.hung != "":
		return winerr.New(winerr.Unavailable, opList, object,
			"volume %s may be the one of partition %d, but does not answer", d.hung, d.missing[0].Number)
	default:
		return winerr.New(winerr.Unavailable, opList, object,
			"Windows has not created the volume of partition %d yet; call again, and look at the disk with csi-proxyctl node if that does not help", d.missing[0].Number)
	}
}

// volumesOn looks once for the volumes of a disk, or of one of its partitions if that is not 0.
func (h host) volumesOn(ctx context.Context, disk, partition uint32) (found diskVolumes, err error) {
	layout, unproven := h.table(ctx, disk)
	if found.tableErr = unproven; unproven != nil {
		// Volumes can be found without the table, if the disk exists.
		if !answered(unproven) || errors.Is(unproven, winerr.NotFound) {
			return diskVolumes{}, unproven
		}
		if _, err := h.m.DeviceNumber(ctx, win.PhysicalDrive(disk)); err != nil {
			return diskVolumes{}, err
		}
		layout = win.DriveLayout{}
	} else if !partitioned(layout) {
		return diskVolumes{}, nil // no need to ask other disks' volumes
	}
	volumes, complete, err := h.volumesByName(ctx, disk, partition, layout)
	if err != nil && !answered(err) {
		return diskVolumes{}, err
	}
	if !complete {
		unproven = cmp.Or(unproven, err)
		if volumes, found.hung, found.unproven, err = h.scanVolumes(ctx, disk, layout, partition); err != nil {
			return diskVolumes{}, err
		}
	}
	found.volumes = arrange(volumes, layout, partition)
	if len(found.volumes) == 0 && unproven != nil {
		// A disk that cannot be asked is not a disk without volumes.
		return diskVolumes{}, unproven
	}
	for _, p := range layout.Mountable() {
		if partition != 0 && p.Number != partition {
			continue
		}
		found.mountable++
		if !slices.ContainsFunc(found.volumes, func(v volumeOnDisk) bool { return v.isOn(p) }) {
			found.missing = append(found.missing, p)
		}
	}
	return found, nil
}

// table reads the partition table of a disk. A disk that has just arrived may look as if it
// had none, so the call waits before it believes that.
func (h host) table(ctx context.Context, disk uint32) (layout win.DriveLayout, err error) {
	_, err = win.Poll(ctx, h.m, rawBackoff, func(time.Duration) (_ bool, err error) {
		layout, err = h.m.DriveLayout(ctx, win.PhysicalDrive(disk))
		return partitioned(layout) || layout.Style != win.StyleRaw, err
	})
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

// isOn reports whether a volume begins or continues on a partition.
func (v volumeOnDisk) isOn(p win.Partition) bool {
	if v.extents == nil {
		return v.partition == p.Number
	}
	return slices.ContainsFunc(v.extents, func(e win.Extent) bool { return p.Offset <= e.Offset && e.Offset < p.End() })
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
		id := volumeName(p)
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

// volumeName is the name that Windows usually gives the volume of a GPT partition.
func volumeName(p win.Partition) win.VolumeID {
	return win.VolumeID(`\\?\Volume{` + p.ID.String() + `}\`)
}

// expected returns the numbers of the partitions that should have one volume each, or nil if
// the table does not report.
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

// locate finds out whether and where a volume lies on a disk. A volume that is gone is not on
// it: volumes come and go while they are listed.
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
	case errors.Is(extentsErr, winerr.NotFound):
		return volumeOnDisk{}, false, nil
	case unknown(extentsErr):
		return volumeOnDisk{}, false, err // says more
	case extentsErr != nil:
		return volumeOnDisk{}, false, extentsErr
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
		return !v.isOn(partitions[partition])
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
