package inventory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	inspectv1 "github.com/kubernetes-csi/csi-proxy/client/extension/inspect/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/storage/warning"
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

// looking is the step while the inspector looks.
const looking = "disks and volumes"

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
		rename, end := s.Client.BeginNamed(limited, looking)
		response, err = describeNode(limited, conn, request, rename)
		end()
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

// waitsHeader names the objects that the inspector waits for. A server that has such objects sends it
// before its answer.
const waitsHeader = "csi-proxy-waits-bin"

// describeNode asks the inspector, and says what it waits for as soon as the server tells.
func describeNode(ctx context.Context, conn *grpc.ClientConn, request *inspectv1.DescribeNodeRequest, waitsFor func(what string)) (*inspectv1.DescribeNodeResponse, error) {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{}, inspectv1.Inspector_DescribeNode_FullMethodName) // a unary call hides headers until it ends
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(request); err != nil && !errors.Is(err, io.EOF) { // RecvMsg has the reason for EOF
		return nil, err
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		header, err := stream.Header()
		if names := header.Get(waitsHeader); err == nil && len(names) > 0 {
			for i, name := range names {
				name, _, _ = strings.Cut(strings.Replace(name, `\\?\`, "", 1), "#{") // without the class of the device
				names[i] = printable.Text(name)
			}
			waitsFor(strings.Join(names, ", "))
		}
	})
	defer wg.Wait()
	var response inspectv1.DescribeNodeResponse
	if err := stream.RecvMsg(&response); err != nil {
		return nil, err
	}
	return &response, nil
}

var states = map[inspectv1.Volume_State]State{
	inspectv1.Volume_FORMATTED: Formatted,
	inspectv1.Volume_RAW:       Raw,
	inspectv1.Volume_LOCKED:    Locked,
	inspectv1.Volume_NOT_READY: NotReady,
}

// fromDescription converts a description, of the inspector or made from the API, and adds the warnings
// about it.
func fromDescription(response *inspectv1.DescribeNodeResponse) Node {
	node := Node{
		Disks: []Disk{}, Volumes: []Volume{}, Shares: []Share{}, SharesListed: response.GetSharesListed(),
		Sessions: []Session{}, SessionsListed: response.GetSessionsListed(), LinksSearched: response.GetLinksSearched(),
		StaleMounts: []StaleMount{}, Paths: []Path{}, Warnings: []Warning{}, Problems: []Warning{},
	}
	for _, s := range response.GetSessions() {
		node.Sessions = append(node.Sessions, Session{
			Target: s.GetTarget(), Connections: s.GetConnections(), Disks: append([]uint32{}, s.GetDisks()...), Persistent: s.GetPersistent(), Warnings: []Warning{},
		})
	}
	volumes := map[string]*Volume{}
	for _, v := range response.GetVolumes() {
		volumes[v.GetId()] = volume(v)
	}
	node.addLinks(response, volumes)
	for _, v := range volumes {
		v.Users = usersOf(slices.Concat(v.MountPaths, v.Links))
	}
	for _, d := range response.GetDisks() {
		node.Disks = append(node.Disks, disk(d, volumes))
	}
	for _, v := range response.GetVolumes() { // in the order of the response
		if volume := volumes[v.GetId()]; volume != nil {
			node.Volumes = append(node.Volumes, *volume)
		}
	}
	for _, w := range warning.Find(response) {
		node.warn(w)
	}
	return node
}

func volume(v *inspectv1.Volume) *Volume {
	volume := &Volume{
		ID: v.GetId(), State: Unknown, FileSystem: v.GetFileSystem(), Label: v.GetLabel(), ClusterSizeBytes: v.GetClusterSizeBytes(), RootAccess: v.GetRootAccess(),
		TotalBytes: v.TotalBytes, UsedBytes: v.UsedBytes, ReadOnly: v.ReadOnly,
		Disks: append([]uint32{}, v.GetDisks()...), MountPaths: append([]string{}, v.GetMountPaths()...), Links: []string{}, Warnings: []Warning{},
	}
	if state, ok := states[v.GetState()]; ok {
		volume.State = state
	}
	return volume
}

// addLinks adds shares, and the links to volumes and shares.
func (n *Node) addLinks(response *inspectv1.DescribeNodeResponse, volumes map[string]*Volume) {
	unmapped := map[string][]string{}
	for _, l := range response.GetLinks() {
		volume := volumes[l.GetVolumeId()]
		switch {
		case l.GetStale() != "":
			n.StaleMounts = append(n.StaleMounts, StaleMount{Path: l.GetPath(), VolumeID: l.GetVolumeId(), Target: l.GetTarget(), Reason: l.GetStale(), Users: usersOf([]string{l.GetPath()})})
		case l.GetShare() != "":
			unmapped[l.GetShare()] = append(unmapped[l.GetShare()], l.GetPath())
		case volume != nil && !volume.mountedAt(l.GetPath()):
			volume.Links = append(volume.Links, l.GetPath())
		}
	}
	for _, s := range response.GetShares() {
		n.Shares = append(n.Shares, Share{
			Remote: s.GetRemote(), Status: s.GetStatus(), User: s.User, Private: s.Private, Answers: s.Answers, Mapped: true,
			Links: append([]string{}, s.GetLinks()...), RemovalWaits: s.RemovalWaits, Users: usersOf(s.GetLinks()), Warnings: []Warning{},
		})
	}
	for _, remote := range slices.Sorted(maps.Keys(unmapped)) {
		n.Shares = append(n.Shares, Share{Remote: remote, Status: NotMapped, Links: unmapped[remote], Users: usersOf(unmapped[remote]), Warnings: []Warning{}})
	}
}

// disk converts a disk, and takes its volumes.
func disk(d *inspectv1.Disk, volumes map[string]*Volume) Disk {
	disk := Disk{
		Number: d.Number, SizeBytes: d.SizeBytes, Online: d.Online, ReadOnly: d.ReadOnly, System: d.GetSystem(),
		Style: d.GetPartitionStyle(), SerialNumber: d.GetSerialNumber(), Page83: d.GetPage83(), Partitions: []Partition{},
		Bus: d.GetBus(), Model: d.GetModel(), Path: d.GetDevice(), NVMeNamespaceID: d.GetNvmeNamespaceId(),
		EUI64: d.GetEui64(), NGUID: d.GetNguid(), OfflineReason: d.GetOfflineReason(), Warnings: []Warning{},
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
		partition := Partition{Number: p.GetNumber(), Type: p.GetType(), ID: p.GetId(), Volume: volumes[p.GetVolumeId()]}
		if p.GetSizeBytes() > 0 { // otherwise it is from the API
			partition.OffsetBytes, partition.SizeBytes, partition.ReadOnly = &p.OffsetBytes, &p.SizeBytes, &p.ReadOnly
		}
		disk.Partitions = append(disk.Partitions, partition)
		delete(volumes, p.GetVolumeId())
	}
	return disk
}
