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
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/storage/warning"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// Node is a node's storage. Unknown values are nil or empty, and a warning says why. The JSON
// names are stable; docs/operations.md explains them.
type Node struct {
	Serial  string   `json:"serial"`
	Disks   []Disk   `json:"disks"`
	Volumes []Volume `json:"volumes"` // that are not one partition of one disk
	Shares  []Share  `json:"shares"`
	// SharesListed, SessionsListed and LinksSearched are false if the server does not tell.
	SharesListed   bool         `json:"sharesListed"`
	Sessions       []Session    `json:"sessions"`
	SessionsListed bool         `json:"sessionsListed"`
	StaleMounts    []StaleMount `json:"staleMounts"`
	LinksSearched  bool         `json:"linksSearched"`
	Paths          []Path       `json:"paths"`
	Warnings       []Warning    `json:"warnings"` // of the node as a whole
	// Problems are all warnings, of the node and of its objects, the most urgent first.
	Problems []Warning `json:"problems"`
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
	ID          string  `json:"id"` // the GUID of a GPT partition
	ReadOnly    *bool   `json:"readOnly"`
	Volume      *Volume `json:"volume"`
}

// Unknown is the state of a volume that does not tell one.
const Unknown = "unknown"

// Volume is a volume.
type Volume struct {
	ID         string `json:"id"`
	State      string `json:"state"`      // formatted, RAW, locked, offline or Unknown
	FileSystem string `json:"fileSystem"` // empty: unknown
	// Of servers with an inspector.
	Label            string `json:"label"`
	ClusterSizeBytes uint32 `json:"clusterSizeBytes"` // 0: unknown
	RootAccess       string `json:"rootAccess"`       // default, users-modify, or SDDL; empty: unknown

	TotalBytes *int64   `json:"totalBytes"`
	UsedBytes  *int64   `json:"usedBytes"`
	ReadOnly   *bool    `json:"readOnly"`
	Disks      []uint32 `json:"disks"`
	MountPaths []string `json:"mountPaths"`
	Links      []string `json:"links"` // paths of links to it, for example of pods
	Users
	Warnings []Warning `json:"warnings"`
}

// NotMapped is the status of a share that links lead into and that is not mapped.
const NotMapped = "not mapped"

// Share is the global mapping of an SMB share, or a share that links lead into without one.
type Share struct {
	Remote       string   `json:"remote"`
	Status       string   `json:"status"`
	Mapped       bool     `json:"mapped"`
	User         *string  `json:"user"` // empty: guest
	Private      *bool    `json:"private"`
	Answers      *bool    `json:"answers"` // nil: not asked
	Links        []string `json:"links"`   // that lead straight into it
	RemovalWaits *bool    `json:"removalWaits"`
	Users
	Warnings []Warning `json:"warnings"`
}

// Session is a session of the iSCSI initiator, or a login that Windows repeats and that has none.
type Session struct {
	Target      string    `json:"target"`
	Connections uint32    `json:"connections"`
	Disks       []uint32  `json:"disks"`
	Persistent  bool      `json:"persistent"`
	Warnings    []Warning `json:"warnings"`
}

// StaleMount is a mounted folder or a link whose target is gone.
type StaleMount struct {
	Path     string `json:"path"`
	VolumeID string `json:"volumeID"` // its target, if known
	Target   string `json:"target"`   // its target, if that is a path
	Reason   string `json:"reason"`
	Users
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
	node, err := s.describe(ctx, &extensionv1.DescribeNodeRequest{Links: true, Shares: true, ShareAnswers: askShares, Sessions: true})
	if err != nil {
		return Node{}, err
	}
	var bios systemv1alpha1.GetBIOSSerialNumberResponse
	if err := s.Client.Do(ctx, "system", "GetBIOSSerialNumber", &systemv1alpha1.GetBIOSSerialNumberRequest{}, &bios); err != nil && !node.saysUnreachable(err) {
		node.warn(Warning{Kind: warning.NoAnswer, Object: warning.Object{Type: warning.Node}, Text: "serial number of the machine: " + Reason(err), Advice: "read the daemon's log"})
	}
	node.Serial = bios.GetSerialNumber()
	node.Paths = make([]Path, len(paths))
	var wg sync.WaitGroup
	for i, path := range paths {
		wg.Go(func() { node.Paths[i] = s.path(ctx, path) })
	}
	wg.Wait()
	for _, path := range node.Paths {
		node.Problems = append(node.Problems, path.Warnings...)
	}
	warning.Sort(node.Problems)
	node.dropRepeatedWarnings()
	return node, ctx.Err()
}

// saysUnreachable reports whether a warning says already that a group does not answer.
func (n *Node) saysUnreachable(err error) bool {
	return errors.As(err, new(*endpoint.UnreachableError)) && slices.ContainsFunc(n.Warnings, func(w Warning) bool { return w.Kind == warning.Unseen })
}

// describe asks the inspector, or the API if there is none.
func (s Source) describe(ctx context.Context, request *extensionv1.DescribeNodeRequest) (Node, error) {
	response, missing, err := s.inspect(ctx, request)
	if err != nil {
		return Node{}, err
	}
	if response == nil {
		if response, err = s.fromAPI(ctx); err != nil {
			return Node{}, err
		}
		node := fromDescription(response)
		if missing != "" {
			node.unseen(missing + ": disks that do not answer, partitions without a volume, mount paths, stale mounts, shares, iSCSI sessions and read-only states are not visible")
		}
		return node, nil
	}
	node := fromDescription(response)
	var groups, hidden []string
	for _, part := range []struct {
		asked, told bool
		group, what string
	}{
		{request.GetLinks(), node.LinksSearched, "filesystem", "stale mounts and links"},
		{request.GetShares(), node.SharesListed, "smb", "shares"},
		{request.GetSessions(), node.SessionsListed, "iscsi", "iSCSI sessions"},
	} {
		explained := slices.ContainsFunc(response.GetProblems(), func(text string) bool { return strings.Contains(text, part.what) })
		if part.asked && !part.told && !explained {
			groups, hidden = append(groups, part.group), append(hidden, part.what)
		}
	}
	if len(hidden) > 0 {
		node.unseen("the server does not tell " + strings.Join(hidden, ", ") + ": it is older, or does not serve " + strings.Join(groups, ", "))
	}
	return node, nil
}

// Disks lists the disks by number. Their volumes may be missing.
func (s Source) Disks(ctx context.Context) ([]Disk, error) {
	response, _, err := s.inspect(ctx, &extensionv1.DescribeNodeRequest{})
	if err != nil {
		return nil, err
	}
	if response == nil {
		disks, err := s.disksFromAPI(ctx)
		if err != nil {
			return nil, err
		}
		response = &extensionv1.Node{Disks: disks}
	}
	return fromDescription(response).Disks, nil
}

// Share returns the mapping of a share, nil if it is not mapped, and the links that lead into it. If
// the server does not tell, unknown says why.
func (s Source) Share(ctx context.Context, remotePath string) (share *Share, unknown string, err error) {
	remote, err := unc.Parse("look for SMB mapping", remotePath)
	if err != nil {
		return nil, "", err
	}
	response, unknown, err := s.inspect(ctx, &extensionv1.DescribeNodeRequest{Links: true, Shares: true})
	if err != nil || response == nil {
		return nil, unknown, err
	}
	node := fromDescription(response)
	i := slices.IndexFunc(node.Shares, func(s Share) bool { return s.Mapped && strings.EqualFold(s.Remote, remote.Share()) })
	switch {
	case i >= 0:
		return &node.Shares[i], "", nil
	case !node.SharesListed:
		return nil, "the server does not tell which shares are mapped", nil
	}
	return nil, "", nil
}

// Shares returns the shares that are mapped, and those that links need, with the warnings about them.
// It fails if the server does not tell.
func (s Source) Shares(ctx context.Context, ask bool) ([]Share, error) {
	node, err := s.describe(ctx, &extensionv1.DescribeNodeRequest{Links: true, Shares: true, ShareAnswers: ask})
	switch {
	case err != nil:
		return nil, err
	case !node.SharesListed:
		return nil, node.untold("which shares are mapped", "smb")
	}
	return node.Shares, nil
}

// Sessions returns the iSCSI sessions. It fails if the server does not tell.
func (s Source) Sessions(ctx context.Context) ([]Session, error) {
	node, err := s.describe(ctx, &extensionv1.DescribeNodeRequest{Sessions: true})
	switch {
	case err != nil:
		return nil, err
	case !node.SessionsListed:
		return nil, node.untold("its iSCSI sessions", "iscsi")
	}
	return node.Sessions, nil
}

// untold says why the server does not tell something that only the inspector knows.
func (n *Node) untold(what, group string) error {
	for _, w := range n.Problems {
		if w.Object.Type == warning.Node && w.Kind == warning.NoAnswer {
			return fmt.Errorf("the server does not tell %s: %s", what, w.Text)
		}
	}
	return fmt.Errorf("the server does not report %s: it has no inspector, or does not serve the groups system, disk, volume and %s", what, group)
}

// LocatedVolume is a volume with its disk and partition.
type LocatedVolume struct {
	Disk      *uint32 `json:"disk"`      // nil: unknown, or not exactly one
	Partition uint32  `json:"partition"` // 0: unknown, or not exactly one
	Volume
}

// Volumes lists the volumes of all disks.
func (s Source) Volumes(ctx context.Context) ([]LocatedVolume, error) {
	node, err := s.describe(ctx, &extensionv1.DescribeNodeRequest{})
	if err != nil {
		return nil, err
	}
	return node.AllVolumes(), nil
}

// VolumesOn lists the volumes that ListVolumesOnDisk returns for a disk or a partition.
func (s Source) VolumesOn(ctx context.Context, disk, partition uint32) ([]LocatedVolume, error) {
	ids, err := s.VolumeIDs(ctx, disk, partition)
	if err != nil {
		return nil, err
	}
	response, _, err := s.inspect(ctx, &extensionv1.DescribeNodeRequest{})
	switch {
	case err != nil:
		return nil, err
	case response == nil:
		found := &extensionv1.Disk{Number: &disk}
		volumes := s.addVolumes(ctx, found, ids)
		response = &extensionv1.Node{Disks: []*extensionv1.Disk{found}, Volumes: volumes}
	}
	node := fromDescription(response)
	known := node.AllVolumes()
	volumes := make([]LocatedVolume, 0, len(ids))
	for _, id := range ids {
		i := slices.IndexFunc(known, func(v LocatedVolume) bool { return v.ID == id })
		if i < 0 { // it is new
			fresh := fromDescription(&extensionv1.Node{Volumes: []*extensionv1.Volume{s.volume(ctx, id)}})
			volumes = append(volumes, LocatedVolume{Disk: &disk, Partition: partition, Volume: fresh.Volumes[0]})
			continue
		}
		volumes = append(volumes, known[i])
	}
	return volumes, nil
}

// AllVolumes returns the volumes of all disks, and those that are not one partition of one disk.
func (n *Node) AllVolumes() []LocatedVolume {
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
func ShortID(id string) string { return warning.ShortID(id) }

// mountedAt reports whether the volume is mounted at a path.
func (v *Volume) mountedAt(path string) bool {
	return slices.ContainsFunc(v.MountPaths, func(known string) bool { return strings.EqualFold(known, path) })
}
