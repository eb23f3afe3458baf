package winsim

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// build returns the disks and volumes that the model describes, or an error that names the wrong field.
func (m Model) build() (objects, *ModelError) {
	c := &clock{real: m.RealTime}
	all := &disks{
		clock: c, storage: m.Storage, byNumber: map[uint32]*disk{}, devices: map[string]*disk{}, persisted: map[SCSI]win.DiskAttributes{},
	}
	shown := &volumes{clock: c, storage: m.Storage, disks: all, byGUID: map[string]*volume{}, letters: map[string]*volume{}, formatLocks: map[win.VolumeID]*formatLock{}, outOfDate: m.Storage.ServiceOutOfDate}
	all.volumes = shown
	built := objects{clock: c, disks: all, volumes: shown}
	numbers, err := diskNumbers(m.Disks)
	if err != nil {
		return built, err
	}
	for i, model := range m.Disks {
		d, err := model.build(numbers[i])
		switch {
		case err != nil:
		case model.Presence == DiskDetached:
			all.detached = append(all.detached, d)
		default:
			err = all.install(d, shown)
		}
		if err != nil {
			return built, err.at("disks", i)
		}
	}
	for i, model := range m.Volumes {
		v, err := model.build(all)
		if err == nil {
			err = shown.addVolume(v)
		}
		if err != nil {
			return built, err.at("volumes", i)
		}
		shown.spanning = append(shown.spanning, v)
	}
	return built, nil
}

// install makes the disk of a new node visible, with its volumes.
func (m *disks) install(d *disk, shown *volumes) *ModelError {
	if m.devices[winpath.Fold(d.Path)] != nil {
		return problem("path", "%q is used twice", d.Path)
	}
	for i, p := range d.table.partitions {
		if p.volume == nil {
			continue
		}
		if err := shown.addVolume(p.volume); err != nil {
			return err.in("volume").at("partitions", i)
		}
	}
	m.register(d)
	return nil
}

// diskNumbers gives disks of a new node without a number the lowest free numbers.
func diskNumbers(disks []Disk) ([]uint32, *ModelError) {
	taken := map[uint32]bool{}
	for i, d := range disks {
		if d.Number == 0 || d.Presence == DiskDetached {
			continue
		}
		if taken[d.Number] {
			return nil, problem("number", "%d is used twice", d.Number).at("disks", i)
		}
		taken[d.Number] = true
	}
	numbers, next := make([]uint32, len(disks)), uint32(0)
	for i, d := range disks {
		if numbers[i] = d.Number; d.Number != 0 || d.Presence == DiskDetached {
			continue
		}
		for taken[next] {
			next++
		}
		numbers[i], taken[next] = next, true
	}
	return numbers, nil
}

func (m *disks) register(d *disk) {
	m.byNumber[d.Number] = d
	for _, name := range d.names() {
		m.devices[name] = d
	}
}

func (d *disk) names() []string {
	return []string{winpath.Fold(string(win.PhysicalDrive(d.Number))), winpath.Fold(d.device)}
}

func (m *volumes) addVolume(v *volume) *ModelError {
	if m.byGUID[v.guid] != nil {
		return problem("id", "%q is used twice", v.guid)
	}
	if v.Letter != "" && m.letters[v.Letter] != nil {
		return problem("letter", "%q is used twice", v.Letter)
	}
	m.byGUID[v.guid] = v
	if v.Letter != "" {
		m.letters[v.Letter] = v
	}
	return nil
}

func (d *disk) addVolume(p *partition, m Partition) *ModelError {
	volume := Volume{FileSystem: FileSystemNone}
	if m.Volume != nil {
		volume = *m.Volume
	}
	if m.Volume != nil || p.hasVolume(d.table.style) {
		guid := normalGUID(volume.ID)
		if volume.ID == "" {
			guid = d.volumeGUID(p).String()
		}
		err := volume.validate()
		switch {
		case err != nil:
			return err.in("volume")
		case guid == "":
			return problem("volume.id", "%q is not a GUID", volume.ID)
		case volume.Size != 0 || len(volume.Extents) > 0 || volume.CDROM:
			return problem("volume.size", "the volume of a partition cannot have size, extents or cdrom")
		}
		p.volume = newVolume(volume, guid)
		p.volume.extents = []extent{{d, p.Offset, p.Length}}
		if err := p.volume.apply(volume); err != nil {
			return err.in("volume")
		}
	}
	for i, bytes := range m.Bytes {
		if err := bytes.put(d.content, p.Offset, p.Length); err != nil {
			return err.at("bytes", i)
		}
	}
	return nil
}

// volumeGUID is the GUID that the mount manager gives to the volume of a partition: on a GPT
// disk, the partition's own GUID, unless another volume has it.
func (d *disk) volumeGUID(p *partition) win.GUID {
	if d.table.style == win.StyleGPT {
		return p.ID
	}
	return mbrVolumeGUID(cmp.Or(d.table.signature, 0xf0000000+d.Number), p.Offset)
}

func (m Volume) build(disks *disks) (*volume, *ModelError) {
	guid := normalGUID(m.ID)
	if guid == "" {
		return nil, problem("id", "%q is not a GUID", m.ID)
	}
	if err := m.validate(); err != nil {
		return nil, err
	}
	v := newVolume(m, guid)
	for i, e := range m.Extents {
		d := disks.attached(e.Disk)
		switch {
		case d == nil:
			return nil, problem("disk", "there is no disk %d", e.Disk).at("extents", i)
		case e.Offset < 0 || e.Size <= 0 || int64(e.Offset) > d.size-int64(e.Size) || int64(e.Offset|e.Size)%d.sector != 0:
			return nil, problem("offset", "%s at offset %s do not fit on the disk or are not whole sectors", e.Size, e.Offset).at("extents", i)
		}
		v.extents = append(v.extents, extent{d, int64(e.Offset), int64(e.Size)})
	}
	if first := v.extents; len(first) > 0 && first[0].disk.fileSystems[first[0].offset] != nil {
		return nil, problem("offset", "another volume starts at this offset").at("extents", 0)
	}
	if len(v.extents) == 0 {
		size := int64(cmp.Or(m.Size, 10*GiB))
		nameless := &disk{nameless: true, sector: 512, size: size, visibleSize: size, content: sparse{}, fileSystems: map[int64]*fileSystem{}}
		v.extents = []extent{{nameless, 0, size}}
	}
	return v, v.apply(m)
}

func (v *volume) apply(m Volume) *ModelError {
	kind, sector := cmp.Or(m.FileSystem, NTFS), v.extents[0].disk.sector
	v.writeBoot(kind, m.State == Locked, sector)
	if kind == FileSystemNone {
		if len(m.Files) > 0 {
			return problem("files", "the volume has no file system")
		}
		return nil
	}
	fs := newFileSystem(kind, cmp.Or(int64(m.FileSystemSize), v.length()), sector)
	fs.used += int64(m.Used)
	fs.cluster = cmp.Or(int64(m.ClusterSize), fs.cluster)
	fs.damage = m.Damage
	fs.label, fs.rootAccess = m.Label, cmp.Or(m.RootAccess, fs.rootAccess)
	v.setFileSystem(fs)
	return fs.addFiles(m.Files)
}

func (m Volume) validate() *ModelError {
	letter := winpath.Fold(m.Letter)
	switch {
	case letter != "" && (len(letter) != 1 || letter < "A" || letter > "Z"):
		return problem("letter", "%q is not a drive letter", m.Letter)
	case m.Hidden:
		return problem("hidden", "only a description has it")
	case m.State.check() != nil:
		return m.State.check()
	case m.Damage.check() != nil:
		return m.Damage.check().in("damage")
	case m.Used < 0 && m.FileSystemSize == 0:
		return problem("used", "must not be negative")
	case m.FileSystemSize < 0 || m.ClusterSize < 0 || m.ClusterSize&(m.ClusterSize-1) != 0:
		return problem("clusterSize", "%s is not a power of two", m.ClusterSize)
	case m.Size != 0 && !m.Size.plausible():
		return problem("size", "%s is not a valid volume size; use a multiple of 4096 bytes from 1MiB to 1024TiB", m.Size)
	case m.Size != 0 && len(m.Extents) > 0:
		return problem("size", "remove size; the extents determine it")
	case m.CDROM && len(m.Extents) > 0:
		return problem("cdrom", "a CD-ROM has no extents")
	}
	return oneOf("fileSystem", m.FileSystem, NTFS, ReFS, FAT32, CDFS, FileSystemNone)
}

func (m *disks) sorted() []*disk { return slices.SortedFunc(maps.Values(m.byNumber), byNumber) }

func byNumber(a, b *disk) int { return cmp.Compare(a.Number, b.Number) }
