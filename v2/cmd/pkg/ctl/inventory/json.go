package inventory

import (
	"encoding/json"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
)

// MarshalJSON implements json.Marshaler. The names are stable; docs/operations.md explains them.
func (n Node) MarshalJSON() ([]byte, error) {
	listed := output.Fields(n.Node, "sharesListed sessionsListed linksSearched")
	return output.Object{
		{Name: "host", Value: n.Host},
		{Name: "serial", Value: n.Serial},
		{Name: "time", Value: timeOf(n.At)},
		{Name: "version", Value: n.GetVersion()},
		{Name: "disks", Value: Objects(n, n.GetDisks())},
		{Name: "volumes", Value: Objects(n, n.Loose())},
		{Name: "shares", Value: Objects(n, n.GetShares())},
		listed[0],
		{Name: "sessions", Value: Objects(n, n.GetSessions())},
		listed[1],
		{Name: "pods", Value: Objects(n, n.GetPods())},
		{Name: "staleMounts", Value: Objects(n, n.Stale())},
		{Name: "outsideLinks", Value: Objects(n, n.Outside())},
		listed[2],
		{Name: "paths", Value: append([]Path{}, n.Paths...)},
		{Name: "problems", Value: append([]Problem{}, n.Problems...)},
	}.MarshalJSON()
}

// Clean changes all texts of the node as clean changes JSON.
func (n *Node) Clean(clean func(text []byte) []byte) error {
	sent, err := protojson.Marshal(n.Node)
	if err != nil {
		return err
	}
	n.Node = &extensionv1.Node{}
	if err := protojson.Unmarshal(clean(sent), n.Node); err != nil {
		return err
	}
	added := struct {
		Host     string    `json:"host"`
		Serial   string    `json:"serial"`
		Problems []Problem `json:"problems"`
	}{n.Host, n.Serial, n.Problems}
	text, err := json.Marshal(added)
	if err != nil {
		return err
	}
	err = json.Unmarshal(clean(text), &added)
	n.Host, n.Serial, n.Problems, n.Paths = added.Host, added.Serial, added.Problems, nil
	return err
}

// timeOf returns a time for scripts, or nothing if it is unknown.
func timeOf(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.Format(time.RFC3339)
}

// AllUsers returns the users of all volumes and shares.
func (n Node) AllUsers() Users {
	var paths []string
	for _, l := range n.GetLinks() {
		paths = append(paths, l.GetPath())
	}
	for _, s := range n.GetShares() {
		paths = append(paths, s.GetLinks()...)
	}
	for _, v := range n.GetVolumes() {
		paths = append(paths, v.GetMountPaths()...)
	}
	return usersOf(paths)
}

// Objects returns objects of a node for scripts.
func Objects[M proto.Message](n Node, list []M) []output.Object {
	objects := make([]output.Object, 0, len(list))
	for _, m := range list {
		objects = append(objects, n.object(m))
	}
	return objects
}

// object returns an object with its problems.
func (n Node) object(m proto.Message) (o output.Object) {
	switch m := m.(type) {
	case *extensionv1.Disk:
		o = output.Fields(m, "number device sizeBytes online readOnly system partitionStyle serialNumber page83 location "+
			"bus model path=device scsiAddress nvmeNamespaceID eui64 nguid offlineReason")
		if m.Number != nil {
			o.Set("device", "") // only a name for the disk if it has no number
		}
		o = append(o, output.Member{Name: "partitions", Value: Objects(n, m.GetPartitions())})
	case *extensionv1.Partition:
		o = output.Fields(m, "number offsetBytes sizeBytes type id readOnly")
		if m.GetSizeBytes() == 0 { // from the API, which lacks these
			for _, name := range []string{"offsetBytes", "sizeBytes", "readOnly"} {
				o.Set(name, nil)
			}
		}
		volume := output.Member{Name: "volume"}
		if v := n.Volume(m.GetVolumeId()); v != nil {
			volume.Value = n.object(v)
		}
		return append(o, volume)
	case *extensionv1.Volume:
		o = output.Fields(m, "id state fileSystem label clusterSizeBytes rootAccess totalBytes usedBytes readOnly disks mountPaths")
		o = append(o, output.Member{Name: "links", Value: n.LinksTo(m)})
		o = append(o, n.Users(m).Members()...)
	case *extensionv1.Share:
		o = output.Fields(m, "remote status mapped=status user private answers links removalWaits")
		o.Set("mapped", Mapped(m))
		o = append(o, usersOf(m.GetLinks()).Members()...)
	case *extensionv1.Session:
		o = output.Fields(m, "target connections disks persistent")
	case *extensionv1.Pod:
		return output.Fields(m, "uid namespace name")
	case *extensionv1.Link:
		return append(output.Fields(m, "path volumeID target reason=stale"), usersOf([]string{m.GetPath()}).Members()...)
	}
	return append(o, output.Member{Name: "problems", Value: n.ProblemsOf(m)})
}

// LocatedVolume returns a volume for scripts, with its disk and partition if it is on one.
func (n Node) LocatedVolume(v *extensionv1.Volume) output.Object {
	located := append(output.Object{{Name: "disk"}}, output.Fields(v, "partition")...)
	if len(v.GetDisks()) == 1 {
		located[0].Value = v.GetDisks()[0]
	}
	return append(located, n.object(v)...)
}
