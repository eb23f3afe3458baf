package grpcapi

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/inspect"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/inspectv1"
)

// Inspector describes the storage of a node.
type Inspector interface {
	Describe(ctx context.Context, links bool) (inspect.Node, error)
}

// inspectorGroup is the group whose endpoints also serve the inspector. An endpoint of its own would
// be one more pipe to guard.
const inspectorGroup = "system"

// Describes reports whether the inspector may describe the node and its links. It must not reveal
// what the endpoints do not serve: it shows disks and volumes only if their groups are served, and
// links only with the group filesystem.
func Describes(endpoints []Endpoint) (node, links bool) {
	served := map[string]bool{}
	for _, e := range endpoints {
		served[e.Group] = true
	}
	node = served[inspectorGroup] && served["disk"] && served["volume"]
	return node, node && served["filesystem"]
}

type inspectorV1 struct{ inspector Inspector }

var _ inspectv1.InspectorServer = inspectorV1{}

func (s inspectorV1) DescribeNode(ctx context.Context, in *inspectv1.DescribeNodeRequest) (*inspectv1.DescribeNodeResponse, error) {
	node, err := s.inspector.Describe(ctx, in.Links)
	if err != nil {
		return nil, err
	}
	out := &inspectv1.DescribeNodeResponse{LinksSearched: node.LinksSearched, Problems: lineTexts(node.Problems)}
	for _, d := range node.Disks {
		out.Disks = append(out.Disks, wireDisk(d))
	}
	for _, v := range node.Volumes {
		out.Volumes = append(out.Volumes, &inspectv1.Volume{
			Id: string(v.ID), State: inspectv1.Volume_State(v.State), // numbered alike
			FileSystem: wireText(v.FileSystem), TotalBytes: v.Total, UsedBytes: v.Used, ReadOnly: v.ReadOnly,
			MountPaths: wireTexts(v.MountPaths), Disks: v.Disks, Partition: v.Partition, Problems: lineTexts(v.Problems),
		})
	}
	for _, l := range node.Links {
		out.Links = append(out.Links, &inspectv1.Link{Path: wireText(l.Path), VolumeId: string(l.VolumeID), Stale: lineText(wireText(l.Stale))})
	}
	return out, nil
}

func wireDisk(d inspect.Disk) *inspectv1.Disk {
	out := &inspectv1.Disk{
		Number: d.Number, Device: wireText(d.Device), SizeBytes: d.Size, Online: d.Online, ReadOnly: d.ReadOnly,
		System: d.System, PartitionStyle: d.Style, SerialNumber: wireText(d.IDs.SerialNumber), Page83: wireText(d.IDs.Page83),
		Problems: lineTexts(d.Problems),
	}
	if at := d.Location; at != nil {
		out.Location = &inspectv1.Location{Adapter: wireText(at.Adapter), Bus: wireText(at.Bus), Target: wireText(at.Target), LunId: wireText(at.LUNID)}
	}
	for _, p := range d.Partitions {
		out.Partitions = append(out.Partitions, &inspectv1.Partition{
			Number: p.Number, OffsetBytes: p.Offset, SizeBytes: p.Size, Type: p.Type, ReadOnly: p.ReadOnly, VolumeId: string(p.VolumeID),
		})
	}
	return out
}

// wireTexts returns paths without escapes, because scripts use them. A program that shows them must
// escape them.
func wireTexts(paths []string) []string {
	out := make([]string, len(paths))
	for i, path := range paths {
		out[i] = wireText(path)
	}
	return out
}

// lineTexts escapes sentences for display: they contain file names, which are not trusted.
func lineTexts(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = lineText(wireText(text))
	}
	return out
}
