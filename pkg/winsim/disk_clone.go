package winsim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// CloneDisk attaches a disk with a copy of the content of another one, such as a restored
// snapshot: the same ids, partitions and files. m describes the hardware and must not have a
// layout, partitions or bytes. Its size is by default that of the original, and never smaller.
// Windows keeps the copy offline while the original is online.
func (n *Node) CloneDisk(original uint32, m Disk) (number uint32, err error) {
	const op = "clone disk"
	n.lock()
	defer n.mu.Unlock()
	from := n.disks.attached(original)
	switch {
	case from == nil:
		return 0, noDisk(op, original)
	case m.Layout != "" || m.ID != "" || len(m.Partitions) > 0 || len(m.Bytes) > 0:
		return 0, winerr.New(winerr.Invalid, op, fmt.Sprint(original), "a copy has the layout of its original")
	}
	if m.Size == 0 {
		m.Size = Size(from.size)
	}
	if m.SectorSize == 0 {
		m.SectorSize = uint32(from.sector)
	}
	if int64(m.Size) < from.size || int64(m.SectorSize) != from.sector {
		return 0, winerr.New(winerr.Invalid, op, fmt.Sprint(original), "a copy is not smaller than its original, %s, and has the same sector size, %d", Size(from.size), from.sector)
	}
	return n.disks.attach(op, m, func(d *disk) { d.copyFrom(from) })
}

func (d *disk) copyFrom(from *disk) {
	for block, data := range from.content {
		d.content[block] = slices.Clone(data)
	}
	for offset, fs := range from.fileSystems {
		d.fileSystems[offset] = fs.clone()
	}
	d.table = from.table
	d.table.partitions = nil
	for _, p := range from.table.partitions {
		made := &partition{Partition: p.Partition}
		if p.volume != nil {
			made.volume = &volume{guid: p.volume.guid, Volume: Volume{State: p.volume.State}, extents: []extent{{d, p.Offset, p.Length}}}
		}
		d.table.partitions = append(d.table.partitions, made)
	}
}

// clone returns a copy of a file system, with what is in the real directory of a mirrored one.
func (fs *fileSystem) clone() *fileSystem {
	fs.refreshAll()
	made := *fs
	made.mirrored = nil
	made.root = fs.root.clone(nil)
	return &made
}

// clone returns a copy of a tree that is not open or mirrored.
func (e *entry) clone(parent *entry) *entry {
	made := &entry{
		name: e.name, shortName: e.shortName, parent: parent, readOnly: e.readOnly, isStream: e.isStream,
		content: slices.Clone(e.content), link: e.link,
	}
	if e.children != nil {
		made.children = map[string]*entry{}
	}
	for name, child := range e.children {
		copied := child.clone(made)
		made.children[name] = copied
		if copied.shortName != "" {
			made.giveShortName(copied, copied.shortName)
		}
	}
	for name, stream := range e.streams {
		if made.streams == nil {
			made.streams = map[string]*entry{}
		}
		made.streams[name] = stream.clone(made)
	}
	return made
}

// allDisks are the disks that are attached, and those that were detached. mu is held.
func (m *disks) allDisks() []*disk {
	all := append(slices.Collect(maps.Values(m.byNumber)), m.unseen...)
	return slices.AppendSeq(all, maps.Values(m.detached))
}
