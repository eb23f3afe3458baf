package winsim

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// CloneDisk attaches a disk with a copy of the content of another one, as a restored snapshot: the same ids, partitions
// and files. m is the hardware, by default of the same size. Windows keeps the copy offline while the original is online.
func (n *Node) CloneDisk(original uint32, m Disk) (number uint32, err error) {
	const op = "clone disk"
	defer n.lock()()
	from := n.disks.attached(original)
	switch {
	case from == nil:
		return 0, noDisk(op, original)
	case m.Layout != "" || m.ID != "" || len(m.Partitions) > 0 || len(m.Bytes) > 0:
		return 0, winerr.New(winerr.Invalid, op, fmt.Sprint(original), "a copy has the layout of its original")
	}
	m.Size, m.SectorSize = cmp.Or(m.Size, Size(from.size)), cmp.Or(m.SectorSize, uint32(from.sector))
	if int64(m.Size) < from.size || int64(m.SectorSize) != from.sector {
		return 0, winerr.New(winerr.Invalid, op, fmt.Sprint(original), "a copy is not smaller than its original, %s, and has the same sector size, %d", Size(from.size), from.sector)
	}
	for _, fs := range from.fileSystems {
		fs.refreshAll()
	}
	return n.disks.attach(op, m, func(d *disk) { d.copyContent(from) })
}

// copyContent copies bytes, partitions and files, without what Windows knows of the original.
func (d *disk) copyContent(from *disk) {
	for block, data := range from.content {
		d.content[block] = bytes.Clone(data)
	}
	for offset, fs := range from.fileSystems {
		d.fileSystems[offset] = fs.clone()
	}
	d.table = from.table
	d.table.partitions = nil
	for _, p := range from.table.partitions {
		copied := &partition{Partition: p.Partition}
		if p.volume != nil {
			copied.volume = newVolume(Volume{State: p.volume.State}, p.volume.guid)
			copied.volume.extents = []extent{{d, p.Offset, p.volume.length()}}
		}
		d.table.partitions = append(d.table.partitions, copied)
	}
}

func (fs *fileSystem) clone() *fileSystem {
	copied := *fs
	copied.root, copied.mirrored = fs.root.clone(nil), nil
	return &copied
}

func (e *entry) clone(parent *entry) *entry {
	copied := *e
	copied.parent, copied.held, copied.lastStat, copied.content = parent, 0, nil, bytes.Clone(e.content)
	copied.children, copied.aliases = cloneAll(e.children, &copied), nil
	for alias, child := range e.aliases {
		if copied.aliases == nil {
			copied.aliases = map[string]*entry{}
		}
		copied.aliases[alias] = copied.children[winpath.Fold(child.name)]
	}
	return &copied
}

// cloneAll copies entries; nil stays nil.
func cloneAll(entries map[string]*entry, parent *entry) map[string]*entry {
	if entries == nil {
		return nil
	}
	copied := make(map[string]*entry, len(entries))
	for key, e := range entries {
		copied[key] = e.clone(parent)
	}
	return copied
}
