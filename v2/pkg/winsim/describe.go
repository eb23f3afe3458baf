package winsim

import (
	"maps"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Describe describes the node as it is now, without bytes and files, but with what New does not take: sessions, LUNs with
// their numbers, and what Windows does not show.
func (n *Node) Describe() Model {
	defer n.lock()()
	m := n.model
	m.Files, m.Disks, m.Volumes, m.Services = nil, nil, nil, nil
	all := slices.Concat(n.disks.sorted(), n.disks.unseen, slices.SortedStableFunc(slices.Values(n.disks.detached), byNumber))
	for _, d := range all {
		if !d.lun {
			m.Disks = append(m.Disks, n.describeDisk(d))
		}
	}
	for _, v := range n.volumes.spanning {
		described := v.describe()
		for _, e := range v.extents {
			if e.disk.nameless {
				described.Size = Size(e.length)
			} else {
				described.Extents = append(described.Extents, Extent{e.disk.Number, Size(e.offset), Size(e.length)})
			}
		}
		m.Volumes = append(m.Volumes, described)
	}
	for _, s := range n.services.all {
		m.Services = append(m.Services, s.Service)
	}
	m.SMBServers, m.SMBMappings = n.network.describe()
	m.ISCSI = n.describeInitiator()
	return m
}

func (n *Node) describeDisk(d *disk) Disk {
	m := d.describe()
	m.Presence = n.disks.presence(d)
	for i, p := range d.table.partitions {
		if p.volume != nil {
			described := p.volume.describe()
			m.Partitions[i].Volume = &described
		}
	}
	return m
}

// presence is empty for an attached disk, the default of all but LUNs.
func (m *disks) presence(d *disk) Presence {
	switch {
	case m.byNumber[d.Number] == d && !d.lun:
		return ""
	case m.byNumber[d.Number] == d:
		return DiskAttached
	case slices.Contains(m.unseen, d):
		return DiskUnseen
	case slices.Contains(m.detached, d):
		return DiskDetached
	default:
		return DiskAway
	}
}

// describe describes a volume without its place.
func (v *volume) describe() Volume {
	m := v.Volume
	m.ID, m.FileSystem, m.Hidden = string(v.id()), FileSystemNone, !v.present || v.nameless
	fs := v.extents[0].disk.fileSystems[v.extents[0].offset]
	if fs == nil {
		return m
	}
	m.FileSystem, m.Label, m.RootAccess, m.ClusterSize = fs.kind, fs.label, fs.rootAccess, Size(fs.cluster)
	m.Damage = fs.damage
	m.Used = Size(fs.used - newFileSystem(fs.kind, fs.sectors*fs.sector, fs.sector).used)
	return m
}

func (n *network) describe() (servers []SMBServer, mappings []SMBMapping) {
	for _, key := range slices.Sorted(maps.Keys(n.byName)) {
		s := n.byName[key]
		if key != winpath.Fold(s.Name) {
			continue // an alias
		}
		m := s.SMBServer
		m.Shares, m.Accounts = slices.Clone(m.Shares), slices.Clone(m.Accounts)
		for i := range m.Shares {
			m.Shares[i].MappedFor, m.Shares[i].Files = "", nil // the mapping is described itself
		}
		servers = append(servers, m)
	}
	for _, key := range slices.Sorted(maps.Keys(n.mappings)) {
		mappings = append(mappings, n.mappings[key].SMBMapping)
	}
	return servers, mappings
}

func (n *Node) describeInitiator() ISCSI {
	m := n.initiator.ISCSI
	m.Portals, m.Targets, m.Logins, m.Sessions = nil, nil, nil, nil
	for _, portal := range n.initiator.portals {
		m.Portals = append(m.Portals, portal.ISCSIPortal)
	}
	for _, t := range n.initiator.targets {
		described := t.ISCSITarget
		described.Portals, described.LUNs = nil, nil
		for _, portal := range t.portals {
			described.Portals = append(described.Portals, portal.address().String())
		}
		next := 0
		for _, d := range t.luns {
			lun := n.describeDisk(d)
			lun.SCSI = nil
			if int(d.unit) != next {
				lun.SCSI = &SCSI{LUN: d.unit}
			}
			next = int(d.unit) + 1
			described.LUNs = append(described.LUNs, lun)
		}
		m.Targets = append(m.Targets, described)
	}
	for _, login := range n.initiator.logins {
		m.Logins = append(m.Logins, ISCSILogin{Target: login.Target, Portal: login.Portal.String(), Secret: login.secret})
	}
	for _, s := range n.initiator.sessions {
		m.Sessions = append(m.Sessions, s.ISCSILogin)
	}
	return m
}
