package replay

import (
	"cmp"
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
	events []event

	disks     map[win.Device]record.Disk // that the machine has, without those of iSCSI
	answered  map[win.Device]int         // the index of the last call that a disk has answered
	listedAt  int                        // the index of the last list
	described map[win.Device]bool        // disks of the description
	unknown   map[win.Device]bool        // disks that have come, of which the calls do not tell enough
}

// plan returns the events of a recording, in order, and the disks that cannot be attached.
func plan(recording *record.Recording, node *winsim.Node, calls []record.Call) (events []event, unknown map[win.Device]bool) {
	p := planner{
		unknown: map[win.Device]bool{}, described: map[win.Device]bool{},
		node: node, calls: calls,
		disks: map[win.Device]record.Disk{}, answered: map[win.Device]int{}, listedAt: -1,
	}
	for _, d := range recording.Description.Disks {
		p.described[d.Device] = true
		if d.Number.Error == nil && d.Descriptor.Error == nil && d.Descriptor.Value.BusType != win.BusTypeISCSI {
			p.disks[d.Device], p.answered[d.Device] = d, -1
		}
	}
	for i, c := range calls {
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
	return p.events, p.unknown
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
	for k := i - 1; k > earliest; k-- {
		if rescans[p.calls[k].Method] {
			for at = k; at-1 > earliest && rescans[p.calls[at-1].Method]; {
				at--
			}
			break
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
			if (!again || slices.Contains(next, device)) && p.answersBefore(i, device) {
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
		d := describe(device, p.calls[i:])
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
		volumes := describeVolumes(d, p.calls[i:])
		p.add(p.before(i, p.listedAt), fmt.Sprintf("disk %d, %s, was attached", d.Number.Value.Number, device), func() error { return p.node.AttachDescribed(d, volumes) })
	}
}

// nextList returns the disks of the first list after a call.
func (p *planner) nextList(i int) (devices []win.Device, ok bool) {
	for _, c := range p.calls[i+1:] {
		if c.Method == "DiskDevices" && c.Error == nil {
			return devices, json.Unmarshal(c.Out, &devices) == nil
		}
	}
	return nil, false
}

// answersBefore reports whether a disk answers a call after call i, before the next list.
func (p *planner) answersBefore(i int, device win.Device) bool {
	for _, c := range p.calls[i+1:] {
		var in struct{ D win.Device }
		switch {
		case c.Error != nil:
		case c.Method == "DiskDevices":
			return false
		case len(c.In) > 0 && json.Unmarshal(c.In, &in) == nil && in.D == device:
			return true
		}
	}
	return false
}

// skip remembers a disk that has come, but whose number, kind or size no call has asked for. It may be that of
// a target: then a login brings it.
func (p *planner) skip(i int, d record.Disk) {
	if slices.ContainsFunc(p.calls[:i], func(c record.Call) bool { return c.Method == "Login" && c.Error == nil }) {
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

// nextSize returns the size of a disk at the first call after call i that measures it, or else the largest.
func (p *planner) nextSize(i int, device win.Device) int64 {
	for _, c := range p.calls[i+1:] {
		var (
			in   struct{ D win.Device }
			then win.DiskGeometry
		)
		if c.Method != "DiskGeometry" || c.Error != nil || json.Unmarshal(c.In, &in) != nil {
			continue
		}
		if found, known := p.known(in.D); known && found == device && json.Unmarshal(c.Out, &then) == nil {
			return then.Size
		}
	}
	return math.MaxInt64
}

// describe collects the first answers about a disk.
func describe(device win.Device, calls []record.Call) record.Disk {
	missing := &record.Failure{Kind: "not recorded"}
	d := record.Disk{Device: device}
	d.Number.Error, d.Descriptor.Error, d.Identifiers.Error, d.Location.Error = missing, missing, missing, missing
	d.Address.Error, d.Geometry.Error, d.Attributes.Error, d.Layout.Error = missing, missing, missing, missing
	for _, c := range calls {
		var in struct{ D win.Device }
		if c.Error != nil || len(c.In) == 0 || json.Unmarshal(c.In, &in) != nil || in.D != device {
			continue
		}
		switch c.Method {
		case "DeviceNumber":
			first(&d.Number, c)
		case "DeviceDescriptor":
			first(&d.Descriptor, c)
		case "DeviceIdentifiers":
			first(&d.Identifiers, c)
		case "DeviceLocation":
			first(&d.Location, c)
		case "SCSIAddress":
			first(&d.Address, c)
		case "DiskGeometry":
			first(&d.Geometry, c)
		case "DiskAttributes":
			first(&d.Attributes, c)
		case "DriveLayout":
			first(&d.Layout, c)
		case "CreateDisk", "SetDriveLayout": // from here on the table is the host's
			return d
		}
	}
	return d
}

// describeVolumes collects the first answers about the volumes of a disk.
func describeVolumes(d record.Disk, calls []record.Call) (volumes []record.Volume) {
	found := map[win.VolumeID]*record.Volume{}
	changed := map[win.VolumeID]bool{}
	for _, c := range calls {
		var in struct {
			ID win.VolumeID
			D  win.Device
		}
		if c.Error != nil || len(c.In) == 0 || json.Unmarshal(c.In, &in) != nil {
			continue
		}
		if id, ok := win.VolumeOf(string(in.D)); ok && in.ID == "" {
			in.ID = id
		}
		if in.ID == "" || changed[in.ID] {
			continue
		}
		v := found[in.ID]
		if v == nil {
			missing := &record.Failure{Kind: "not recorded"}
			v = &record.Volume{ID: in.ID}
			v.Number.Error, v.Extents.Error, v.FileSystem.Error = missing, missing, missing
			v.Space.Error, v.NTFS.Error, v.RootAccess.Error = missing, missing, missing
			found[in.ID] = v
		}
		changed[in.ID] = answer(v, c)
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		v := *found[id]
		if v.Extents.Error != nil && v.Number.Error == nil {
			v.Extents = extentOf(d, v.Number.Value)
		}
		if e := v.Extents.Value; len(e) == 1 && e[0].Disk == d.Number.Value.Number {
			volumes = append(volumes, v)
		}
	}
	return volumes
}

// answer takes an answer about a volume. It reports whether the call changes the volume: from there on, what
// it has is the host's.
func answer(v *record.Volume, c record.Call) (changes bool) {
	switch c.Method {
	case "DeviceNumber":
		first(&v.Number, c)
	case "VolumeExtents":
		first(&v.Extents, c)
	case "FileSystem":
		first(&v.FileSystem, c)
	case "VolumeSpace":
		first(&v.Space, c)
	case "NTFSVolumeData":
		first(&v.NTFS, c)
	case "RootSecurity":
		first(&v.RootAccess, c)
	case "Format", "FormatLegacy", "SetVolumeLabel", "SetRootSecurity", "ExtendVolume":
		return true
	}
	return false
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

// first takes an answer if it is the first.
func first[T any](a *record.Answer[T], c record.Call) {
	if a.Error == nil {
		return
	}
	if json.Unmarshal(c.Out, &a.Value) == nil {
		a.Error = nil
	}
}
