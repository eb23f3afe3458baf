package node

import (
	"context"
	"slices"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// knownDisks are what disks have said of themselves, by their device interfaces, while they stay: one that does not
// answer any more is still not another one. A device interface may name a slot, whose next disk has the same. That disk
// says what it is when it arrives, and has another number if the one before is still listed.
type knownDisks struct {
	mu    sync.Mutex
	disks map[string]knownDisk
}

type knownDisk struct {
	Disk
	answered questions // whose answers are here
}

// stay forgets all disks but these.
func (k *knownDisks) stay(devices []win.Device) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for path := range k.disks {
		if !slices.Contains(devices, win.Device(path)) {
			delete(k.disks, path)
		}
	}
}

func (k *knownDisks) learn(d Disk, unanswered questions) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.disks == nil {
		k.disks = map[string]knownDisk{}
	}
	before := k.disks[d.Path]
	if before.Number != nil && d.Number != nil && *before.Number != *d.Number { // another disk
		before = knownDisk{}
	}
	d.fill(before.Disk, unanswered&before.answered)
	k.disks[d.Path] = knownDisk{d, before.answered | askAll&^unanswered}
}

// complete reports whether a disk has answered all questions but where it is.
func (k *knownDisks) complete(path string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.disks[path].answered|askLocation == askAll
}

// locate notes where a disk is. A LUN that Windows does not tell, but that distinguishes the disk from others only if
// all of them answer, is the one that it had.
func (k *knownDisks) locate(d *Disk, complete bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, ok := k.disks[d.Path]
	if !ok {
		return
	}
	if !complete && d.Location != nil && d.Location.LUNID == "" {
		if known.Location != nil {
			d.Location = known.Location
		}
		return
	}
	known.Location, known.answered = d.Location, known.answered|askLocation
	k.disks[d.Path] = known
}

// remembered returns a disk with what it has said before and does not say now, and the questions that remain.
func (k *knownDisks) remembered(d Disk, unanswered questions) (Disk, questions) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.disks[d.Path]
	d.fill(known.Disk, unanswered&known.answered)
	return d, unanswered &^ known.answered
}

// busOf returns the bus of the disk with a number, or "".
func (k *knownDisks) busOf(number uint32) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, known := range k.disks {
		if known.Number != nil && *known.Number == number {
			return known.Bus
		}
	}
	return ""
}

// fill takes the answers to some questions from another description of the same disk.
func (d *Disk) fill(from Disk, answers questions) {
	if answers&askNumber != 0 {
		d.Number = from.Number
	}
	if answers&askDescriptor != 0 {
		d.Bus, d.Model, d.Serial = from.Bus, from.Model, from.Serial
	}
	if answers&(askIdentifiers|askDescriptor) != 0 {
		d.EUI64, d.NGUID = from.EUI64, from.NGUID
	}
	if answers&askIdentifiers != 0 {
		d.Page83 = from.Page83
	}
	if answers&askAddress != 0 {
		d.SCSI = from.SCSI
	}
	if answers&askLocation != 0 {
		d.Location = from.Location
	}
	if answers&askSize != 0 {
		d.Size = from.Size
	}
	if answers&askLayout != 0 {
		d.Partitions = from.Partitions
	}
}

// isMounted reports whether a volume of a disk is certainly mounted at a folder, where a pod may use it. It asks only
// what needs no access to the disk.
func (n *Node) isMounted(ctx context.Context, d Disk) bool {
	if d.Number == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, portion(ctx, objectLimit, 2))
	defer cancel()
	ids, err := n.m.VolumeIDs(ctx)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(ids, func(id win.VolumeID) bool {
		at, err := n.m.DeviceNumber(ctx, id.Device())
		if err != nil || at.Type != win.DeviceTypeDisk || at.Number != *d.Number {
			return false
		}
		paths, err := n.m.VolumePaths(ctx, id)
		return err == nil && slices.ContainsFunc(paths, func(path string) bool { return !isDrive(path) })
	})
}
