package remote

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

type machine struct{ *Daemon }

var _ nodeapi.Interface = machine{}

func (m machine) Describe(ctx context.Context, parts ...nodeapi.Part) (*nodeapi.Description, error) {
	return m.inspect(ctx, &extensionv1.DescribeNodeRequest{
		Links: slices.Contains(parts, nodeapi.Links), Shares: slices.Contains(parts, nodeapi.Shares),
		ShareAnswers: slices.Contains(parts, nodeapi.ShareAnswers), Sessions: slices.Contains(parts, nodeapi.Sessions),
	})
}

func (m machine) DescribeVolumes(ctx context.Context, ids ...string) ([]nodeapi.Volume, error) {
	if len(ids) == 0 { // the daemon would describe all
		return nil, nil
	}
	found, err := m.inspect(ctx, &extensionv1.DescribeNodeRequest{OnlyVolumeIds: ids})
	return found.Volumes, err
}

func (m machine) SessionsOf(ctx context.Context, targets []string, disks ...uint32) ([]nodeapi.Session, error) {
	if len(targets)+len(disks) == 0 {
		return nil, nil
	}
	found, err := m.inspect(ctx, &extensionv1.DescribeNodeRequest{OnlySessionsOfTargets: targets, OnlySessionsOfDisks: disks})
	return found.Sessions, err
}

func (m machine) inspect(ctx context.Context, request *extensionv1.DescribeNodeRequest) (*nodeapi.Description, error) {
	response, err := extensionv1.NewInspectorClient(m.system).DescribeNode(ctx, request)
	if err != nil {
		return &nodeapi.Description{}, m.explain(err)
	}
	d := &nodeapi.Description{}
	fill(reflect.ValueOf(d).Elem(), reflect.ValueOf(response))
	for i, found := range response.Disks {
		d.Disks[i] = diskOf(found)
	}
	for i, v := range response.Volumes {
		d.Volumes[i].ClusterSize, d.Volumes[i].Total, d.Volumes[i].Used = v.ClusterSizeBytes, v.TotalBytes, v.UsedBytes
	}
	return d, nil
}

func diskOf(d *extensionv1.Disk) nodeapi.Disk {
	out := nodeapi.Disk{Path: d.Device, Serial: d.SerialNumber, NamespaceID: d.NvmeNamespaceId, Size: d.SizeBytes, Style: d.PartitionStyle}
	fill(reflect.ValueOf(&out).Elem(), reflect.ValueOf(d))
	if at := strings.Split(d.Location, ":"); len(at) == 4 {
		out.Location = &diskapi.DiskLocation{Adapter: at[0], Bus: at[1], Target: at[2], LUNID: at[3]}
	}
	var scsi nodeapi.SCSIAddress
	if _, err := fmt.Sscanf(d.ScsiAddress, "%d:%d:%d:%d", &scsi.Port, &scsi.Path, &scsi.Target, &scsi.LUN); err == nil {
		out.SCSI = &scsi
	}
	for i, p := range d.Partitions {
		out.Partitions[i].Offset, out.Partitions[i].Size = p.GetOffsetBytes(), p.GetSizeBytes()
	}
	return out
}

// FindDisk asks the inspector, which alone knows all keys, and which disk Windows runs from.
func (m machine) FindDisk(ctx context.Context, query nodeapi.Query) (*nodeapi.Disk, error) {
	keys := &extensionv1.Disk{
		Number: query.Number, Device: query.Path, Bus: query.Bus, Model: query.Model, SerialNumber: query.Serial, Page83: query.Page83,
		NvmeNamespaceId: query.NamespaceID, Eui64: query.EUI64, Nguid: query.NGUID, SizeBytes: &query.Size,
	}
	if query.Partition != "" {
		keys.Partitions = []*extensionv1.Partition{{Id: query.Partition}}
	}
	if query.SCSI != nil {
		keys.ScsiAddress = query.SCSI.String()
	}
	found, err := extensionv1.NewInspectorClient(m.system).FindDisk(ctx, &extensionv1.FindDiskRequest{Disk: keys, SerialNumberPrefix: query.SerialPrefix, LunId: query.LUN, Adapter: query.Adapter})
	switch {
	case err == nil && found.Number == nil:
		return nil, failed(failure.Internal, "find disk with", query.String(), "the daemon has found one without a number")
	case err == nil:
		out := diskOf(found)
		return &out, nil
	}
	if numbers := ambiguousOf(err); numbers != nil {
		return nil, ambiguous(query, numbers)
	}
	err = m.explain(err)
	if isUnsupported(err) || errors.Is(err, ErrNoPipe) {
		return m.findListed(ctx, query, err)
	}
	return nil, err
}

// findListed finds a disk by the keys that the published API lists, for a daemon without an
// inspector and for containers without its pipe. A query with another key fails with why.
func (m machine) findListed(ctx context.Context, query nodeapi.Query, why error) (*nodeapi.Disk, error) {
	listed := nodeapi.Query{
		Number: query.Number, Serial: query.Serial, SerialPrefix: query.SerialPrefix, Page83: query.Page83, LUN: query.LUN, Adapter: query.Adapter,
	}
	if listed != query {
		return nil, why
	}
	ids, err := m.Disk().ListDiskIDs(ctx, &disk.ListDiskIDsRequest{})
	if err != nil {
		return nil, err
	}
	locations, idsAfter := &disk.ListDiskLocationsResponse{}, ids
	if query.LUN != "" || query.Adapter != "" {
		if locations, err = m.Disk().ListDiskLocations(ctx, &disk.ListDiskLocationsRequest{}); err != nil {
			return nil, err
		}
		if idsAfter, err = m.Disk().ListDiskIDs(ctx, &disk.ListDiskIDsRequest{}); err != nil {
			return nil, err
		}
	}
	same := func(want, have string) bool { return want == "" || want == have }
	var found []uint32
	for number, id := range ids.DiskIDs {
		at, after := locations.DiskLocations[number], idsAfter.DiskIDs[number]
		if at == nil {
			at = &disk.DiskLocation{}
		}
		if (query.Number == nil || *query.Number == number) && same(query.Serial, id.SerialNumber) && strings.HasPrefix(id.SerialNumber, query.SerialPrefix) &&
			same(query.Page83, id.Page83) && same(query.LUN, at.LUNID) && same(query.Adapter, at.Adapter) &&
			after != nil && *after == *id { // otherwise the location can be that of another disk, which has the number now
			found = append(found, number)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		return nil, failed(failure.NotFound, "find disk with", query.String(), "there is no such disk, or Windows has not seen it yet")
	case 1:
		id := ids.DiskIDs[found[0]]
		return &nodeapi.Disk{Number: &found[0], Serial: id.SerialNumber, Page83: id.Page83}, nil
	default:
		return nil, ambiguous(query, found)
	}
}

func ambiguous(query nodeapi.Query, numbers []uint32) error {
	err := &nodeapi.AmbiguousError{Query: query}
	for _, number := range numbers {
		err.Candidates = append(err.Candidates, nodeapi.Disk{Number: &number})
	}
	return err
}

// ambiguousOf returns the disks among the details of a status.
func ambiguousOf(err error) []uint32 {
	s, _ := status.FromError(err)
	for _, detail := range s.Details() {
		if disks, ok := detail.(*extensionv1.AmbiguousDisks); ok {
			return disks.GetNumbers()
		}
	}
	return nil
}

// Heal looks, or removes what is certainly gone. The daemon has the other options.
func (m machine) Heal(ctx context.Context, options nodeapi.HealOptions) (*nodeapi.Healing, error) {
	const op = "heal node"
	if options != (nodeapi.HealOptions{Remove: options.Remove}) {
		return nil, failed(failure.Unsupported, op, "", "the daemon takes Remove only; omit the other options")
	}
	found, err := extensionv1.NewHealerClient(m.files).Heal(ctx, &extensionv1.HealRequest{DryRun: !options.Remove})
	if err != nil {
		if isUnsupported(err) {
			err = missing{op, "", "a service for it", ""}.err()
		}
		return nil, err
	}
	out := &nodeapi.Healing{Live: int(found.Live)}
	fill(reflect.ValueOf(&out.Problems).Elem(), reflect.ValueOf(found.Problems))
	for _, link := range found.Stale {
		stale := nodeapi.StaleMount{Path: link.Path, Target: link.Target, Cause: link.Stale, State: nodeapi.StaleState(link.State), Reason: link.Reason}
		if link.ChangedUnix != 0 {
			stale.Changed = time.Unix(link.ChangedUnix, 0)
		}
		out.Stale = append(out.Stale, stale)
	}
	return out, nil
}

// explain names the pipe of the inspector if the daemon does not serve it there, or the container does not have it.
func (m machine) explain(err error) error {
	const remedy = "CSI Proxy v2 must serve the groups system, disk and volume, and the container needs this pipe"
	const op = "ask the inspector at"
	pipe := m.pathOf("system", "v1alpha1")
	switch {
	case isUnsupported(err):
		return failed(failure.Unsupported, op, pipe, "the daemon has none; %s", remedy)
	case errors.Is(err, ErrNoPipe):
		return failed(failure.Unavailable, op, pipe, "%s; %s", failure.Message(err), remedy).as(ErrNoPipe)
	}
	return err
}
