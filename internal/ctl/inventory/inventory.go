// Package inventory puts together what a node tells of its storage: disks, their partitions
// and volumes, where those are mounted, and what is odd about them.
//
// Our own server has an inspector, which tells all of it in one answer. Of other servers the
// published API is asked, which cannot tell as much; a warning says so.
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
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
)

// Node is a node's storage. What could not be found out is nil or empty, and a warning says
// why. The names in JSON are promised to scripts; docs/operations.md explains them.
type Node struct {
	Serial      string       `json:"serial"`
	Disks       []Disk       `json:"disks"`
	Volumes     []Volume     `json:"volumes"` // that are not one partition of one disk
	StaleMounts []StaleMount `json:"staleMounts"`
	Paths       []Path       `json:"paths"`
	Warnings    []Warning    `json:"warnings"`
}

// Disk is a disk with its partitions.
type Disk struct {
	Number       *uint32     `json:"number"` // nil if the disk does not tell
	Device       string      `json:"device"` // of a disk without a number
	SizeBytes    *int64      `json:"sizeBytes"`
	Online       *bool       `json:"online"`
	ReadOnly     *bool       `json:"readOnly"`
	System       bool        `json:"system"`
	Style        string      `json:"partitionStyle"` // GPT, MBR, RAW; empty if not known
	SerialNumber string      `json:"serialNumber"`
	Page83       string      `json:"page83"`
	Location     string      `json:"location"`
	Partitions   []Partition `json:"partitions"`
	Warnings     []Warning   `json:"warnings"`
}

// Partition is a part of a disk, with its volume.
type Partition struct {
	Number      uint32  `json:"number"` // 0: not known
	OffsetBytes *int64  `json:"offsetBytes"`
	SizeBytes   *int64  `json:"sizeBytes"`
	Type        string  `json:"type"`
	ReadOnly    *bool   `json:"readOnly"`
	Volume      *Volume `json:"volume"`
}

// State is what is known of a volume's file system.
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
	ID         string    `json:"id"`
	State      State     `json:"state"`
	FileSystem string    `json:"fileSystem"` // empty if not known
	TotalBytes *int64    `json:"totalBytes"`
	UsedBytes  *int64    `json:"usedBytes"`
	ReadOnly   *bool     `json:"readOnly"`
	Disks      []uint32  `json:"disks"`
	MountPaths []string  `json:"mountPaths"`
	Links      []string  `json:"links"` // paths of links that lead to it, such as those of pods
	Warnings   []Warning `json:"warnings"`
}

// StaleMount is a mounted folder or a link that leads nowhere.
type StaleMount struct {
	Path     string `json:"path"`
	VolumeID string `json:"volumeID"` // that it would lead to, if that is known
	Reason   string `json:"reason"`
}

// Path is a path that was asked for, and where it leads.
type Path struct {
	Path     string    `json:"path"`
	VolumeID string    `json:"volumeID"`
	Leads    bool      `json:"leads"` // to the volume itself, not only to files on it
	Warnings []Warning `json:"warnings"`
}

// Source is where an inventory comes from.
type Source struct {
	Client *call.Client
	// Endpoints are where the inspector is; nil means that it is not asked, as when a certain
	// version of the API is.
	Endpoints *endpoint.Node
}

// Node looks at the whole node, and at the paths given. It fails only if the disks cannot
// be listed at all.
func (s Source) Node(ctx context.Context, paths []string) (Node, error) {
	node, err := s.look(ctx, true)
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
	node.sayOnce()
	return node, ctx.Err()
}

// saysUnreachable reports whether a warning has said already that nobody is there to ask.
func (n *Node) saysUnreachable(err error) bool {
	return errors.As(err, new(*endpoint.UnreachableError)) && slices.ContainsFunc(n.Warnings, func(w Warning) bool { return w.Kind == Unseen })
}

// sayOnce takes from paths that were asked for what the list of stale mounts says of them.
func (n *Node) sayOnce() {
	for i, path := range n.Paths {
		if n.stale(path.Path) {
			n.Paths[i].Warnings = slices.DeleteFunc(path.Warnings, func(w Warning) bool { return w.Kind == StaleLink })
		}
	}
}

// stale reports whether a path is in the list of stale mounts.
func (n *Node) stale(path string) bool {
	return slices.ContainsFunc(n.StaleMounts, func(s StaleMount) bool { return strings.EqualFold(s.Path, path) })
}

// look asks the inspector, or the API if there is none.
func (s Source) look(ctx context.Context, links bool) (Node, error) {
	response, missing, err := s.inspect(ctx, links)
	if err != nil {
		return Node{}, err
	}
	var node Node
	if response != nil {
		node = fromInspector(response)
		if links && !response.GetLinksSearched() {
			node.Warnings = append(node.Warnings, Warning{Kind: Unseen, Text: "the group filesystem is not served: stale mounts and links cannot be seen"})
		}
	} else {
		if node, err = s.fromAPI(ctx); err != nil {
			return Node{}, err
		}
		if missing != "" {
			node.Warnings = append(node.Warnings, Warning{Kind: Unseen, Text: missing +
				": disks that do not answer, partitions without a volume, mount paths, stale mounts and what is read-only cannot be seen"})
		}
	}
	node.judge()
	return node, nil
}

// Disks lists the disks, by number, as far as that takes few calls: their volumes may be
// missing.
func (s Source) Disks(ctx context.Context) ([]Disk, error) {
	response, _, err := s.inspect(ctx, false)
	if err != nil {
		return nil, err
	}
	if response == nil {
		return s.disksFromAPI(ctx)
	}
	node := fromInspector(response)
	node.judge()
	return node.Disks, nil
}

// Placed is a volume with where it lies.
type Placed struct {
	Disk      *uint32 `json:"disk"`      // nil: on none, on several, or not known
	Partition uint32  `json:"partition"` // 0: not known, or not exactly one
	Volume
}

// Volumes lists the volumes of all disks.
func (s Source) Volumes(ctx context.Context) ([]Placed, error) {
	node, err := s.look(ctx, false)
	if err != nil {
		return nil, err
	}
	return node.placed(), nil
}

// VolumesOn lists the volumes on a disk, or on one partition of it, as the API does it.
func (s Source) VolumesOn(ctx context.Context, disk, partition uint32) ([]Placed, error) {
	ids, err := s.VolumeIDs(ctx, disk, partition)
	if err != nil {
		return nil, err
	}
	var known []Placed
	response, _, err := s.inspect(ctx, false)
	switch {
	case err != nil:
		return nil, err
	case response != nil:
		node := fromInspector(response)
		node.judge()
		known = node.placed()
	default:
		found := Disk{Number: &disk}
		s.volumes(ctx, &found, ids)
		node := Node{Disks: []Disk{found}}
		node.judge()
		known = node.placed()
	}
	volumes := make([]Placed, 0, len(ids))
	for _, id := range ids {
		i := slices.IndexFunc(known, func(v Placed) bool { return v.ID == id })
		if i < 0 { // it has come just now
			volumes = append(volumes, Placed{Disk: &disk, Partition: partition, Volume: s.volume(ctx, id)})
			continue
		}
		volumes = append(volumes, known[i])
	}
	return volumes, nil
}

// placed are all volumes of a node.
func (n *Node) placed() []Placed {
	var all []Placed
	for _, disk := range n.Disks {
		for _, p := range disk.Partitions {
			if p.Volume != nil {
				all = append(all, Placed{disk.Number, p.Number, *p.Volume})
			}
		}
	}
	for _, v := range n.Volumes {
		all = append(all, Placed{Volume: v})
	}
	return all
}

// Reason is an error as a clause: gRPC's message without its frame.
func Reason(err error) string {
	if s, ok := status.FromError(err); ok && !errors.Is(err, context.Canceled) {
		return fmt.Sprintf("%s (%s)", s.Message(), s.Code())
	}
	return err.Error()
}

// ShortID is the id of a volume without what all ids have in common. Commands take it, too.
func ShortID(id string) string {
	short, ok := strings.CutPrefix(id, `\\?\Volume{`)
	if !ok {
		return id
	}
	return strings.TrimSuffix(short, `}\`)
}

// mountedAt reports whether a path is one at which the volume is mounted.
func (v *Volume) mountedAt(path string) bool {
	return slices.ContainsFunc(v.MountPaths, func(known string) bool { return strings.EqualFold(known, path) })
}
