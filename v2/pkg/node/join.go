package node

import (
	"cmp"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// join combines what disks and volumes have answered: partitions get their volumes, volumes
// whether they are read-only, and disks whether Windows runs from them.
func (l *lookup) join(disks []Disk, found []volumeReport, system []win.VolumeID) []Volume {
	byNumber := map[uint32]*Disk{}
	for i, disk := range disks {
		if disk.Number != nil {
			byNumber[*disk.Number] = &disks[i]
		}
	}
	volumes := make([]Volume, 0, len(found))
	for _, v := range found {
		if len(v.Disks) == 1 && l.noMedium[v.Disks[0]] {
			continue
		}
		if v.noLocation != nil && !locateByName(&v.Volume, disks) {
			v.failed.add("disk", v.noLocation)
		}
		for _, number := range v.Disks {
			if disk := byNumber[number]; disk != nil {
				disk.System = disk.System || slices.Contains(system, win.VolumeID(v.ID))
				disk.hold(&v.Volume)
			}
		}
		v.Problems = v.failed.list()
		volumes = append(volumes, v.Volume)
	}
	slices.SortFunc(volumes, func(a, b Volume) int {
		return cmp.Or(slices.Compare(a.Disks, b.Disks), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.ID, b.ID))
	})
	return volumes
}

func (d *Disk) hold(v *Volume) {
	readOnly := d.ReadOnly
	for i := range d.Partitions {
		if p := &d.Partitions[i]; v.Partition != 0 && p.Number == v.Partition {
			p.VolumeID = v.ID
			if p.ReadOnly {
				readOnly = pointer(true)
			}
		}
	}
	if readOnly != nil && (v.ReadOnly == nil || *readOnly) {
		v.ReadOnly = readOnly
	}
}

// locateByName finds the partition of a volume that does not answer by its name, which is
// usually the GUID of the partition. Copies of a disk have the same GUIDs; then it stays
// unknown.
func locateByName(v *Volume, disks []Disk) bool {
	for _, disk := range disks {
		for _, p := range disk.Partitions {
			if disk.Number == nil || p.ID == "" || `\\?\Volume{`+p.ID+`}\` != v.ID {
				continue
			}
			v.Disks, v.Partition = append(v.Disks, *disk.Number), p.Number
		}
	}
	if len(v.Disks) > 1 {
		v.Disks, v.Partition = nil, 0
	}
	return v.Disks != nil
}

// pointer is new(value) of Go 1.26, which drivers need not have.
func pointer[T any](value T) *T { return &value }
