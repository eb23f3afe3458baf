package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// event is something that happened outside the calls, such as a disk that was attached. A later call tells of
// it. It is made to happen as late as it can have: before that call, or before the rescan that shows it.
type event struct {
	after uint64 // the number of the call before it
	what  string
	do    func() error
}

// planner finds the events of a recording.
type planner struct {
	node   *winsim.Node
	calls  []record.Call
	ahead  *ahead
	events []event

	disks     map[win.Device]record.Disk // that the machine has, without those of iSCSI
	answered  map[win.Device]int         // the index of the last call that a disk has answered
	listedAt  int                        // the index of the last list
	described map[win.Device]bool        // disks of the description
	unknown   map[win.Device]bool        // disks that have come, of which the calls do not tell enough
}

// plan returns the events of a recording, in order, and the disks that cannot be attached. It fails if ctx ends.
func plan(ctx context.Context, recording *record.Recording, node *winsim.Node, calls []record.Call) (events []event, unknown map[win.Device]bool, err error) {
	p := planner{
		unknown: map[win.Device]bool{}, described: map[win.Device]bool{},
		node: node, calls: calls, ahead: readAhead(calls),
		disks: map[win.Device]record.Disk{}, answered: map[win.Device]int{}, listedAt: -1,
	}
	for _, d := range recording.Description.Disks {
		p.described[d.Device] = true
		if d.Number.Error == nil && d.Descriptor.Error == nil && d.Descriptor.Value.BusType != win.BusTypeISCSI {
			p.disks[d.Device], p.answered[d.Device] = d, -1
		}
	}
	for i, c := range calls {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if c.Error != nil {
			continue
		}
		if c.Method == "DiskDevices" {
			var devices []win.Device
			if json.Unmarshal(c.Out, &devices) == nil {
				p.listed(i, devices)
			}
			p.listedAt = i
			continue
		}
		var in struct{ D win.Device }
		if len(c.In) == 0 || json.Unmarshal(c.In, &in) != nil {
			continue
		}
		if device, known := p.known(in.D); known {
			if c.Method == "DiskGeometry" {
				p.measured(i, device)
			}
			p.answered[device] = i
		}
	}
	slices.SortStableFunc(p.events, func(a, b event) int { return cmp.Compare(a.after, b.after) })
	return p.events, p.unknown, nil
}

// known returns the disk that a device is, also by its number.
func (p *planner) known(device win.Device) (win.Device, bool) {
	if _, known := p.disks[device]; known {
		return device, true
	}
	for path, d := range p.disks {
		if device == win.PhysicalDrive(d.Number.Value.Number) {
			return path, true
		}
	}
	return "", false
}

// rescans are the calls after which Windows shows what is new.
var rescans = map[string]bool{"RescanAdapter": true, "UpdateDriveSize": true, "UpdateDisk": true, "StorageAdapters": true}

// before returns the number of the call after which an event happened that call i shows, and that was later
// than call earliest.
func (p *planner) before(i, earliest int) uint64 {
	at := i
	if i > 0 {
		if run := p.ahead.rescans[i-1]; run.end > earliest {
			at = max(run.begin, earliest+1)
		}
	}
	return p.calls[at].Seq - 1
}

func (p *planner) add(after uint64, what string, do func() error) {
	p.events = append(p.events, event{after, what, do})
}

// listed finds disks that have gone or come since the last list, in this order: one that comes back gets its
// number and address again.
func (p *planner) listed(i int, devices []win.Device) {
	next, again := p.nextList(i)
	for _, device := range slices.Sorted(maps.Keys(p.disks)) {
		if d := p.disks[device]; !slices.Contains(devices, device) {
			if again && slices.Contains(next, device) && !p.failsBefore(i, d) || !again && p.answersBefore(i, device) {
				continue // it was there all the time: this list is a difference
			}
			delete(p.disks, device)
			gone := p.before(i, max(p.listedAt, p.answered[device]))
			p.add(gone, fmt.Sprintf("disk %d, %s, was detached", d.Number.Value.Number, device), func() error { return p.node.DetachDisk(d.Number.Value.Number) })
		}
	}
	for _, device := range devices {
		if _, known := p.disks[device]; known || p.unknown[device] {
			continue
		}
		d := p.ahead.disk(i, device)
		if d.Descriptor.Error == nil && d.Descriptor.Value.BusType == win.BusTypeISCSI {
			continue // a login brings it
		}
		if d.Number.Error != nil || d.Geometry.Error != nil || d.Descriptor.Error != nil {
			if !p.described[device] && (!again || slices.Contains(next, device)) { // otherwise this list is a difference
				p.skip(i, d)
			}
			continue
		}
		p.disks[device], p.answered[device] = d, i
		volumes := p.volumesOn(d, i)
		p.add(p.before(i, p.listedAt), fmt.Sprintf("disk %d, %s, was attached", d.Number.Value.Number, device), func() error { return p.node.AttachDescribed(d, volumes) })
	}
}

// nextList returns the disks of the first list after a call.
func (p *planner) nextList(i int) (devices []win.Device, ok bool) {
	if next := p.ahead.next(i, "", "DiskDevices"); next < len(p.calls) {
		ok = json.Unmarshal(p.calls[next].Out, &devices) == nil
	}
	return devices, ok
}

// answersBefore reports whether a disk answers a call after call i, before the next list.
func (p *planner) answersBefore(i int, device win.Device) bool {
	return p.ahead.next(i, string(device), "") < p.ahead.next(i, "", "DiskDevices")
}

// failsBefore reports whether a call about a disk fails after call i, before the next list: then it was gone.
func (p *planner) failsBefore(i int, d record.Disk) bool {
	next := p.ahead.next(i, "", "DiskDevices")
	return p.ahead.next(i, string(d.Device), failed) < next || p.ahead.next(i, string(win.PhysicalDrive(d.Number.Value.Number)), failed) < next
}

// skip remembers a disk that has come, but whose number, kind or size no call has asked for. It may be that of
// a target: then a login brings it.
func (p *planner) skip(i int, d record.Disk) {
	if p.ahead.next(-1, "", "Login") < i {
		return
	}
	p.unknown[d.Device] = true
	if d.Number.Error == nil {
		p.unknown[win.PhysicalDrive(d.Number.Value.Number)] = true
	}
	p.add(p.before(i, p.listedAt), fmt.Sprintf("disk %s was attached; no call asked for its number, kind and size, so calls about it are skipped", d.Device), func() error { return nil })
}

// measured finds a disk that has grown. Disks do not shrink: a call that finds it smaller again contradicts.
func (p *planner) measured(i int, device win.Device) {
	var now win.DiskGeometry
	d := p.disks[device]
	if json.Unmarshal(p.calls[i].Out, &now) != nil || now.Size <= d.Geometry.Value.Size || p.nextSize(i, device) < now.Size {
		return
	}
	number, size := d.Number.Value.Number, winsim.Size(now.Size)
	p.add(p.before(i, -1), fmt.Sprintf("disk %d, %s, has grown to %d bytes", number, device, now.Size), func() error { return p.node.GrowDisk(number, size) })
	d.Geometry.Value.Size = now.Size
	p.disks[device] = d
}

// nextSize returns the size of a disk at the first call after call i that measures it, or else the largest. The
// call may name the disk by its number.
func (p *planner) nextSize(i int, device win.Device) int64 {
	next := p.ahead.next(i, string(device), "DiskGeometry")
	byNumber := win.PhysicalDrive(p.disks[device].Number.Value.Number)
	if _, another := p.disks[byNumber]; !another {
		next = min(next, p.ahead.next(i, string(byNumber), "DiskGeometry"))
	}
	var then win.DiskGeometry
	if next == len(p.calls) || json.Unmarshal(p.calls[next].Out, &then) != nil {
		return math.MaxInt64
	}
	return then.Size
}

// volumesOn returns the volumes of a disk, as far as calls after call i tell.
func (p *planner) volumesOn(d record.Disk, i int) (volumes []record.Volume) {
	for _, id := range p.ahead.volumes {
		v := p.ahead.volume(i, id)
		if v.Extents.Error != nil && v.Number.Error == nil {
			v.Extents = extentOf(d, v.Number.Value)
		}
		if e := v.Extents.Value; len(e) == 1 && e[0].Disk == d.Number.Value.Number {
			volumes = append(volumes, v)
		}
	}
	return volumes
}

// extentOf returns where the volume with a device number is on a disk.
func extentOf(d record.Disk, number win.DeviceNumber) (extents record.Answer[[]win.Extent]) {
	for _, p := range d.Layout.Value.Partitions {
		if number.Number == d.Number.Value.Number && p.Number == number.Partition {
			extents.Value = []win.Extent{{Disk: number.Number, Offset: p.Offset, Length: p.Length}}
		}
	}
	return extents
}
