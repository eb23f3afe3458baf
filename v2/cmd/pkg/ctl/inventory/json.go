package inventory

import (
	"time"

	"google.golang.org/protobuf/proto"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
)

// MarshalJSON implements json.Marshaler: what the server has sent, with the problems that follow from it, and the names
// of the users.
func (n Node) MarshalJSON() ([]byte, error) {
	o := append(output.Object{
		{Name: "host", Value: n.Host},
		{Name: "serial", Value: n.Serial},
		{Name: "time", Value: timeOf(n.At)},
	}, output.Message(n.Node)...)
	o.Set("disks", Objects(n, n.GetDisks()))
	o.Set("volumes", Objects(n, n.GetVolumes()))
	o.Set("links", Objects(n, n.GetLinks()))
	o.Set("shares", Objects(n, n.GetShares()))
	o.Set("sessions", Objects(n, n.GetSessions()))
	o.Set("problems", append([]Problem{}, n.Problems...))
	return o.MarshalJSON()
}

// timeOf returns a time for scripts, or nothing if it is unknown.
func timeOf(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.Format(time.RFC3339)
}

// Objects returns objects of a node for scripts, with their problems and users.
func Objects[M proto.Message](n Node, list []M) []output.Object {
	objects := make([]output.Object, 0, len(list))
	for _, m := range list {
		o, users := output.Message(m), usersOf(nil)
		switch m := proto.Message(m).(type) {
		case *extensionv1.Disk:
			users = n.DiskUsers(m)
		case *extensionv1.Volume:
			users = n.Users(m)
		case *extensionv1.Share:
			users = usersOf(m.GetLinks())
		case *extensionv1.Link:
			users = usersOf([]string{m.GetPath()})
		}
		o.Set("problems", n.ProblemsOf(m))
		objects = append(objects, append(o, users.Members()...))
	}
	return objects
}
