package mounter

import (
	"context"
	"errors"
	"slices"
	"strings"

	"google.golang.org/grpc/status"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/client/failure"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// describe asks the inspector of the daemon. The verbs use only volumes, links and shares.
func (d *daemon) describe(ctx context.Context, parts ...nodeapi.Part) (*nodeapi.Description, error) {
	return d.inspect(ctx, &extensionv1.DescribeNodeRequest{
		Links: slices.Contains(parts, nodeapi.Links), Shares: slices.Contains(parts, nodeapi.Shares),
	})
}

func (d *daemon) describeVolumes(ctx context.Context, ids []string) (*nodeapi.Description, error) {
	return d.inspect(ctx, &extensionv1.DescribeNodeRequest{OnlyVolumeIds: ids})
}

func (d *daemon) sessions(ctx context.Context, name string) ([]nodeapi.Session, error) {
	found, err := d.inspect(ctx, &extensionv1.DescribeNodeRequest{Sessions: true, OnlyVolumeIds: []string{name}})
	if err != nil {
		return nil, err
	}
	return found.Sessions, nil
}

func (d *daemon) inspect(ctx context.Context, request *extensionv1.DescribeNodeRequest) (*nodeapi.Description, error) {
	response, err := call(ctx, d.system, extensionv1.NewInspectorClient, extensionv1.InspectorClient.DescribeNode, request)
	if err != nil {
		return nil, d.explainInspector(err)
	}
	description := &nodeapi.Description{
		LinksSearched: response.LinksSearched, SharesListed: response.SharesListed,
		VolumesFailed: response.VolumesFailed, LinksFailed: response.LinksFailed, SharesFailed: response.SharesFailed, Problems: response.Problems,
	}
	for _, v := range response.Volumes {
		description.Volumes = append(description.Volumes, nodeapi.Volume{
			ID: v.Id, State: nodeapi.State(v.State), FileSystem: v.FileSystem, Total: v.TotalBytes, Used: v.UsedBytes, ReadOnly: v.ReadOnly,
			MountPaths: v.MountPaths, MountPathsListed: v.MountPathsListed, Disks: v.Disks, Partition: v.Partition, Problems: v.Problems,
		})
	}
	for _, l := range response.Links {
		description.Links = append(description.Links, nodeapi.Link{Path: l.Path, VolumeID: l.VolumeId, Stale: l.Stale})
	}
	for _, s := range response.Sessions {
		description.Sessions = append(description.Sessions, nodeapi.Session{
			Target: s.Target, Connections: s.Connections, Disks: s.Disks, Persistent: s.Persistent, Problems: s.Problems,
		})
	}
	for _, s := range response.Shares {
		description.Shares = append(description.Shares, nodeapi.Share{
			Remote: s.Remote, Status: s.Status, User: s.User, Private: s.Private, Answers: s.Answers, Links: s.Links,
			RemovalWaits: s.RemovalWaits, Problems: s.Problems,
		})
	}
	return description, nil
}

// findDisk asks the inspector, which alone knows all keys, and which disk Windows runs from.
func (d *daemon) findDisk(ctx context.Context, query nodeapi.Query) (foundDisk, error) {
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
	disk, err := call(ctx, d.system, extensionv1.NewInspectorClient, extensionv1.InspectorClient.FindDisk,
		&extensionv1.FindDiskRequest{Disk: keys, SerialNumberPrefix: query.SerialPrefix, LunId: query.LUN, Adapter: query.Adapter})
	if err != nil {
		if numbers := ambiguousOf(err); numbers != nil {
			return foundDisk{}, ambiguous(query, numbers)
		}
		err = d.explainInspector(err)
		if cannotTell(err) {
			return d.findListed(ctx, query, err)
		}
		return foundDisk{}, err
	}
	return foundDisk{number: disk.GetNumber(), is: diskapi.MustBe{Device: disk.Device, Serial: disk.SerialNumber, Page83: disk.Page83}}, nil
}

// findListed finds a disk by the keys that the published API lists, for a daemon without an
// inspector and for containers without its pipe. A query with another key fails with why.
func (d *daemon) findListed(ctx context.Context, query nodeapi.Query, why error) (foundDisk, error) {
	listed := nodeapi.Query{
		Number: query.Number, Serial: query.Serial, SerialPrefix: query.SerialPrefix, Page83: query.Page83, LUN: query.LUN, Adapter: query.Adapter,
	}
	if listed != query {
		return foundDisk{}, why
	}
	locations := &diskv1.ListDiskLocationsResponse{}
	if query.LUN != "" || query.Adapter != "" {
		var err error
		if locations, err = call(ctx, d.disks, diskv1.NewDiskClient, diskv1.DiskClient.ListDiskLocations, &diskv1.ListDiskLocationsRequest{}); err != nil {
			return foundDisk{}, err
		}
	}
	ids, err := call(ctx, d.disks, diskv1.NewDiskClient, diskv1.DiskClient.ListDiskIDs, &diskv1.ListDiskIDsRequest{}) // last: they say which disk it is
	if err != nil {
		return foundDisk{}, err
	}
	same := func(want, have string) bool { return want == "" || want == have }
	var found []uint32
	for number, id := range ids.DiskIDs {
		at := locations.DiskLocations[number]
		if (query.Number == nil || *query.Number == number) && same(query.Serial, id.SerialNumber) && strings.HasPrefix(id.SerialNumber, query.SerialPrefix) &&
			same(query.Page83, id.Page83) && same(query.LUN, at.GetLUNID()) && same(query.Adapter, at.GetAdapter()) {
			found = append(found, number)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		return foundDisk{}, newError(failure.NotFound, "find disk with", query.String(), "there is no such disk, or Windows has not seen it yet")
	case 1:
		is := ids.DiskIDs[found[0]]
		return foundDisk{found[0], diskapi.MustBe{Serial: is.GetSerialNumber(), Page83: is.GetPage83()}, query}, nil
	default:
		return foundDisk{}, ambiguous(query, found)
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

// explainInspector names the pipe of the inspector if the daemon does not serve it there, or the
// container does not have it.
func (d *daemon) explainInspector(err error) error {
	const remedy = "CSI Proxy v2 must serve the groups system, disk and volume, and the container needs this pipe"
	const op = "ask the inspector at"
	pipe := d.system.path()
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return newError(failure.Unsupported, op, pipe, "the daemon has none; %s", remedy)
	case errors.Is(err, errNoPipe):
		return &nodeError{class: failure.Unavailable, text: prefix(op, pipe) + err.Error() + "; " + remedy, err: errNoPipe}
	}
	return err
}
