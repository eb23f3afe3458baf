package inventory

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/storage/warning"
)

// Warning is a problem of a node, disk, volume, share, session or path.
type Warning = warning.Warning

// warn adds a warning.
func (n *Node) warn(w Warning) {
	n.Problems = append(n.Problems, w)
	warning.Sort(n.Problems)
}

// objectOf returns what warnings call a message.
func objectOf(m proto.Message) warning.Object {
	switch m := m.(type) {
	case *extensionv1.Disk:
		return warning.DiskObject(m)
	case *extensionv1.Volume:
		return warning.Object{Type: warning.Volume, ID: m.GetId()}
	case *extensionv1.Share:
		return warning.Object{Type: warning.Share, ID: m.GetRemote()}
	case *extensionv1.Session:
		return warning.Object{Type: warning.Session, ID: m.GetTarget()}
	default:
		return warning.Object{Type: warning.Node}
	}
}

// Warnings returns the warnings about a disk, volume, share or session, or about the node as a whole.
func (n Node) Warnings(m proto.Message) []Warning {
	object, about := objectOf(m), []Warning{}
	for _, w := range n.Problems {
		if w.Object == object {
			about = append(about, w)
		}
	}
	return about
}

// unseen adds a warning that something is not visible.
func (n *Node) unseen(text string) {
	n.warn(warning.New(warning.Unseen, warning.Object{Type: warning.Node}, text, "let a csi-proxy of this project serve all groups, see its -api-groups"))
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
	return slices.ContainsFunc(n.Stale(), func(l *extensionv1.Link) bool { return strings.EqualFold(l.GetPath(), path) })
}
