// Package inventory collects the storage of a node: disks, partitions and volumes, their
// mounts, and warnings.
//
// Our server has an inspector, which returns all of it in one call. For other servers the
// package uses the published API, which has less; a warning says so.
package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/status"

	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	inspectv1 "github.com/kubernetes-csi/csi-proxy/client/extension/inspect/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// Node is a node's storage. Unknown values are nil or empty, and a warning says why. The JSON
// names are stable; docs/operations.md explains them.
type Node struct {
	Serial  string   `json:"serial"`
	Disks   []Disk   `json:"disks"`
	Volumes []Volume `json:"volumes"` // that are not one partition of one disk
	Shares  []Share  `json:"shares"`
	// SharesListed is false if the server does not tell shares.
	SharesListed bool         `json:"sharesListed"`
	StaleMounts  []StaleMount `json:"staleMounts"`
	Paths        []Path       `json:"paths"`
	Warnings     []Warning    `json:"warnings"`
}

// Disk is a disk with its partitions.
type Disk struct {
	Number       *uint32 `json:"number"` // nil: unknown
	Device       string  `json:"device"` // only if Number is nil
	SizeBytes    *int64  `json:"sizeBytes"`
	Online       *bool   `json:"online"`
	ReadOnly     *bool   `json:"readOnly"`
	System       bool    `json:"system"`
	Style        string  `json:"partitionStyle"` // GPT, MBR, RAW; empty: unknown
	SerialNumber string  `json:"serialNumber"`
	Page83       string  `json:"page83"`
	Location     string  `json:"location"`
	// Of servers with an inspector.
	Bus             string `json:"bus"`
	Model           string `json:"model"`
	Path            string `json:"path"`        // the device interface
	SCSIAddress     string `json:"scsiAddress"` // port:path:target:LUN
	NVMeNamespaceID uint32 `json:"nvmeNamespaceID"`
	EUI64           string `json:"eui64"`
	NGUID           string `json:"nguid"`
	OfflineReason   string `json:"offlineReason"` // policy, unknown, or collision with a disk

	Partitions []Partition `json:"partitions"`
	Warnings   []Warning   `json:"warnings"`
}

// Partition is a partition with its volume.
type Partition struct {
	Number      uint32  `json:"number"` // 0: unknown
	OffsetBytes *int64  `json:"offsetBytes"`
	SizeBytes   *int64  `json:"sizeBytes"`
	Type        string  `json:"type"`
	ReadOnly    *bool   `json:"readOnly"`
	Volume      *Volume `json:"volume"`
}

// State is the state of a volume's file system.
type State string

// The states.
const (
	Unknown   State = "unknown"
	Formatted State = "formatted"
	Raw       State = "RAW"
	Locked    State = "locked"
	NotReady  State = "offline"
)

// Volume is a volume.
type Volume struct {
	ID         string `json:"id"`
	State      State  `json:"state"`
	FileSystem string `json:"fileSystem"` // empty: unknown
	// Of servers with an inspector.
	Label            string `json:"label"`
	ClusterSizeBytes uint32 `json:"clusterSizeBytes"` // 0: unknown
	RootAccess       string `json:"rootAccess"`       // default, users-modify, or SDDL; empty: unknown

	TotalBytes *int64    `json:"totalBytes"`
	UsedBytes  *int64    `json:"usedBytes"`
	ReadOnly   *bool     `json:"readOnly"`
	Disks      []uint32  `json:"disks"`
	MountPaths []string  `json:"mountPaths"`
	Links      []string  `json:"links"` // paths of links to it, for example of pods
	Warnings   []Warning `json:"warnings"`
}

// Share is the global mapping of an SMB share.
type Share struct {
	Remote       string    `json:"remote"`
	Status       string    `json:"status"`
	User         *string   `json:"user"` // empty: guest
	Private      *bool     `json:"private"`
	Answers      *bool     `json:"answers"` // nil: not asked
	Links        []string  `json:"links"`   // that lead straight into it
	RemovalWaits *bool     `json:"removalWaits"`
	Warnings     []Warning `json:"warnings"`
}

// StaleMount is a mounted folder or a link whose target is gone.
type StaleMount struct {
	Path     string `json:"path"`
	VolumeID string `json:"volumeID"` // its target, if known
	Reason   string `json:"reason"`
}

// Path is a path of --path with its volume.
type Path struct {
	Path     string    `json:"path"`
	VolumeID string    `json:"volumeID"`
	Leads    bool      `json:"leads"` // to the volume itself, not only to files on it
	Warnings []Warning `json:"warnings"`
}

// Source collects inventories.
type Source struct {
	Client *call.Client
	// Endpoints locates the inspector; nil means to use only the API.
	Endpoints *endpoint.Node
}

// Node describes the whole node and the given paths. With askShares, the server opens each share to
// learn whether it answers. Node fails only if it cannot list the disks.
func (s Source) Node(ctx context.Context, paths []string, askShares bool) (Node, error) {
	node, err := s.describe(ctx, &inspectv1.DescribeNodeRequest{Links: true, Shares: true, ShareAnswers: askShares})
	if err != nil {
		return Node{}, err
	}
	var bios systemv1alpha1.GetBIOSSerialNumberResponse
	if err := s.Client.Do(ctx, "system", "GetBIOSSerialNumber", &systemv1alpha1.GetBIOSSerialNumberRequest{}, &bios); err != nil && !node.saysUnreachable(err) {
		node.Warnings = append(node.Warnings, Warning{Kind: NoAnswer, Text: "serial number of the machine: " + Reason(err)})
	}
	node.Serial = bios.GetSerialNumber()
	node.Paths = make([]Path, len(paths))
	var wg sync.WaitGroup
	for i, path := range paths {
		wg.Go(func() { node.Paths[i] = s.path(ctx, path) })
	}
	wg.Wait()
	node.dropRepeatedWarnings()
	return node, ctx.Err()
}

// saysUnreachable reports whether a warning says already that a group does not answer.
func (n *Node) saysUnreachable(err error) bool {
	return errors.As(err, new(*endpoint.UnreachableError)) && slices.ContainsFunc(n.Warnings, func(w Warning) bool { return w.Kind == Unseen })
}

// dropRepeatedWarnings removes warnings of paths that the list of stale mounts repeats.
func (n *Node) dropRepeatedWarnings() {
	for i, path := range n.Paths {
		if n.isStale(path.Path) {
			n.Paths[i].Warnings = slices.DeleteFunc(path.Warnings, func(w Warning) bool { return w.Kind == StaleLink })
		}
	}
}

func (n *Node) isStale(path string) bool {
	return slices.ContainsFunc(n.StaleMounts, func(s StaleMount) bool { return strings.EqualFold(s.Path, path) })
}

// describe asks the inspector, or the API if there is none.
func (s Source) describe(ctx context.Context, request *inspectv1.DescribeNodeRequest) (Node, error) {
	response, missing, err := s.inspect(ctx, request)
	if err != nil {
		return Node{}, err
	}
	var node Node
	if response != nil {
		node = fromInspector(response)
		if request.GetLinks() && !response.GetLinksSearched() {
			node.Warnings = append(node.Warnings, Warning{Kind: Unseen, Text: "the server does not serve the group filesystem: stale mounts and links are not visible"})
		}
	} else {
		if node, err = s.fromAPI(ctx); err != nil {
			return Node{}, err
		}
		if missing != "" {
			node.Warnings = append(node.Warnings, Warning{Kind: Unseen, Text: missing +
				": disks that do not answer, partitions without a volume, mount paths, stale mounts, shares and read-only states are not visible"})
		}
	}
	node.addWarnings()
	return node, nil
}

// Disks lists the disks by number. Their volumes may be missing.
func (s Source) Disks(ctx context.Context) ([]Disk, error) {
	response, _, err := s.inspect(ctx, &inspectv1.DescribeNodeRequest{})
	if err != nil {
		return nil, err
	}
	if response == nil {
		return s.disksFromAPI(ctx)
	}
	node := fromInspector(response)
	node.addWarnings()
	return node.Disks, nil
}

// Share returns the mapping of a share, nil if it is not mapped, and the links that lead into it. If
// the server does not tell, unknown says why.
func (s Source) Share(ctx context.Context, remotePath string) (share *Share, unknown string, err error) {
	remote, err := unc.Parse("look for SMB mapping", remotePath)
	if err != nil {
		return nil, "", err
	}
	response, unknown, err := s.inspect(ctx, &inspectv1.DescribeNodeRequest{Links: true, Shares: true})
	if err != nil || response == nil {
		return nil, unknown, err
	}
	node := fromInspector(response)
	i := slices.IndexFunc(node.Shares, func(s Share) bool { return strings.EqualFold(s.Remote, remote.Share()) })
	switch {
	case i >= 0:
		return &node.Shares[i], "", nil
	case !node.SharesListed:
		return nil, "the server does not tell which shares are mapped", nil
	}
	return nil, "", nil
}

// LocatedVolume is a volume with its disk and partition.
type LocatedVolume struct {
	Disk      *uint32 `json:"disk"`      // nil: unknown, or not exactly one
	Partition uint32  `json:"partition"` // 0: unknown, or not exactly one
	Volume
}

// Volumes lists the volumes of all disks.
func (s Source) Volumes(ctx context.Context) ([]LocatedVolume, error) {
	node, err := s.describe(ctx, &inspectv1.DescribeNodeRequest{})
	if err != nil {
		return nil, err
	}
	return node.allVolumes(), nil
}

// VolumesOn lists the volumes that ListVolumesOnDisk returns for a disk or a partition.
func (s Source) VolumesOn(ctx context.Context, disk, partition uint32) ([]LocatedVolume, error) {
	ids, err := s.VolumeIDs(ctx, disk, partition)
	if err != nil {
		return nil, err
	}
	var known []LocatedVolume
	response, _, err := s.inspect(ctx, &inspectv1.DescribeNodeRequest{})
	switch {
	case err != nil:
		return nil, err
	case response != nil:
		node := fromInspector(response)
		node.addWarnings()
		known = node.allVolumes()
	default:
		found := Disk{Number: &disk}
		s.addVolumes(ctx, &found, ids)
		node := Node{Disks: []Disk{found}}
		node.addWarnings()
		known = node.allVolumes()
	}
	volumes := make([]LocatedVolume, 0, len(ids))
	for _, id := range ids {
		i := slices.IndexFunc(known, func(v LocatedVolume) bool { return v.ID == id })
		if i < 0 { // it is new
			volumes = append(volumes, LocatedVolume{Disk: &disk, Partition: partition, Volume: s.volume(ctx, id)})
			continue
		}
		volumes = append(volumes, known[i])
	}
	return volumes, nil
}

func (n *Node) allVolumes() []LocatedVolume {
	var all []LocatedVolume
	for _, disk := range n.Disks {
		for _, p := range disk.Partitions {
			if p.Volume != nil {
				all = append(all, LocatedVolume{disk.Number, p.Number, *p.Volume})
			}
		}
	}
	for _, v := range n.Volumes {
		all = append(all, LocatedVolume{Volume: v})
	}
	return all
}

// Reason returns the message and code of a gRPC error as one clause.
func Reason(err error) string {
	if s, ok := status.FromError(err); ok {
		return fmt.Sprintf("%s (%s)", s.Message(), s.Code())
	}
	return err.Error()
}

// ShortID returns the GUID of a volume id. Commands accept it, too.
func ShortID(id string) string {
	short, ok := strings.CutPrefix(id, `\\?\Volume{`)
	if !ok {
		return id
	}
	return strings.TrimSuffix(short, `}\`)
}

// mountedAt reports whether the volume is mounted at a path.
func (v *Volume) mountedAt(path string) bool {
	return slices.ContainsFunc(v.MountPaths, func(known string) bool { return strings.EqualFold(known, path) })
}
