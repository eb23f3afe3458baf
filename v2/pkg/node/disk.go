package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskid"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskprobe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/lostvolume"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

func (l *lookup) allDisks(ctx context.Context) ([]Disk, error) {
	devices, err := l.m.DiskDevices(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]Disk, len(devices))
	skip := make([]bool, len(devices))
	unanswered := make([]questions, len(devices))
	l.known.stay(devices)
	failures := tasks.Each(ctx, len(devices), l.objectTime(ctx), func(ctx context.Context, i int) error {
		bound, done := l.slow.Bound(ctx, string(devices[i]))
		found[i], unanswered[i], skip[i] = l.disk(bound, devices[i])
		done()
		l.tryRead(ctx, &found[i])
		return nil
	})
	disks := make([]Disk, 0, len(devices))
	l.unanswered = make(map[string]questions, len(devices))
	l.noMedium = map[uint32]bool{}
	for i, disk := range found {
		if failures[i] != nil {
			logMistake(ctx, string(devices[i]), failures[i])
			disk = Disk{Path: string(devices[i]), Problems: []Problem{problemOf("", "", failures[i])}}
			unanswered[i] = askAll
		}
		switch {
		case skip[i] && unanswered[i] != 0:
			l.disksLeft = append(l.disksLeft, "the disk "+string(devices[i]))
		case skip[i] && disk.Number != nil:
			l.noMedium[*disk.Number] = true
		}
		if !skip[i] {
			disks = append(disks, disk)
			l.unanswered[disk.Path] = unanswered[i]
			l.known.learn(disk, unanswered[i]|askLocation)
		}
	}
	addNamespaces(disks)
	return disks, nil
}

// sortDisks puts disks in the order of a description.
func sortDisks(disks []Disk) {
	slices.SortFunc(disks, func(a, b Disk) int {
		return cmp.Or(compareNumbers(a.Number, b.Number), cmp.Compare(a.Path, b.Path))
	})
}

// addNamespaces adds the namespace ids that device interfaces tell.
func addNamespaces(disks []Disk) {
	devices := make([]win.Device, len(disks))
	for i, disk := range disks {
		devices[i] = win.Device(disk.Path)
	}
	for i, namespace := range diskid.AzureNamespaces(devices) {
		disks[i].NamespaceID = namespace
	}
}

// busName is a bus in words, where it has one.
func busName(bus win.BusType) string {
	if name, ok := busNames[bus]; ok {
		return name
	}
	return strconv.FormatUint(uint64(bus), 10)
}

// busNames are STORAGE_BUS_TYPE.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntddstor/ne-ntddstor-storage_bus_type
var busNames = map[win.BusType]string{
	win.BusTypeSCSI:              "scsi",
	2:                            "atapi",
	3:                            "ata",
	4:                            "ieee1394",
	5:                            "ssa",
	6:                            "fibre",
	7:                            "usb",
	8:                            "raid",
	win.BusTypeISCSI:             "iscsi",
	win.BusTypeSAS:               "sas",
	11:                           "sata",
	12:                           "sd",
	13:                           "mmc",
	win.BusTypeVirtual:           "virtual",
	win.BusTypeFileBackedVirtual: "file-backed",
	16:                           "spaces",
	win.BusTypeNVMe:              "nvme",
	18:                           "scm",
	19:                           "ufs",
}

// compareNumbers puts disks without a number last.
func compareNumbers(a, b *uint32) int {
	switch {
	case a == b:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	default:
		return cmp.Compare(*a, *b)
	}
}

// disk looks at one disk. Other devices can have the interface of a disk; skip is true for
// those. One with a number is a disk without a medium.
func (l *lookup) disk(ctx context.Context, device win.Device) (d Disk, unanswered questions, skip bool) {
	d.Path = string(device)
	var failed problems
	number, err := l.m.DeviceNumber(ctx, device)
	switch {
	case err != nil && errors.Is(err, winerr.NotFound):
		return d, askNumber, true // it has just left
	case err != nil:
		failed.add("number", err)
		unanswered |= askNumber
	case number.Type != win.DeviceTypeDisk:
		return d, 0, true
	default:
		d.Number = &number.Number
	}
	descriptor, err := l.m.DeviceDescriptor(ctx, device)
	unanswered |= unlessUnsupported(askDescriptor, err)
	failed.addUnlessUnsupported("bus", err)
	failed.addUnlessUnsupported("model", err)
	failed.addUnlessUnsupported("serial number", err)
	if err == nil {
		d.Bus, d.Model, d.Serial = busName(descriptor.BusType), diskid.Model(descriptor), descriptor.Serial
	}
	identifiers, err := l.m.DeviceIdentifiers(ctx, device)
	unanswered |= unlessUnsupported(askIdentifiers, err)
	failed.addUnlessUnsupported("page 83", err)
	d.Page83 = diskid.Page83(identifiers)
	d.EUI64, d.NGUID = diskid.NVMe(descriptor, identifiers)
	if address, err := l.m.SCSIAddress(ctx, device); err != nil {
		unanswered |= unlessUnsupported(askAddress, err)
		failed.addUnlessUnsupported("SCSI address", err)
	} else {
		d.SCSI = &SCSIAddress{Port: address.Port, Path: address.Path, Target: address.Target, LUN: address.LUN}
	}
	if geometry, err := l.m.DiskGeometry(ctx, device); err != nil {
		failed.add("size", err)
		unanswered |= askSize
	} else {
		d.Size = &geometry.Size
	}
	if attributes, err := l.m.DiskAttributes(ctx, device); err != nil {
		failed.add("state", err)
	} else {
		d.Online, d.ReadOnly = pointer(!attributes.Offline), pointer(attributes.ReadOnly)
	}
	if diskprobe.NoMedium(ctx, l.m, device, descriptor) {
		return Disk{Number: d.Number}, 0, true
	}
	if layout, err := l.m.DriveLayout(ctx, device); err != nil {
		failed.add("partitions", err)
		unanswered |= askLayout
	} else {
		d.Style, d.Partitions, d.TableID = layout.Style.String(), partitions(layout), tableID(layout)
	}
	d.Problems = failed.list()
	if silent := d.Size == nil && d.Online == nil && d.Style == ""; silent && len(failed) == 1 {
		d.Problems = []Problem{failed[0].Problem}
	}
	return d, unanswered, false
}

// tryRead looks whether an online disk can be read: all else Windows knows also of a disk that fails or hangs.
func (l *lookup) tryRead(ctx context.Context, d *Disk) {
	if !l.describes || d.Online == nil || !*d.Online {
		return
	}
	ctx, done := l.slow.Bound(ctx, "content of "+d.Path)
	defer done()
	if err := diskprobe.Read(ctx, l.m, win.Device(d.Path)); err != nil {
		d.Problems = append(d.Problems, problemOf(Content, "it cannot be read: ", err))
	}
}

// partitions returns the partitions of a table, in the order in which they lie on the disk.
func partitions(layout win.DriveLayout) []Partition {
	var found []Partition
	for _, p := range layout.Partitions {
		if p.Number == 0 { // an unused entry
			continue
		}
		partition := Partition{Number: p.Number, Offset: p.Offset, Size: p.Length, Type: typeOf(layout.Style, p)}
		if layout.Style == win.StyleGPT {
			partition.ID, partition.ReadOnly = p.ID.String(), p.Attributes&win.ReadOnlyPartition != 0
		}
		found = append(found, partition)
	}
	slices.SortFunc(found, func(a, b Partition) int { return cmp.Compare(a.Offset, b.Offset) })
	return found
}

// Types of partitions that hold volumes.
const (
	typeData    = "data"
	typeDynamic = "dynamic"
)

// typeOf names the type of a partition, if it has a name.
// https://learn.microsoft.com/windows/win32/fileio/disk-partition-types
func typeOf(style win.PartitionStyle, p win.Partition) string {
	switch data, dynamic := lostvolume.HoldsVolume(style, p); {
	case data:
		return typeData
	case dynamic:
		return typeDynamic
	}
	if style == win.StyleMBR {
		switch p.MBRType {
		case 0x05, 0x0f:
			return "extended"
		case 0x27:
			return "recovery"
		default:
			return fmt.Sprintf("%#02x", p.MBRType)
		}
	}
	switch p.Type {
	case win.PartitionEFI:
		return "efi"
	case win.PartitionMSR:
		return "reserved"
	case win.PartitionRecovery:
		return "recovery"
	default:
		return p.Type.String()
	}
}
