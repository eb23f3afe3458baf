package inventory

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
)

// Filter selects a part of a node. Each list that is not empty must have a match.
type Filter struct {
	Problems bool // only objects with problems
	Disks    []uint32
	Pods     []string // UIDs, or how they begin, or names, with or without the namespace
	PVs      []string
	Drivers  []string
}

// Empty reports whether the filter selects everything.
func (f Filter) Empty() bool { return !f.Problems && len(f.Disks) == 0 && !f.byUser() }

func (f Filter) byUser() bool { return len(f.Pods)+len(f.PVs)+len(f.Drivers) > 0 }

// users reports whether pods, persistent volumes and drivers match.
func (f Filter) users(n Node, u Users) bool {
	return match(f.Pods, u.Pods, func(uid, wanted string) bool {
		name := n.PodName(uid)
		return len(uid) >= len(wanted) && strings.EqualFold(uid[:len(wanted)], wanted) || name == wanted || strings.HasSuffix(name, "/"+wanted)
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

// Select returns the part of the node that a filter selects. Problems about the node as a whole stay:
// they say what is not known. If nothing else matches, found is false.
func (n Node) Select(f Filter) (selected Node, found bool) {
	if f.Empty() {
		return n, true
	}
	kept := map[problem.Object]bool{}
	for _, p := range n.Problems {
		// A disk that is offline lists no volumes, so that only its problem knows the pods.
		if f.byUser() && f.users(n, usersOfProblem(p)) && (len(f.Disks) == 0 || p.Object.Type == problem.Disk) {
			kept[p.Object] = true
			for _, o := range p.Others {
				kept[o] = true
			}
			for _, name := range p.Affects { // a disk that hangs does not list its volumes
				kept[problem.Object{Type: problem.Volume, ID: name}] = true
			}
		}
	}
	n.Node, n.Unfolded = proto.CloneOf(n.Node), n.Unfolded || len(f.Disks) > 0 || f.byUser()
	loose := n.Loose()
	n.Disks = slices.DeleteFunc(n.Disks, func(d *extensionv1.Disk) bool { return !n.selectDisk(f, kept, d) })
	used := map[string]bool{}
	for _, v := range loose {
		used[v.GetId()] = kept[objectOf(v)] || n.selectVolume(f, v)
	}
	for _, d := range n.Disks {
		for _, p := range d.GetPartitions() {
			used[p.GetVolumeId()] = true
		}
	}
	n.Shares = slices.DeleteFunc(n.Shares, func(s *extensionv1.Share) bool {
		return len(f.Disks) > 0 || !f.users(n, usersOf(s.GetLinks())) || f.Problems && len(n.ProblemsOf(s)) == 0
	})
	n.Sessions = slices.DeleteFunc(n.Sessions, func(s *extensionv1.Session) bool {
		used := !f.byUser() || slices.ContainsFunc(n.Disks, func(d *extensionv1.Disk) bool {
			return d.Number != nil && slices.Contains(s.GetDisks(), d.GetNumber())
		})
		return !used || !f.disks(s.GetDisks()...) || f.Problems && len(n.ProblemsOf(s)) == 0
	})
	n.Volumes = slices.DeleteFunc(n.Volumes, func(v *extensionv1.Volume) bool { return !used[v.GetId()] })
	there := n.objects()
	n.Problems = slices.DeleteFunc(slices.Clone(n.Problems), func(p Problem) bool {
		switch p.Object.Type {
		case problem.Node:
			return false
		case problem.Mount:
			return len(f.Disks) > 0 || !f.users(n, usersOfProblem(p))
		default:
			return !slices.ContainsFunc(there, p.Is)
		}
	})
	n.Links = slices.DeleteFunc(n.Links, func(l *extensionv1.Link) bool {
		return (l.GetStale() != "" || l.GetProblem() != nil) && !slices.ContainsFunc(n.Problems, func(p Problem) bool {
			return p.Object.ID == l.GetPath() || slices.Contains(p.Affects, l.GetPath())
		})
	})
	found = f.Problems || len(there)+len(n.Stale()) > 0
	if f.byUser() {
		found = n.ofUsers(f, found) || found
	}
	return n, found
}

// ofUsers leaves the failed calls whose text names what the filter selects. A pod that is known and has no volume may wait
// for any of them.
func (n *Node) ofUsers(f Filter, found bool) (waits bool) {
	names := slices.Concat(f.PVs, f.Drivers)
	for _, p := range n.GetPods() {
		if uid := p.GetUid(); len(f.Pods) > 0 && (Filter{Pods: f.Pods}).users(*n, Users{Pods: []string{uid}}) {
			if names = append(names, uid); !found && len(f.Disks)+len(f.PVs)+len(f.Drivers) == 0 {
				p := problem.New(problem.Waits, problem.Object{Type: problem.Node}, "pod "+n.PodName(uid)+" is known, and waits for a volume or has none: nothing is mounted for it", "")
				p.Pods = []string{uid}
				n.addProblem(p)
				return true
			}
		}
	}
	n.FailedCalls = slices.DeleteFunc(n.FailedCalls, func(c *extensionv1.FailedCall) bool {
		text := strings.ToLower(c.GetRequest() + " " + c.GetError())
		return !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(text, strings.ToLower(name)) })
	})
	return false
}

// selectDisk reports whether a disk matches. It leaves only the partitions whose volumes match, unless the
// disk matches as a whole.
func (n Node) selectDisk(f Filter, kept map[problem.Object]bool, d *extensionv1.Disk) bool {
	if len(f.Disks) > 0 && (d.Number == nil || !f.disks(d.GetNumber())) {
		return false
	}
	if kept[objectOf(d)] || !f.byUser() && (!f.Problems || len(n.ProblemsOf(d)) > 0) {
		return true
	}
	d.Partitions = slices.DeleteFunc(d.Partitions, func(p *extensionv1.Partition) bool {
		v := n.Volume(p.GetVolumeId())
		return v == nil || !kept[objectOf(v)] && !n.selectVolume(f, v)
	})
	return len(d.Partitions) > 0
}

// selectVolume reports whether a volume matches, apart from its disk if that has it.
func (n Node) selectVolume(f Filter, v *extensionv1.Volume) bool {
	return f.disks(v.GetDisks()...) && f.users(n, n.Users(v)) && (!f.Problems || len(n.ProblemsOf(v)) > 0)
}

// objects returns the disks, volumes, shares and sessions.
func (n Node) objects() (all []problem.Object) {
	for _, d := range n.GetDisks() {
		all = append(all, objectOf(d))
	}
	for _, v := range n.GetVolumes() {
		all = append(all, objectOf(v))
	}
	for _, s := range n.GetShares() {
		all = append(all, objectOf(s))
	}
	for _, s := range n.GetSessions() {
		all = append(all, objectOf(s))
	}
	return all
}

// Names returns the disks, volumes, shares, sessions and stale mounts as TYPE/NAME, one of which a
// command takes.
func (n Node) Names() []string {
	var names []string
	for _, object := range n.objects() {
		names = append(names, string(object.Type)+"/"+ShortID(object.ID))
	}
	for _, l := range n.Stale() {
		names = append(names, "mount/"+l.GetPath())
	}
	return names
}
