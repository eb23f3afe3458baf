package winsim

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// Running is what a running node has beside its parts. Only Node.Model makes it.
type Running struct {
	// Origin identifies the model that the node was created from.
	Origin string `yaml:"origin" json:"origin,omitzero"`
	// Time is the node's virtual time since its start, and Booted the last start of Windows.
	Time   time.Duration `yaml:"time" json:"time,omitzero"`
	Booted time.Time     `yaml:"booted" json:"booted,omitzero"`
	// GUIDs is how many GUIDs the node has created, and Departures how many disks have left it: what is new
	// gets names that depend on these.
	GUIDs      uint32 `yaml:"guids" json:"guids,omitzero"`
	Departures uint32 `yaml:"departures" json:"departures,omitzero"`
	// OutOfDate is how many formats the storage service still refuses.
	OutOfDate int `yaml:"outOfDate" json:"outOfDate,omitzero"`
	// Attributes are what Windows stores by the address of a disk: SCSI, Offline and ReadOnly.
	Attributes []Disk `yaml:"attributes" json:"attributes,omitzero"`
}

// Event is something that Windows will do with a disk, volume, service or session.
type Event struct {
	Due   time.Time `yaml:"due" json:"due"`
	Order int       `yaml:"order" json:"order"` // among all events of the node
	Kind  string    `yaml:"kind" json:"kind"`

	// Table is the id of the partition table that gets a reserved partition.
	Table string `yaml:"table" json:"table,omitzero"`
	// FileSystem, ClusterSize and Label are the options of a format, and Repair is that of a repair. It is Interrupted if the volume has left meanwhile.
	ClusterSize uint32 `yaml:"clusterSize" json:"clusterSize,omitzero"`
	Label       string `yaml:"label" json:"label,omitzero"`
	Interrupted bool   `yaml:"interrupted" json:"interrupted,omitzero"`
	FileSystem  string `yaml:"fileSystem" json:"fileSystem,omitzero"`
	Repair      string `yaml:"repair" json:"repair,omitzero"`
}

// The kinds of events.
const (
	volumeArrives  = "volume-arrives"
	volumeGrows    = "volume-grows" // to the size of its partition
	formatEnds     = "format-ends"
	repairEnds     = "repair-ends"
	tableMoves     = "table-moves" // to the end of a disk that has grown
	msrAppears     = "msr-appears"
	diskRelapses   = "disk-goes-offline"
	lunsArrive     = "luns-arrive"
	lunsLeave      = "luns-leave"
	serviceChanges = "service-changes" // it leaves its pending state
)

// resumption makes the parts of a running node. It is nil while a new node is made, and empty for the copy of a disk,
// which arrives later.
type resumption struct {
	disks   *disks
	volumes *volumes
	events  []event
	folders []resumedFolder
}

// resumedFolder is a mounted folder on a volume, or on the one that begins where that does.
type resumedFolder struct {
	place int
	on    *volume
	at    *entry
}

// plan keeps the events of an object. Each kind that it can have has a function.
func (r *resumption) plan(pending []Event, kinds map[string]func(Event) event) *ModelError {
	for i, e := range pending {
		if kinds[e.Kind] == nil {
			return problem("kind", "%q is not an event of it", e.Kind).at("pending", i)
		}
		made := kinds[e.Kind](e)
		made.Due, made.Order = e.Due, e.Order
		r.events = append(r.events, made)
	}
	return nil
}

func (r *resumption) disk(d *disk, m Disk) *ModelError {
	for i, p := range m.FileSystems {
		if p.Volume == nil || p.Offset < 0 || int64(p.Offset) >= d.size || p.Volume.FileSystemSize <= 0 {
			return problem("volume", "is missing, has no fileSystemSize or begins behind the disk").at("fileSystems", i)
		}
		if err := p.Volume.validate(true); err != nil {
			return err.in("volume").at("fileSystems", i)
		}
		left := newVolume(*p.Volume, normalGUID(p.Volume.ID))
		left.extents = []extent{{d, int64(p.Offset), 0}}
		if err := left.apply(*p.Volume, r); err != nil {
			return err.in("volume").at("fileSystems", i)
		}
	}
	if r.disks == nil {
		return nil
	}
	other := r.disks.attached(d.Number)
	switch m.Presence {
	case DiskAttached, DiskUnseen, "":
		if other != nil {
			return problem("number", "%d is used twice", d.Number)
		}
		if m.Presence == DiskUnseen {
			r.disks.unseen = append(r.disks.unseen, d)
		} else {
			r.disks.register(d)
		}
		if d.hanging != nil {
			r.disks.hanging.Add(1)
		}
	case DiskDetached:
		r.disks.detached[d.Number] = d
	case DiskAway:
	default:
		return oneOf("presence", m.Presence, DiskAttached, DiskUnseen, DiskDetached, DiskAway)
	}
	return r.plan(m.Pending, map[string]func(Event) event{
		tableMoves:   func(Event) event { return tableMove(d) },
		diskRelapses: func(Event) event { return r.disks.offlineRelapse(d) },
		msrAppears: func(e Event) event {
			id, _ := win.ParseGUID(e.Table) // another is that of no table
			return r.disks.msrArrival(d, id)
		},
	})
}

// volume registers the volume of a partition, in its state.
func (r *resumption) volume(v *volume, m Volume) *ModelError {
	if r.volumes == nil {
		return nil
	}
	if err := r.state(v, m); err != nil {
		return err
	}
	return r.volumes.addVolume(v, m)
}

func (r *resumption) state(v *volume, m Volume) *ModelError {
	v.present = !m.Absent
	for i, bytes := range m.Bytes {
		if err := bytes.put(v.extents[0].disk.content, 0, v.length()); err != nil {
			return err.at("bytes", i)
		}
	}
	return r.plan(m.Pending, map[string]func(Event) event{
		volumeArrives: func(Event) event {
			v.expected = true
			return r.volumes.arrival(v)
		},
		volumeGrows: func(Event) event { return v.growth() },
		formatEnds: func(e Event) event {
			v.formatting, v.interrupted = true, e.Interrupted
			return r.volumes.formatEnd(v, win.FormatOptions{FileSystem: e.FileSystem, ClusterSize: e.ClusterSize, Label: e.Label}, func() {})
		},
		repairEnds: func(e Event) event {
			v.repair, v.interrupted = win.Repair(e.Repair), e.Interrupted
			return r.volumes.repairEnd(v, v.repair, func(error) {})
		},
	})
}

// folder returns what keeps the mounted folders on a volume.
func (r *resumption) folder(on *volume) func(place int, e *entry) {
	if r == nil {
		return nil
	}
	return func(place int, e *entry) { r.folders = append(r.folders, resumedFolder{place, on, e}) }
}

func (r *resumption) services(m *services) *ModelError {
	for i, s := range m.all {
		if err := r.plan(s.Pending, map[string]func(Event) event{serviceChanges: func(Event) event { return m.pendingEnd(s) }}); err != nil {
			return err.at("services", i)
		}
		s.Pending = nil
	}
	return nil
}

// initiator brings what the initiator knows into its state.
func (r *resumption) initiator(in *initiator, m ISCSI) *ModelError {
	for i, model := range m.Sessions {
		s := &iscsiSession{ISCSILogin: model, target: in.target(model.Target), portal: findPortal(in.portals, model.Portal)}
		if s.target == nil || s.portal == nil {
			return problem("target", "%q through %q is not a target and a portal of the model", model.Target, model.Portal).at("sessions", i)
		}
		in.sessions = append(in.sessions, s)
		if err := r.plan(model.Pending, map[string]func(Event) event{
			lunsArrive: func(Event) event { return in.lunArrival(s) },
			lunsLeave:  func(Event) event { return in.lunRemoval(s) },
		}); err != nil {
			return err.at("sessions", i)
		}
	}
	return nil
}

// finish does what needs all parts.
func (r *resumption) finish(built objects, m Running) *ModelError {
	built.virtual, built.services.booted = max(m.Time, 0), m.Booted
	built.disks.guids, built.disks.departures, built.volumes.outOfDate = m.GUIDs, m.Departures, m.OutOfDate
	for i, stored := range m.Attributes {
		if stored.SCSI == nil {
			return problem("scsi", "is missing").at("running.attributes", i)
		}
		built.disks.persisted[*stored.SCSI] = win.DiskAttributes{Offline: stored.Offline, ReadOnly: stored.ReadOnly}
	}
	slices.SortStableFunc(r.events, func(a, b event) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Order, b.Order))
	})
	for _, e := range r.events {
		built.plan(e)
	}
	slices.SortStableFunc(r.folders, func(a, b resumedFolder) int { return cmp.Compare(a.place, b.place) })
	for _, f := range r.folders {
		on := f.on
		for _, v := range slices.Concat(built.volumes.of(on.extents[0].disk), built.network.volumes()) {
			if v.begins() == on.begins() {
				on = v
			}
		}
		built.volumes.mountedFolders = append(built.volumes.mountedFolders, newMountedFolder(on, f.at))
	}
	return nil
}
