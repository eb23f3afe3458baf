package inventory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/storage/warning"
)

// Warning is a problem of a node, disk, volume, share, session or path.
type Warning = warning.Warning

// warn adds a warning to its object and to the problems of the node.
func (n *Node) warn(w Warning) {
	if w.Affects == nil {
		w.Affects = []string{}
	}
	n.Problems = append(n.Problems, w)
	warning.Sort(n.Problems)
	if list := n.warningsOf(w.Object); list != nil {
		*list = append(*list, w)
	}
}

// warningsOf returns the list of warnings of an object; nil if it has none.
func (n *Node) warningsOf(object warning.Object) *[]Warning {
	switch object.Type {
	case warning.Node:
		return &n.Warnings
	case warning.Disk:
		for i := range n.Disks {
			if n.Disks[i].object() == object {
				return &n.Disks[i].Warnings
			}
		}
	case warning.Volume:
		if v := n.find(object.ID); v != nil {
			return &v.Warnings
		}
	case warning.Share:
		if i := slices.IndexFunc(n.Shares, func(s Share) bool { return s.Remote == object.ID }); i >= 0 {
			return &n.Shares[i].Warnings
		}
	case warning.Session:
		if i := slices.IndexFunc(n.Sessions, func(s Session) bool { return s.Target == object.ID }); i >= 0 {
			return &n.Sessions[i].Warnings
		}
	case warning.Path:
		if i := slices.IndexFunc(n.Paths, func(p Path) bool { return p.Path == object.ID }); i >= 0 {
			return &n.Paths[i].Warnings
		}
	case warning.Mount: // staleMounts has them
	}
	return nil
}

// unseen adds a warning that something is not visible.
func (n *Node) unseen(text string) {
	n.warn(Warning{
		Kind: warning.Unseen, Object: warning.Object{Type: warning.Node}, Text: text,
		Advice: "let a csi-proxy of this project serve all groups, see its -api-groups",
	})
}

// find returns the volume with an id, or nil.
func (n *Node) find(id string) *Volume {
	for i := range n.Disks {
		for _, p := range n.Disks[i].Partitions {
			if p.Volume != nil && p.Volume.ID == id {
				return p.Volume
			}
		}
	}
	for i := range n.Volumes {
		if n.Volumes[i].ID == id {
			return &n.Volumes[i]
		}
	}
	return nil
}

func (d *Disk) object() warning.Object {
	if d.Number == nil {
		return warning.Object{Type: warning.Disk, ID: d.Device}
	}
	return warning.Object{Type: warning.Disk, ID: strconv.FormatUint(uint64(*d.Number), 10)}
}

// Name returns the name of the disk for people.
func (d Disk) Name() string {
	if d.Number == nil {
		return "disk ? (" + d.Device + ")"
	}
	return fmt.Sprintf("disk %d", *d.Number)
}

// dropRepeatedWarnings removes warnings of paths that the list of stale mounts repeats.
func (n *Node) dropRepeatedWarnings() {
	repeated := func(w Warning) bool {
		return w.Kind == warning.StaleMount && w.Object.Type == warning.Path && n.isStale(w.Object.ID)
	}
	n.Problems = slices.DeleteFunc(n.Problems, repeated)
	for i := range n.Paths {
		n.Paths[i].Warnings = slices.DeleteFunc(n.Paths[i].Warnings, repeated)
	}
}

func (n *Node) isStale(path string) bool {
	return slices.ContainsFunc(n.StaleMounts, func(s StaleMount) bool { return strings.EqualFold(s.Path, path) })
}
