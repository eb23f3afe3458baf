package mounter

import (
	"context"
	"errors"
	"slices"

	inspectv1 "github.com/kubernetes-csi/csi-proxy/client/extension/inspect/v1"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// describe asks the inspector of the daemon. The verbs use only volumes, links and shares.
func (d *daemon) describe(ctx context.Context, parts ...nodeapi.Part) (*nodeapi.Description, error) {
	response, err := call(ctx, d.system, inspectv1.NewInspectorClient, inspectv1.InspectorClient.DescribeNode, &inspectv1.DescribeNodeRequest{
		Links: slices.Contains(parts, nodeapi.Links), Shares: slices.Contains(parts, nodeapi.Shares),
	})
	if err != nil {
		return nil, d.explainInspector(err)
	}
	description := &nodeapi.Description{
		LinksSearched: response.LinksSearched, SharesListed: response.SharesListed, Problems: response.Problems,
	}
	for _, v := range response.Volumes {
		description.Volumes = append(description.Volumes, nodeapi.Volume{
			ID: v.Id, State: nodeapi.State(v.State), FileSystem: v.FileSystem, Total: v.TotalBytes, Used: v.UsedBytes, ReadOnly: v.ReadOnly,
			MountPaths: v.MountPaths, Disks: v.Disks, Partition: v.Partition, Problems: v.Problems,
		})
	}
	for _, l := range response.Links {
		description.Links = append(description.Links, nodeapi.Link{Path: l.Path, VolumeID: l.VolumeId, Stale: l.Stale})
	}
	for _, s := range response.Shares {
		description.Shares = append(description.Shares, nodeapi.Share{Remote: s.Remote, Status: s.Status})
	}
	return description, nil
}

// findDisk asks the inspector, which alone knows all keys, and which disk Windows runs from.
func (d *daemon) findDisk(ctx context.Context, query nodeapi.Query) (uint32, error) {
	request := &inspectv1.FindDiskRequest{
		Number: query.Number, Device: query.Path, Bus: query.Bus, Model: query.Model, SerialNumber: query.Serial, SerialNumberPrefix: query.SerialPrefix,
		Page83: query.Page83, LunId: query.LUN, Adapter: query.Adapter, NvmeNamespaceId: query.NamespaceID, Eui64: query.EUI64, Nguid: query.NGUID,
		SizeBytes: query.Size,
	}
	if a := query.SCSI; a != nil {
		request.ScsiAddress = &inspectv1.SCSIAddress{Port: uint32(a.Port), Path: uint32(a.Path), Target: uint32(a.Target), Lun: uint32(a.LUN)}
	}
	response, err := call(ctx, d.system, inspectv1.NewInspectorClient, inspectv1.InspectorClient.FindDisk, request)
	if err != nil {
		return 0, d.explainInspector(err)
	}
	return response.GetDisk().GetNumber(), nil
}

// explainInspector names the pipe of the inspector if the daemon does not serve it there, or the
// container does not have it.
func (d *daemon) explainInspector(err error) error {
	const remedy = "CSI Proxy v2 must serve the groups system, disk and volume, and the container needs this pipe"
	pipe := d.system.path()
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return newError(classUnsupported, "ask the inspector at", pipe, "the daemon has none; %s", remedy)
	case classOf(err) == classUnavailable:
		return newError(classUnavailable, "ask the inspector at", pipe, "%s; %s", err, remedy)
	}
	return err
}
