package inventory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	inspectv1 "github.com/kubernetes-csi/csi-proxy/client/extension/inspect/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
)

// inspectorGroup is the group whose endpoints have the inspector.
const inspectorGroup = "system"

// maxInspectorTimeout is more than the inspector's own limit.
const maxInspectorTimeout = time.Minute

// inspectorTimeout returns three quarters of the remaining time, so that the API can still be
// asked if the inspector does not answer.
func inspectorTimeout(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return maxInspectorTimeout
	}
	return min(maxInspectorTimeout, time.Until(deadline)/4*3)
}

// inspect asks the inspector. If it does not answer, missing says why, and the caller asks the
// API.
func (s Source) inspect(ctx context.Context, request *inspectv1.DescribeNodeRequest) (response *inspectv1.DescribeNodeResponse, missing string, err error) {
	if s.Endpoints == nil {
		return nil, "--api-version bypasses the inspector", nil
	}
	limited, cancel := context.WithTimeout(ctx, inspectorTimeout(ctx))
	defer cancel()
	conn, err := s.Endpoints.Dial(limited, endpoint.Name{Group: inspectorGroup, Version: endpoint.Newest(inspectorGroup)})
	if err == nil {
		defer conn.Close()
		response, err = inspectv1.NewInspectorClient(conn).DescribeNode(limited, request)
	}
	switch {
	case err == nil:
		return response, "", nil
	case ctx.Err() != nil:
		return nil, "", err
	case limited.Err() != nil, status.Code(err) == codes.DeadlineExceeded, status.Code(err) == codes.Canceled: // the server may notice first
		return nil, "the inspector did not answer in time", nil
	case errors.As(err, new(*endpoint.UnreachableError)):
		return nil, "the group " + inspectorGroup + " does not answer", nil
	case status.Code(err) == codes.Unavailable: // the inspector never returns it
		return nil, "", &endpoint.UnreachableError{Err: fmt.Errorf("the server ended during the call: %w", err)}
	case status.Code(err) == codes.Unimplemented:
		return nil, "the server has no inspector, or does not serve the groups disk and volume", nil
	default:
		return nil, "the inspector failed: " + Reason(err), nil
	}
}

var states = map[inspectv1.Volume_State]State{
	inspectv1.Volume_FORMATTED: Formatted,
	inspectv1.Volume_RAW:       Raw,
	inspectv1.Volume_LOCKED:    Locked,
	inspectv1.Volume_NOT_READY: NotReady,
}

// fromInspector converts the inspector's response.
func fromInspector(response *inspectv1.DescribeNodeResponse) Node {
	node := Node{
		Disks: []Disk{}, Volumes: []Volume{}, Shares: []Share{}, SharesListed: response.GetSharesListed(),
		StaleMounts: []StaleMount{}, Paths: []Path{}, Warnings: noAnswers(response.GetProblems()),
	}
	for _, s := range response.GetShares() {
		node.Shares = append(node.Shares, Share{
			Remote: s.GetRemote(), Status: s.GetStatus(), User: s.User, Private: s.Private, Answers: s.Answers,
			Links: append([]string{}, s.GetLinks()...), RemovalWaits: s.RemovalWaits, Warnings: noAnswers(s.GetProblems()),
		})
	}
	volumes := map[string]*Volume{}
	for _, v := range response.GetVolumes() {
		volume := &Volume{
			ID: v.GetId(), State: Unknown, FileSystem: v.GetFileSystem(), Label: v.GetLabel(), ClusterSizeBytes: v.GetClusterSizeBytes(), RootAccess: v.GetRootAccess(),
			TotalBytes: v.TotalBytes, UsedBytes: v.UsedBytes,
			ReadOnly: v.ReadOnly, Disks: append([]uint32{}, v.GetDisks()...), MountPaths: append([]string{}, v.GetMountPaths()...), Links: []string{},
			Warnings: noAnswers(v.GetProblems()),
		}
		if state, ok := states[v.GetState()]; ok {
			volume.State = state
		}
		volumes[volume.ID] = volume
	}
	for _, l := range response.GetLinks() {
		volume := volumes[l.GetVolumeId()]
		switch {
		case l.GetStale() != "":
			node.StaleMounts = append(node.StaleMounts, StaleMount{l.GetPath(), l.GetVolumeId(), l.GetStale()})
		case volume != nil && !volume.mountedAt(l.GetPath()):
			volume.Links = append(volume.Links, l.GetPath())
		}
	}
	for _, d := range response.GetDisks() {
		disk := Disk{
			Number: d.Number, SizeBytes: d.SizeBytes, Online: d.Online, ReadOnly: d.ReadOnly, System: d.GetSystem(),
			Style: d.GetPartitionStyle(), SerialNumber: d.GetSerialNumber(), Page83: d.GetPage83(), Partitions: []Partition{},
			Bus: d.GetBus(), Model: d.GetModel(), Path: d.GetDevice(), NVMeNamespaceID: d.GetNvmeNamespaceId(),
			EUI64: d.GetEui64(), NGUID: d.GetNguid(), OfflineReason: d.GetOfflineReason(),
			Warnings: noAnswers(d.GetProblems()),
		}
		if a := d.GetScsiAddress(); a != nil {
			disk.SCSIAddress = fmt.Sprintf("%d:%d:%d:%d", a.GetPort(), a.GetPath(), a.GetTarget(), a.GetLun())
		}
		if d.Number == nil {
			disk.Device = d.GetDevice()
		}
		if at := d.GetLocation(); at != nil {
			disk.Location = location(at.GetAdapter(), at.GetBus(), at.GetTarget(), at.GetLunId())
		}
		for _, p := range d.GetPartitions() {
			disk.Partitions = append(disk.Partitions, Partition{
				Number: p.GetNumber(), OffsetBytes: &p.OffsetBytes, SizeBytes: &p.SizeBytes, Type: p.GetType(), ReadOnly: &p.ReadOnly,
				Volume: volumes[p.GetVolumeId()],
			})
			delete(volumes, p.GetVolumeId())
		}
		node.Disks = append(node.Disks, disk)
	}
	for _, v := range response.GetVolumes() { // in the order of the response
		if volume := volumes[v.GetId()]; volume != nil {
			node.Volumes = append(node.Volumes, *volume)
		}
	}
	return node
}

func noAnswers(problems []string) []Warning {
	warnings := make([]Warning, 0, len(problems))
	for _, problem := range problems {
		warnings = append(warnings, Warning{Kind: NoAnswer, Text: problem})
	}
	return warnings
}
