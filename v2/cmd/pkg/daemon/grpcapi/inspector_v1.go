package grpcapi

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// Inspector describes the storage of a node.
type Inspector interface {
	Describe(ctx context.Context, parts ...node.Part) (*node.Description, error)
	DescribeVolumes(ctx context.Context, ids ...string) ([]node.Volume, error)
	SessionsOf(ctx context.Context, targets []string, disks ...uint32) ([]node.Session, error)
	FindDisk(ctx context.Context, query node.Query) (*node.Disk, error)
}

// inspectorGroup is the group whose endpoints also serve the inspector.
const inspectorGroup = "system"

// Describes reports whether the inspector may describe disks and volumes, links, shares and sessions. It must
// not reveal what the endpoints do not serve: it shows disks and volumes only if their groups are
// served, links only with the group filesystem, shares only with the group smb, and sessions only with
// the group iscsi.
func Describes(endpoints []Endpoint) (disks, links, shares, sessions bool) {
	served := map[string]bool{}
	for _, e := range endpoints {
		served[e.Group] = true
	}
	disks = served[inspectorGroup] && served["disk"] && served["volume"]
	return disks, disks && served["filesystem"], disks && served["smb"], disks && served["iscsi"]
}

type inspectorV1 struct {
	inspector    Inspector
	descriptions *descriptions
}

var _ extensionv1.InspectorServer = inspectorV1{}

func newInspectorV1(s Services) any {
	if s.Inspector == nil {
		return nil
	}
	return inspectorV1{s.Inspector, newDescriptions(s.Inspector, s.Annotate)}
}

func (s inspectorV1) DescribeNode(ctx context.Context, in *extensionv1.DescribeNodeRequest) (*extensionv1.Node, error) {
	switch sessions := len(in.OnlySessionsOfTargets)+len(in.OnlySessionsOfDisks) > 0; {
	case len(in.OnlyVolumeIds) > 0 && sessions:
		return nil, winerr.New(winerr.Invalid, "describe node", "", "it has volumes and sessions; ask for either")
	case sessions:
		found, err := s.inspector.SessionsOf(ctx, in.OnlySessionsOfTargets, in.OnlySessionsOfDisks...)
		if err != nil {
			return nil, err
		}
		return WireNode(&node.Description{Sessions: found, SessionsListed: true}), nil
	case len(in.OnlyVolumeIds) > 0:
		found, err := s.inspector.DescribeVolumes(ctx, in.OnlyVolumeIds...)
		if err != nil {
			return nil, err
		}
		return WireNode(&node.Description{Volumes: found}), nil
	}
	var parts []node.Part
	if in.Links {
		parts = append(parts, node.Links)
	}
	if in.Shares {
		parts = append(parts, node.Shares)
	}
	if in.ShareAnswers {
		parts = append(parts, node.ShareAnswers)
	}
	if in.Sessions {
		parts = append(parts, node.Sessions)
	}
	return s.descriptions.describe(ctx, parts...)
}

// WireNode is a description as the inspector sends it.
func WireNode(found *node.Description) *extensionv1.Node {
	out := &extensionv1.Node{
		LinksSearched: found.LinksSearched, SharesListed: found.SharesListed, SessionsListed: found.SessionsListed,
		VolumesFailed: found.VolumesFailed, LinksFailed: found.LinksFailed, SharesFailed: found.SharesFailed, Problems: wireProblems(found.Problems),
		Version: version.String(),
	}
	for _, p := range found.Pods {
		out.Pods = append(out.Pods, &extensionv1.Pod{Uid: wireText(p.UID), Namespace: wireText(p.Namespace), Name: wireText(p.Name)})
	}
	for _, d := range found.Disks {
		out.Disks = append(out.Disks, wireDisk(d))
	}
	for _, v := range found.Volumes {
		out.Volumes = append(out.Volumes, &extensionv1.Volume{
			Id: v.ID, State: string(v.State), FileSystem: wireText(v.FileSystem), TotalBytes: v.Total, UsedBytes: v.Used, ReadOnly: v.ReadOnly,
			Label: wireText(v.Label), ClusterSizeBytes: v.ClusterSize, RootAccess: wireText(v.RootAccess),
			MountPaths: wireTexts(v.MountPaths), MountPathsListed: v.MountPathsListed, Disks: v.Disks, Partition: v.Partition, Problems: wireProblems(v.Problems),
			Dirty: v.Dirty, Damage: string(v.Damage),
		})
	}
	for _, l := range found.Links {
		out.Links = append(out.Links, &extensionv1.Link{
			Path: wireText(l.Path), VolumeId: l.VolumeID, Stale: lineText(wireText(l.Stale)), Problem: WireProblem(l.Problem), Target: wireText(l.Target), Share: wireText(l.Share),
		})
	}
	for _, share := range found.Shares {
		out.Shares = append(out.Shares, wireShare(share))
	}
	for _, s := range found.Sessions {
		out.Sessions = append(out.Sessions, &extensionv1.Session{
			Target: wireText(s.Target), Connections: s.Connections, Disks: s.Disks, Persistent: s.Persistent, Portals: wireTexts(s.Portals), Problems: wireProblems(s.Problems),
		})
	}
	return out
}

func wireShare(share node.Share) *extensionv1.Share {
	out := &extensionv1.Share{
		Remote: wireText(share.Remote), Status: share.Status, Private: share.Private, Answers: share.Answers,
		Links: wireTexts(share.Links), RemovalWaits: share.RemovalWaits, Problems: wireProblems(share.Problems),
	}
	if share.User != nil {
		out.User = new(wireText(*share.User))
	}
	return out
}

func (s inspectorV1) FindDisk(ctx context.Context, in *extensionv1.FindDiskRequest) (*extensionv1.Disk, error) {
	const op = "find disk with"
	keys := cmp.Or(in.Disk, &extensionv1.Disk{})
	if err := onlyFields(op, keys, "number", "device", "size_bytes", "serial_number", "page83", "bus", "model", "scsi_address", "nvme_namespace_id", "eui64", "nguid", "partitions"); err != nil {
		return nil, err
	}
	query := node.Query{
		Number: keys.Number, Path: keys.Device, Bus: keys.Bus, Model: keys.Model, Serial: keys.SerialNumber, SerialPrefix: in.SerialNumberPrefix,
		Page83: keys.Page83, LUN: in.LunId, Adapter: in.Adapter, NamespaceID: keys.NvmeNamespaceId, EUI64: keys.Eui64, NGUID: keys.Nguid,
		Size: keys.GetSizeBytes(),
	}
	switch partitions := keys.Partitions; {
	case len(partitions) == 1:
		if err := onlyFields(op, partitions[0], "id"); err != nil {
			return nil, err
		}
		query.Partition = partitions[0].Id
	case len(partitions) > 1:
		return nil, winerr.New(winerr.Invalid, op, "", "it has the ids of %d partitions; one is enough", len(partitions))
	}
	if text := keys.ScsiAddress; text != "" {
		var a node.SCSIAddress
		if _, err := fmt.Sscanf(text, "%d:%d:%d:%d", &a.Port, &a.Path, &a.Target, &a.LUN); err != nil || a.String() != text {
			return nil, winerr.New(winerr.Invalid, op, quote(text), "a SCSI address is port:path:target:LUN, each at most 255")
		}
		query.SCSI = &a
	}
	found, err := s.inspector.FindDisk(ctx, query)
	if err != nil {
		return nil, err
	}
	return wireDisk(*found), nil
}

func wireDisk(d node.Disk) *extensionv1.Disk {
	out := &extensionv1.Disk{
		Number: d.Number, Device: wireText(d.Path), SizeBytes: d.Size, Online: d.Online, OfflineReason: d.OfflineReason, ReadOnly: d.ReadOnly,
		System: d.System, PartitionStyle: d.Style, SerialNumber: wireText(d.Serial), Page83: wireText(d.Page83),
		Bus: d.Bus, Model: wireText(d.Model), NvmeNamespaceId: d.NamespaceID, Eui64: d.EUI64, Nguid: d.NGUID,
		Health: d.Health, HealthReason: d.HealthReason, Problems: wireProblems(d.Problems),
	}
	if at := d.Location; at != nil {
		out.Location = wireText(strings.Join([]string{at.Adapter, at.Bus, at.Target, at.LUNID}, ":"))
	}
	if d.SCSI != nil {
		out.ScsiAddress = d.SCSI.String()
	}
	for _, p := range d.Partitions {
		out.Partitions = append(out.Partitions, &extensionv1.Partition{
			Number: p.Number, OffsetBytes: &p.Offset, SizeBytes: &p.Size, Type: p.Type, ReadOnly: &p.ReadOnly, VolumeId: p.VolumeID, Id: p.ID,
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

func wireProblems(problems []node.Problem) (out []*extensionv1.Problem) {
	for _, p := range problems {
		out = append(out, WireProblem(&p))
	}
	return out
}

// WireProblem escapes a problem for display: it contains file names, which are not trusted.
func WireProblem(p *node.Problem) *extensionv1.Problem {
	if p == nil {
		return nil
	}
	return &extensionv1.Problem{Kind: string(p.Kind), WindowsCode: p.WindowsCode, Object: lineText(wireText(p.Object)), Text: lineText(wireText(p.Text))}
}
