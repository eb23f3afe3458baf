package inventory

import (
	"google.golang.org/protobuf/proto"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
)

// Problem is a problem of a node, disk, volume, share, session or path.
type Problem = problem.Problem

func (n *Node) addProblem(p Problem) {
	n.Problems = append(n.Problems, p)
	problem.Sort(n.Problems)
}

// objectOf returns what problems call a message.
func objectOf(m proto.Message) problem.Object {
	switch m := m.(type) {
	case *extensionv1.Disk:
		return problem.DiskObject(m)
	case *extensionv1.Volume:
		return problem.Object{Type: problem.Volume, ID: m.GetId()}
	case *extensionv1.Share:
		return problem.Object{Type: problem.Share, ID: m.GetRemote()}
	case *extensionv1.Session:
		return problem.Object{Type: problem.Session, ID: m.GetTarget()}
	default:
		return problem.Object{Type: problem.Node}
	}
}

// ProblemsOf returns the problems about a disk, volume, share or session, or about the node as a whole.
func (n Node) ProblemsOf(m proto.Message) []Problem {
	object, about := objectOf(m), []Problem{}
	for _, p := range n.Problems {
		if p.Is(object) {
			about = append(about, p)
		}
	}
	return about
}

// About returns the problems of all objects of a type, each once: those with one cause are one problem of many objects.
func (n Node) About(t problem.Type) (about []Problem) {
	for _, p := range n.Problems {
		if p.Object.Type == t {
			about = append(about, p)
		}
	}
	return about
}

// unseen adds a problem that something is not visible.
func (n *Node) unseen(text string) {
	n.addProblem(problem.New(problem.Unseen, problem.Object{Type: problem.Node}, text, ""))
}
