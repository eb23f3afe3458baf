package inventory

import (
	"cmp"
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

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
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
func (s Source) inspect(ctx context.Context, request *extensionv1.DescribeNodeRequest) (response *extensionv1.Node, missing string, err error) {
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

// describeNode asks the inspector, and says what it waits for as soon as the server reports.
func describeNode(ctx context.Context, conn *grpc.ClientConn, request *extensionv1.DescribeNodeRequest, waitsFor func(what string)) (*extensionv1.Node, error) {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{}, extensionv1.Inspector_DescribeNode_FullMethodName) // a unary call hides headers until it ends
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
	var response extensionv1.Node
	if err := stream.RecvMsg(&response); err != nil {
		return nil, err
	}
	return &response, nil
}

// fromDescription converts a description, of the inspector or made from the API, and adds the warnings
// about it.
func fromDescription(response *extensionv1.Node) Node {
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

func volume(v *extensionv1.Volume) *Volume {
	return &Volume{
		ID: v.GetId(), State: cmp.Or(v.GetState(), Unknown), FileSystem: v.GetFileSystem(), Label: v.GetLabel(), ClusterSizeBytes: v.GetClusterSizeBytes(), RootAccess: v.GetRootAccess(),
		TotalBytes: v.TotalBytes, UsedBytes: v.UsedBytes, ReadOnly: v.ReadOnly,
		Disks: append([]uint32{}, v.GetDisks()...), MountPaths: append([]string{}, v.GetMountPaths()...), Links: []string{}, Warnings: []Warning{},
	}
}

// addLinks adds shares, and the links to volumes and shares.
func (n *Node) addLinks(response *extensionv1.Node, volumes map[string]*Volume) {
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
func disk(d *extensionv1.Disk, volumes map[string]*Volume) Disk {
	disk := Disk{
		Number: d.Number, SizeBytes: d.SizeBytes, Online: d.Online, ReadOnly: d.ReadOnly, System: d.GetSystem(),
		Style: d.GetPartitionStyle(), SerialNumber: d.GetSerialNumber(), Page83: d.GetPage83(), Location: d.GetLocation(), Partitions: []Partition{},
		Bus: d.GetBus(), Model: d.GetModel(), Path: d.GetDevice(), SCSIAddress: d.GetScsiAddress(), NVMeNamespaceID: d.GetNvmeNamespaceId(),
		EUI64: d.GetEui64(), NGUID: d.GetNguid(), OfflineReason: d.GetOfflineReason(), Warnings: []Warning{},
	}
	if d.Number == nil {
		disk.Device = d.GetDevice()
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
