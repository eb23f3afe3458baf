// Package inventory collects the storage of a node: disks, partitions and volumes, their
// mounts, and problems. The inspector of our server returns all of it in one call.
package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// Node is a node's storage: what the server sent, in which unknown values are missing, and what is wrong
// with it. Volumes are in the order of their disks and partitions; those that are not one partition come
// last. Shares include those that links lead into without a mapping.
type Node struct {
	*extensionv1.Node
	Host   string // name of the machine
	Serial string
	At     time.Time
	// Problems are all problems, of the node and of its objects, the most urgent first.
	Problems []Problem
	// Unfolded shows everything of objects without problems, too.
	Unfolded bool
}

// Unknown is the state of a volume whose state is not known.
const Unknown = "unknown"

// NotMapped is the status of a share that links lead into and that is not mapped.
const NotMapped = "not mapped"

// newNode finds out what is wrong with a node.
func newNode(sent *extensionv1.Node) Node {
	n := Node{Node: sent, Problems: append([]Problem{}, problem.Find(sent)...)}
	for _, v := range sent.GetVolumes() {
		v.State = cmp.Or(v.GetState(), Unknown)
	}
	unmapped := map[string][]string{}
	for _, l := range sent.GetLinks() {
		if l.GetStale() == "" && l.GetShare() != "" {
			unmapped[l.GetShare()] = append(unmapped[l.GetShare()], l.GetPath())
		}
	}
	for _, remote := range slices.Sorted(maps.Keys(unmapped)) {
		sent.Shares = append(sent.Shares, &extensionv1.Share{Remote: remote, Status: NotMapped, Links: unmapped[remote]})
	}
	loose := n.Loose()
	var inPartitions []*extensionv1.Volume
	for _, d := range sent.GetDisks() {
		for _, p := range d.GetPartitions() {
			if v := n.Volume(p.GetVolumeId()); v != nil {
				inPartitions = append(inPartitions, v)
			}
		}
	}
	sent.Volumes = append(inPartitions, loose...)
	return n
}

// Volume returns the volume with an id, or nil.
func (n Node) Volume(id string) *extensionv1.Volume {
	for _, v := range n.GetVolumes() {
		if id != "" && v.GetId() == id {
			return v
		}
	}
	return nil
}

// Loose returns the volumes that are not one partition of one disk.
func (n Node) Loose() []*extensionv1.Volume {
	in := map[string]bool{}
	for _, d := range n.GetDisks() {
		for _, p := range d.GetPartitions() {
			in[p.GetVolumeId()] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(n.GetVolumes()), func(v *extensionv1.Volume) bool { return in[v.GetId()] })
}

// LinksTo returns the paths of links to a volume, for example of pods, without those where it is mounted.
func (n Node) LinksTo(v *extensionv1.Volume) []string {
	paths := []string{}
	for _, l := range n.GetLinks() {
		if l.GetVolumeId() == v.GetId() && l.GetStale() == "" && l.GetShare() == "" && !contains(v.GetMountPaths(), l.GetPath()) {
			paths = append(paths, l.GetPath())
		}
	}
	return paths
}

// Stale returns the mounted folders and links whose target is gone.
func (n Node) Stale() (stale []*extensionv1.Link) {
	for _, l := range n.GetLinks() {
		if l.GetStale() != "" {
			stale = append(stale, l)
		}
	}
	return stale
}

// Outside returns the links that lead out of the working directories, where the daemon does not look.
func (n Node) Outside() (outside []*extensionv1.Link) {
	for _, l := range n.GetLinks() {
		if l.GetTarget() != "" && l.GetStale() == "" && l.GetProblem() == nil {
			outside = append(outside, l)
		}
	}
	return outside
}

// Mapped reports whether a share is mapped, and not only needed by links.
func Mapped(s *extensionv1.Share) bool { return s.GetStatus() != NotMapped }

func contains(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(known string) bool { return strings.EqualFold(known, path) })
}

// Source collects inventories.
type Source struct {
	Client *call.Client
	Host   string // name of the machine
	Now    func() time.Time
}

// serialLimit is how long the serial number may take, which is only a name.
const serialLimit = 2 * time.Second

// Node describes the whole node. It fails only if the server does not describe it.
func (s Source) Node(ctx context.Context) (Node, error) {
	var node Node
	var bios systemv1alpha1.GetBIOSSerialNumberResponse
	var err, biosErr error
	var wg sync.WaitGroup
	wg.Go(func() {
		node, err = s.describe(ctx, &extensionv1.DescribeNodeRequest{Links: true, Shares: true, Sessions: true})
	})
	wg.Go(func() {
		limited, cancel := context.WithTimeout(ctx, serialLimit)
		defer cancel()
		biosErr = s.Client.Do(limited, "system", "GetBIOSSerialNumber", &systemv1alpha1.GetBIOSSerialNumberRequest{}, &bios)
	})
	wg.Wait()
	if err != nil {
		return Node{}, err
	}
	if biosErr != nil && !node.saysUnreachable(biosErr) {
		node.addProblem(problem.New(problem.NoAnswer, problem.Object{Type: problem.Node}, "serial number of the machine: "+Reason(biosErr), "read the daemon's log"))
	}
	node.Serial = bios.GetSerialNumber()
	return node, ctx.Err()
}

// saysUnreachable reports whether a problem says already that a group does not answer.
func (n *Node) saysUnreachable(err error) bool {
	return errors.As(err, new(*endpoint.UnreachableError)) && slices.ContainsFunc(n.Problems, func(p Problem) bool { return p.Kind == problem.Unseen })
}

// describe asks the inspector, and says what the server does not report.
func (s Source) describe(ctx context.Context, request *extensionv1.DescribeNodeRequest) (Node, error) {
	sent, err := s.inspect(ctx, request)
	if err != nil {
		return Node{}, err
	}
	node := s.newNode(sent)
	var groups, hidden []string
	for _, part := range []struct {
		asked, reported bool
		group, what     string
	}{
		{request.GetLinks(), node.GetLinksSearched(), "filesystem", "stale mounts and links"},
		{request.GetShares(), node.GetSharesListed(), "smb", "shares"},
		{request.GetSessions(), node.GetSessionsListed(), "iscsi", "iSCSI sessions"},
	} {
		explained := slices.ContainsFunc(sent.GetProblems(), func(p *extensionv1.Problem) bool {
			return slices.Contains(strings.Split(p.GetObject(), ", "), part.what)
		})
		if part.asked && !part.reported && !explained {
			groups, hidden = append(groups, part.group), append(hidden, part.what)
		}
	}
	if len(hidden) > 0 {
		node.unseen("the server does not report " + strings.Join(hidden, ", ") + ": it is older, or does not serve " + strings.Join(groups, ", "))
	}
	return node, nil
}

// Disks describes the disks, and who uses them.
func (s Source) Disks(ctx context.Context) (Node, error) {
	node, err := s.describe(ctx, &extensionv1.DescribeNodeRequest{Links: true})
	if err == nil {
		err = node.listed(len(node.GetDisks()), "its disks")
	}
	return node, err
}

// listed fails if Windows did not list something: that is not the same as that there is none.
func (n *Node) listed(known int, what string) error {
	if n.Unlisted(known) {
		return n.unreported(what, "")
	}
	return nil
}

// newNode adds what this program knows.
func (s Source) newNode(sent *extensionv1.Node) Node {
	n := newNode(sent)
	n.Host = s.Host
	if s.Now != nil {
		n.At = s.Now().UTC()
	}
	return n
}

// Share returns the mapping of a share, nil if it is not mapped, and the links that lead into it. If
// the server does not report, known is false.
func (s Source) Share(ctx context.Context, remotePath string) (share *extensionv1.Share, known bool, err error) {
	remote, err := unc.Parse("look for SMB mapping", remotePath)
	if err != nil {
		return nil, false, err
	}
	sent, err := s.inspect(ctx, &extensionv1.DescribeNodeRequest{Links: true, Shares: true})
	gone := (*endpoint.UnreachableError)(nil)
	switch {
	case ctx.Err() != nil, errors.As(err, &gone) && gone.Ended:
		return nil, false, err
	case err != nil:
		return nil, false, nil //nolint:nilerr // a server that does not say is no failure
	}
	for _, share := range sent.GetShares() {
		if strings.EqualFold(share.GetRemote(), remote.Share()) {
			return share, true, nil
		}
	}
	return nil, sent.GetSharesListed(), nil
}

// Shares describes the shares that are mapped, and those that links need. It fails if the server does not
// report them.
func (s Source) Shares(ctx context.Context, ask bool) (Node, error) {
	node, err := s.describe(ctx, &extensionv1.DescribeNodeRequest{Links: true, Shares: true, ShareAnswers: ask})
	if err == nil && !node.GetSharesListed() {
		err = node.unreported("which shares are mapped", "smb")
	}
	return node, err
}

// Sessions describes the iSCSI sessions. It fails if the server does not report.
func (s Source) Sessions(ctx context.Context) (Node, error) {
	node, err := s.describe(ctx, &extensionv1.DescribeNodeRequest{Sessions: true})
	if err == nil && !node.GetSessionsListed() {
		err = node.unreported("its iSCSI sessions", "iscsi")
	}
	return node, err
}

// unreported says why the server does not report something that only the inspector knows.
func (n *Node) unreported(what, group string) error {
	if i := slices.IndexFunc(n.Problems, isSilence); i >= 0 {
		return fmt.Errorf("the server does not report %s: %s", what, n.Problems[i].Text)
	}
	return fmt.Errorf("the server does not report %s: it has no inspector, or does not serve the groups system, disk, volume and %s", what, group)
}

// Volumes describes the volumes of all disks.
func (s Source) Volumes(ctx context.Context) (Node, error) {
	node, err := s.describe(ctx, &extensionv1.DescribeNodeRequest{Links: true})
	if err == nil {
		err = node.listed(len(node.GetVolumes()), "its volumes")
	}
	return node, err
}

// Check describes one volume and its disks, as far as it concerns whether they are well.
func (s Source) Check(ctx context.Context, id string) (Node, error) {
	sent := &extensionv1.Node{}
	err := s.Client.Private(ctx, "volume", extensionv1.VolumeHealth_CheckVolume_FullMethodName, &extensionv1.Volume{Id: id}, sent)
	return s.newNode(sent), err
}

// VolumesOn describes the volumes that ListVolumesOnDisk returns for a disk or a partition. Without an inspector only
// their ids are known, and a problem says so.
func (s Source) VolumesOn(ctx context.Context, disk, partition uint32) (Node, error) {
	var list volumev2alpha1.ListVolumesOnDiskResponse
	request := &volumev2alpha1.ListVolumesOnDiskRequest{DiskNumber: disk, PartitionNumber: partition}
	if err := s.Client.Do(ctx, "volume", "ListVolumesOnDisk", request, &list); err != nil {
		return Node{}, err
	}
	sent, inspectErr := s.inspect(ctx, &extensionv1.DescribeNodeRequest{Links: true})
	if ctx.Err() != nil {
		return Node{}, inspectErr
	}
	if inspectErr != nil {
		sent = &extensionv1.Node{}
	}
	volumes := make([]*extensionv1.Volume, 0, len(list.GetVolumeIds()))
	for _, id := range list.GetVolumeIds() {
		v := Node{Node: sent}.Volume(id)
		if v == nil { // it is new, or nothing else is known
			v = &extensionv1.Volume{Id: id, Disks: []uint32{disk}, Partition: partition}
			sent.Volumes = append(sent.Volumes, v)
		}
		volumes = append(volumes, v)
	}
	node := s.newNode(sent)
	node.Volumes = volumes
	if inspectErr != nil {
		node.unseen("only the ids of volumes are known: " + Reason(inspectErr))
	}
	return node, nil
}

// Reason returns the message and code of a gRPC error as one clause.
func Reason(err error) string {
	if s, ok := status.FromError(err); ok {
		return fmt.Sprintf("%s (%s)", s.Message(), s.Code())
	}
	return err.Error()
}

// ShortID returns the GUID of a volume id. Commands accept it, too.
func ShortID(id string) string { return problem.ShortID(id) }
