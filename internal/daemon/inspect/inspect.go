// Package inspect looks at the storage of a machine as a whole: its disks with their
// partitions, its volumes, and the links in the working directories that lead to them or
// nowhere.
//
// It is for people who look at a node, so it must work on a node that is in trouble: the
// result names whatever does not answer, with the reason, and the rest hardly waits for it. It
// changes nothing: a volume that is offline stays offline. It asks no server.
//
// The child package v1 is the answer on the wire.
package inspect

import (
	"context"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/work/keylock"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/work/parallel"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
)

// Node is a node's storage at one moment.
type Node struct {
	Disks   []Disk   // by number, those without one last
	Volumes []Volume // by disk and partition
	// Links are those that lead to a volume or nowhere, by path.
	Links         []Link
	LinksSearched bool
	Problems      []string
}

// Disk is a disk that is present. What is unknown is nil or empty, and a problem says why.
type Disk struct {
	Number     *uint32
	Device     string
	Size       *int64
	Online     *bool
	ReadOnly   *bool
	System     bool // Windows or its boot files are on it
	Style      string
	IDs        diskapi.DiskIDs
	Location   *diskapi.DiskLocation // nil if it is attached nowhere
	Partitions []Partition
	Problems   []string
}

// Partition is a part of a disk.
type Partition struct {
	Number       uint32
	Offset, Size int64
	Type         string
	ID           win.GUID     // of GPT partitions
	ReadOnly     bool         // by its own attribute; its disk may be read-only as well
	VolumeID     win.VolumeID // empty if no volume is exactly this partition
}

// State is what is known of a volume's file system. The numbers are those on the wire.
type State int

// The states.
const (
	Unknown State = iota
	Formatted
	Raw
	Locked   // by BitLocker
	NotReady // offline
)

// Volume is a volume that has a name.
type Volume struct {
	ID          win.VolumeID
	State       State
	FileSystem  string
	Total, Used *int64
	ReadOnly    *bool // by its disks or its partition; nil if unknown
	MountPaths  []string
	Disks       []uint32
	Partition   uint32 // 0 if it is not exactly one
	Problems    []string
}

// Link is a mounted folder or a link in a working directory.
type Link struct {
	Path     string
	VolumeID win.VolumeID // that it leads to, or would
	Stale    string       // why it leads nowhere
}

// Inspector looks at one machine. It is safe for concurrent use.
type Inspector struct {
	m        win.Machine
	disks    diskapi.DiskAPI
	limits   *policy.Policy
	searches bool
	turns    *keylock.Locks[struct{}]
}

// atOnce is how many callers may look at the same time; others wait for their turn.
const atOnce = 2

// New returns an inspector of the machine this program runs on.
func New() Inspector {
	return Inspector{m: local.Machine(), disks: diskapi.New(), turns: &keylock.Locks[struct{}]{Limit: atOnce}}
}

// NewOn returns an inspector of a given machine.
func NewOn(m win.Machine) Inspector {
	return Inspector{m: m, disks: diskapi.NewOn(m), turns: &keylock.Locks[struct{}]{Limit: atOnce}}
}

// Searching returns the same inspector, which also searches the policy's working directories
// for links, and follows them as far as the policy lets it.
func (i Inspector) Searching(p *policy.Policy) Inspector {
	i.limits, i.searches = p, p != nil
	return i
}

const (
	op = "describe node"

	// objectLimit is how long one object may delay the answer, if there is twice as much
	// time for those after it. A disk whose controller is resetting answers after 10 to 60
	// seconds, or never.
	objectLimit = 5 * time.Second

	// limit is how long the whole may take if the caller sets no deadline.
	limit = 30 * time.Second

	// turnLimit is how long to wait for a turn. It is short, so that a caller that is refused
	// still has time to ask the API.
	turnLimit = 5 * time.Second
)

// Describe looks at the machine, and at the links in its working directories if asked to.
// It fails if ctx ends, and with NoSpace if too many other callers look.
func (i Inspector) Describe(ctx context.Context, links bool) (Node, error) {
	unlock, err := i.turn(ctx)
	if err != nil {
		return Node{}, err
	}
	defer unlock()
	limited, cancel := context.WithTimeout(win.AsInspector(ctx), portion(ctx, limit, 3))
	defer cancel()

	l := look{Inspector: i}
	node := l.node(limited)
	if links && i.searches {
		node.Links, node.LinksSearched = l.allLinks(limited), true
	}
	node.Problems = l.problems.texts()
	if err := ctx.Err(); err != nil {
		return Node{}, winerr.Wrap(op, "", err)
	}
	return node, nil
}

// turn waits until fewer than atOnce look.
func (i Inspector) turn(ctx context.Context) (unlock func(), err error) {
	wait := portion(ctx, turnLimit, 1)
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	unlock, err = i.turns.Lock(waiting, struct{}{})
	switch {
	case err == nil:
		return unlock, nil
	case ctx.Err() != nil:
		return nil, winerr.Wrap(op, "", ctx.Err())
	default:
		return nil, winerr.New(winerr.NoSpace, op, "", "%d other callers were looking at it for all of %s; try again later",
			atOnce, wait.Round(time.Millisecond))
	}
}

// portion returns limit, or so many quarters of the time until ctx's deadline if that is
// less: later steps need time, and the answer must reach the caller before the deadline.
func portion(ctx context.Context, limit time.Duration, quarters int) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return limit
	}
	return min(limit, time.Until(deadline)/4*time.Duration(quarters))
}

// look is one description of a machine in progress.
type look struct {
	Inspector
	problems problems
	// present are the existing volumes; nil if unknown.
	present map[win.VolumeID]bool
}

// node looks at disks and volumes. Each list may wait for disks that hang, so node makes the
// lists at the same time.
func (l *look) node(ctx context.Context) Node {
	var node Node
	var volumes []volumeReport
	var locations map[uint32]diskapi.DiskLocation
	lists := []struct {
		what string
		make func(ctx context.Context) error
	}{
		{"disks", func(ctx context.Context) (err error) { node.Disks, err = l.allDisks(ctx); return err }},
		{"volumes", func(ctx context.Context) (err error) { volumes, err = l.allVolumes(ctx); return err }},
		{"locations of disks", func(ctx context.Context) (err error) {
			locations, err = l.disks.WithContext(ctx).ListDiskLocations()
			return err
		}},
	}
	failures := parallel.Each(ctx, len(lists), portion(ctx, limit, 3), func(ctx context.Context, i int) error { return lists[i].make(ctx) })
	for i, err := range failures {
		l.problems.add(lists[i].what, err)
	}
	for i, disk := range node.Disks {
		if disk.Number == nil {
			continue
		}
		if at, ok := locations[*disk.Number]; ok {
			node.Disks[i].Location = &at
		}
	}
	node.Volumes = l.join(ctx, node.Disks, volumes)
	return node
}
