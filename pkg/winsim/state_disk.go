package winsim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// diskState is a disk with its content.
type diskState struct {
	Number      uint32
	Path        string                 `json:",omitzero"`
	Slot        string                 `json:",omitzero"`
	Adapter     string                 `json:",omitzero"`
	BusType     win.BusType            `json:",omitzero"`
	Vendor      string                 `json:",omitzero"`
	Product     string                 `json:",omitzero"`
	Serial      string                 `json:",omitzero"`
	Identifiers []win.DeviceIdentifier `json:",omitzero"`
	Location    string                 `json:",omitzero"`
	SCSI        *SCSI                  `json:",omitzero"`
	Sector      int64
	Bus         Bus  `json:",omitzero"`
	System      bool `json:",omitzero"`
	Trusted     bool `json:",omitzero"`
	Dying       bool `json:",omitzero"`
	Protected   bool `json:",omitzero"`
	Nameless    bool `json:",omitzero"`
	Size        int64
	Grows       int64 `json:",omitzero"`
	Seen        int64

	Style      win.PartitionStyle
	TableID    win.GUID         `json:",omitzero"`
	Signature  uint32           `json:",omitzero"`
	TableSize  int64            `json:",omitzero"`
	Partitions []partitionState `json:",omitzero"`

	Attributes   win.DiskAttributes `json:",omitzero"`
	OfflineAgain int                `json:",omitzero"`
	LooksRaw     int                `json:",omitzero"`

	Content     map[int64]blockState      `json:",omitzero"`
	FileSystems map[int64]fileSystemState `json:",omitzero"`
}

// partitionState is a partition and the index of its volume, if any.
type partitionState struct {
	win.Partition
	Volume *int `json:",omitzero"`
}

// blockState is a block without leading and trailing zeros.
type blockState struct {
	At    int
	Bytes []byte
}

func (s *saver) disk(d *disk) diskState {
	saved := diskState{
		Number: d.number, Path: d.path, Slot: d.slot, Adapter: d.adapter,
		BusType: d.descriptor.BusType, Vendor: d.descriptor.Vendor, Product: d.descriptor.Product, Serial: d.descriptor.Serial,
		Identifiers: d.identifiers, Location: d.location, SCSI: d.scsi, Sector: d.sector, Bus: d.bus,
		System: d.system, Trusted: d.trusted, Dying: d.dying, Protected: d.writeProtected, Nameless: d.nameless,
		Size: d.size, Grows: d.grows, Seen: d.visibleSize,
		Style: d.table.style, TableID: d.table.id, Signature: d.table.signature, TableSize: d.table.size,
		Attributes: d.attributes, OfflineAgain: d.offlineAgain, LooksRaw: d.looksRaw,
		Content: map[int64]blockState{}, FileSystems: map[int64]fileSystemState{},
	}
	for _, p := range d.table.partitions {
		partition := partitionState{Partition: p.Partition}
		if p.volume != nil {
			at := s.volumes.index(p.volume)
			partition.Volume = &at
		}
		saved.Partitions = append(saved.Partitions, partition)
	}
	for block, data := range d.content {
		saved.Content[block] = trimBlock(data)
	}
	for offset, fs := range d.fileSystems {
		saved.FileSystems[offset] = s.fileSystem(fs)
	}
	return saved
}

func trimBlock(data []byte) blockState {
	from, to := 0, len(data)
	for from < to && data[from] == 0 {
		from++
	}
	for to > from && data[to-1] == 0 {
		to--
	}
	return blockState{At: from, Bytes: slices.Clone(data[from:to])}
}

// disk restores a disk without its volumes.
func (l *loader) disk(saved diskState) (*disk, error) {
	d := &disk{
		number: saved.Number, path: saved.Path, slot: saved.Slot, adapter: saved.Adapter,
		descriptor:  win.DeviceDescriptor{BusType: saved.BusType, Vendor: saved.Vendor, Product: saved.Product, Serial: saved.Serial},
		identifiers: saved.Identifiers, location: saved.Location, scsi: saved.SCSI, sector: saved.Sector, bus: saved.Bus,
		system: saved.System, trusted: saved.Trusted, dying: saved.Dying, writeProtected: saved.Protected, nameless: saved.Nameless,
		size: saved.Size, grows: saved.Grows, visibleSize: saved.Seen,
		table:      table{style: saved.Style, id: saved.TableID, signature: saved.Signature, size: saved.TableSize},
		attributes: saved.Attributes, offlineAgain: saved.OfflineAgain, looksRaw: saved.LooksRaw,
		content: sparse{}, fileSystems: map[int64]*fileSystem{},
	}
	switch {
	case d.sector != 512 && d.sector != 4096:
		return nil, fmt.Errorf("disk %d has sectors of %d bytes", d.number, d.sector)
	case !Size(d.size).plausible() || !Size(d.visibleSize).plausible():
		return nil, fmt.Errorf("disk %d has an invalid size", d.number)
	case d.table.style == win.StyleGPT && !Size(d.table.size).plausible():
		return nil, fmt.Errorf("disk %d has a partition table with an invalid size", d.number)
	case d.table.style > win.StyleRaw:
		return nil, fmt.Errorf("disk %d has a partition table of an unknown style", d.number)
	}
	for block, data := range saved.Content {
		if block < 0 || data.At < 0 || data.At > blockSize-len(data.Bytes) {
			return nil, fmt.Errorf("disk %d has data beyond its end", d.number)
		}
		full := make([]byte, blockSize)
		copy(full[data.At:], data.Bytes)
		d.content[block] = full
	}
	for offset, fs := range saved.FileSystems {
		built, err := l.fileSystem(fs)
		if err != nil {
			return nil, fmt.Errorf("disk %d: %w", d.number, err)
		}
		d.fileSystems[offset] = built
	}
	return d, nil
}

// partitions restores the partitions of a disk, after all volumes.
func (l *loader) partitions(d *disk, saved diskState) error {
	for _, p := range saved.Partitions {
		made := &partition{Partition: p.Partition}
		if p.Volume != nil {
			v, err := pick(l.volumes, *p.Volume)
			if err != nil {
				return err
			}
			made.volume = v
		}
		d.table.partitions = append(d.table.partitions, made)
	}
	if d.table.style == win.StyleGPT && len(d.table.partitions) > maxPartitions ||
		d.table.style != win.StyleGPT && len(d.table.partitions) > mbrEntries {
		return fmt.Errorf("disk %d has too many partitions", d.number)
	}
	for _, p := range d.table.partitions {
		if p.Offset < 0 || p.Length <= 0 || p.Offset > d.size-p.Length {
			return fmt.Errorf("disk %d has a partition beyond its end", d.number)
		}
	}
	return nil
}

// volumeState is a volume.
type volumeState struct {
	GUID    string
	Letter  string      `json:",omitzero"`
	State   VolumeState `json:",omitzero"`
	CDROM   bool        `json:",omitzero"`
	Extents []extentState

	Present    bool      `json:",omitzero"`
	Expected   bool      `json:",omitzero"`
	Absences   int       `json:",omitzero"`
	Offline    bool      `json:",omitzero"`
	Nameless   bool      `json:",omitzero"`
	Arrived    time.Time `json:",omitzero"`
	Known      bool      `json:",omitzero"`
	Formatting bool      `json:",omitzero"`
}

// extentState is a part of the disk with that index.
type extentState struct {
	Disk           int
	Offset, Length int64
}

func (s *saver) volume(v *volume) volumeState {
	saved := volumeState{
		GUID: v.guid, Letter: v.letter, State: v.state, CDROM: v.cdrom,
		Present: v.present, Expected: v.expected, Absences: v.absences, Offline: v.offline,
		Nameless: v.nameless, Arrived: v.arrived, Known: v.inServiceCache, Formatting: v.formatting,
	}
	for _, e := range v.extents {
		saved.Extents = append(saved.Extents, extentState{s.disks.index(e.disk), e.offset, e.length})
	}
	return saved
}

func (l *loader) volume(saved volumeState) (*volume, error) {
	v := &volume{
		guid: saved.GUID, letter: saved.Letter, state: saved.State, cdrom: saved.CDROM,
		present: saved.Present, expected: saved.Expected, absences: saved.Absences, offline: saved.Offline,
		nameless: saved.Nameless, arrived: saved.Arrived, inServiceCache: saved.Known, formatting: saved.Formatting,
	}
	if normalGUID(v.guid) != v.guid || len(saved.Extents) == 0 || !v.state.known() {
		return nil, fmt.Errorf("volume %q is invalid", v.guid)
	}
	for _, e := range saved.Extents {
		d, err := pick(l.disks, e.Disk)
		if err != nil {
			return nil, err
		}
		if e.Offset < 0 || e.Length < 0 || e.Offset > d.size-e.Length {
			return nil, fmt.Errorf("volume %s extends beyond its disk", v.guid)
		}
		v.extents = append(v.extents, extent{d, e.Offset, e.Length})
	}
	return v, nil
}

// compareAddresses orders SCSI addresses.
func compareAddresses(a, b SCSI) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Target, b.Target),
		cmp.Compare(a.LUN, b.LUN), cmp.Compare(a.BusNumber, b.BusNumber))
}
