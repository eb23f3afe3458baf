package winsim

import (
	"cmp"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// CloneDisk attaches a disk with a copy of the content of another one, such as a restored
// snapshot: the same ids, partitions and files. m describes the hardware and must not have a
// layout, partitions or bytes. Its size is by default that of the original, and never smaller.
// Windows keeps the copy offline while the original is online.
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
	described := n.look(true).disk(from)
	m.Layout, m.ID, m.TableSize, m.Bytes, m.FileSystems = described.Layout, described.ID, Size(from.table.size), described.Bytes, described.FileSystems
	for _, p := range described.Partitions {
		if v := p.Volume; v != nil { // without what Windows knows of the original
			p.Volume = &Volume{
				ID: v.ID, State: v.State, FileSystem: v.FileSystem, FileSystemSize: v.FileSystemSize, ClusterSize: v.ClusterSize, Used: v.Used,
				Label: v.Label, RootAccess: v.RootAccess, NoShortNames: v.NoShortNames, Files: v.Files, Damage: v.Damage,
			}
		}
		m.Partitions = append(m.Partitions, p)
	}
	return n.disks.attach(op, m, &resumption{})
}
