package inventory

import (
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/storage/warning"
)

// Filter selects a part of a node. Each list that is not empty must have a match.
type Filter struct {
	Problems bool // only objects with warnings
	Disks    []uint32
	Pods     []string // UIDs, or how they begin
	PVs      []string
	Drivers  []string
}

// Empty reports whether the filter selects everything.
func (f Filter) Empty() bool { return !f.Problems && len(f.Disks) == 0 && !f.byUser() }

func (f Filter) byUser() bool { return len(f.Pods)+len(f.PVs)+len(f.Drivers) > 0 }

// users reports whether pods, persistent volumes and drivers match.
func (f Filter) users(u Users) bool {
	return match(f.Pods, u.Pods, func(uid, begin string) bool {
		return len(uid) >= len(begin) && strings.EqualFold(uid[:len(begin)], begin)
	}) && match(f.PVs, u.PVs, strings.EqualFold) && match(f.Drivers, u.Drivers, strings.EqualFold)
}

// match reports whether one of the names is wanted, or all are.
func match(wanted, names []string, same func(name, wanted string) bool) bool {
	return len(wanted) == 0 || slices.ContainsFunc(wanted, func(w string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return same(name, w) })
	})
}

func (f Filter) disks(numbers ...uint32) bool {
	return len(f.Disks) == 0 || slices.ContainsFunc(numbers, func(n uint32) bool { return slices.Contains(f.Disks, n) })
}

// Select returns the part of the node that a filter selects. Warnings about the node as a whole stay:
// they say what is not known. If nothing else matches, found is false.
func (n Node) Select(f Filter) (selected Node, found bool) {
	if f.Empty() {
		return n, true
	}
	kept := map[warning.Object]bool{}
	for _, w := range n.Problems {
		// A disk that is offline lists no volumes, so that only its warning knows the pods.
		if f.byUser() && f.users(UsersOf(w)) && (len(f.Disks) == 0 || w.Object.Type == warning.Disk) {
			kept[w.Object] = true
			for _, name := range w.Affects { // a disk that hangs does not tell its volumes
				kept[warning.Object{Type: warning.Volume, ID: name}] = true
			}
		}
	}
	n.Disks = n.selectDisks(f, kept)
	n.Volumes = slices.DeleteFunc(slices.Clone(n.Volumes), func(v Volume) bool {
		return !kept[warning.Object{Type: warning.Volume, ID: v.ID}] && !f.volume(v)
	})
	n.Shares = slices.DeleteFunc(slices.Clone(n.Shares), func(s Share) bool {
		return len(f.Disks) > 0 || !f.users(s.Users) || f.Problems && len(s.Warnings) == 0
	})
	n.Sessions = slices.DeleteFunc(slices.Clone(n.Sessions), func(s Session) bool {
		used := !f.byUser() || slices.ContainsFunc(n.Disks, func(d Disk) bool { return d.Number != nil && slices.Contains(s.Disks, *d.Number) })
		return !used || !f.disks(s.Disks...) || f.Problems && len(s.Warnings) == 0
	})
	n.Problems = slices.DeleteFunc(slices.Clone(n.Problems), func(w Warning) bool {
		switch w.Object.Type {
		case warning.Node:
			return false
		case warning.Mount, warning.Path:
			return len(f.Disks) > 0 || !f.users(UsersOf(w))
		default:
			return n.warningsOf(w.Object) == nil
		}
	})
	n.StaleMounts = slices.DeleteFunc(slices.Clone(n.StaleMounts), func(s StaleMount) bool {
		return !slices.ContainsFunc(n.Problems, func(w Warning) bool { return w.Object.ID == s.Path || slices.Contains(w.Affects, s.Path) })
	})
	objects := len(n.Disks) + len(n.Volumes) + len(n.Shares) + len(n.Sessions) + len(n.StaleMounts)
	return n, f.Problems || objects > 0
}

// selectDisks returns the disks that match, with the partitions whose volumes match.
func (n *Node) selectDisks(f Filter, kept map[warning.Object]bool) []Disk {
	disks := []Disk{}
	for _, d := range n.Disks {
		if len(f.Disks) > 0 && (d.Number == nil || !f.disks(*d.Number)) {
			continue
		}
		if kept[d.object()] || f.Problems && !f.byUser() && len(d.Warnings) > 0 || !f.Problems && !f.byUser() {
			disks = append(disks, d)
			continue
		}
		d.Partitions = slices.DeleteFunc(slices.Clone(d.Partitions), func(p Partition) bool {
			return p.Volume == nil || !kept[warning.Object{Type: warning.Volume, ID: p.Volume.ID}] && !f.volume(*p.Volume)
		})
		if len(d.Partitions) > 0 {
			disks = append(disks, d)
		}
	}
	return disks
}

// volume reports whether a volume matches, apart from its disk if that has it.
func (f Filter) volume(v Volume) bool {
	return f.disks(v.Disks...) && f.users(v.Users) && (!f.Problems || len(v.Warnings) > 0)
}

// Names returns the disks, volumes, shares, sessions and stale mounts as TYPE/NAME, one of which a
// command takes.
func (n Node) Names() []string {
	var names []string
	for _, d := range n.Disks {
		names = append(names, "disk/"+d.object().ID)
	}
	for _, v := range n.AllVolumes() {
		names = append(names, "volume/"+ShortID(v.ID))
	}
	for _, s := range n.Shares {
		names = append(names, "share/"+s.Remote)
	}
	for _, s := range n.Sessions {
		names = append(names, "session/"+s.Target)
	}
	for _, m := range n.StaleMounts {
		names = append(names, "mount/"+m.Path)
	}
	return names
}
