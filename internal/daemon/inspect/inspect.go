// Package inspect looks at the storage of a machine as a whole: its disks with their
// partitions, its volumes, and the links in the working directories that lead to them or
// nowhere.
//
// It is for people who look at a node, and so it works best when the node does not: whatever
// does not answer is named in the answer, with the reason, and takes little time from the
// rest. It changes nothing, and wakes nothing: a volume that is offline stays so, and no
// server is asked.
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

// Disk is a disk that is present. What could not be found out is nil or empty, and a problem
// says why.
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
	ReadOnly     bool         // whatever its disk is
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
	ReadOnly    *bool // by its disks or its partition; nil if those do not tell
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

// atOnce is how many may look at the same time; others wait for their turn.
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

	// patience is how long one object may keep the answer waiting, if there is twice as much
	// time for those after it. A disk whose controller is resetting answers after 10 to 60
	// seconds, or never.
	patience = 5 * time.Second

	// limit is how long the whole may take if the caller does not say.
	limit = 30 * time.Second

	// turnLimit is how long to wait for a turn. Whoever is told soon that there is none can
	// still ask the API.
	turnLimit = 5 * time.Second
)

// Describe looks at the machine, and at the links in its working directories if asked to.
// It fails if ctx ends, and with NoSpace if so many others look that its turn does not come.
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
	patient := portion(ctx, turnLimit, 1)
	waiting, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	unlock, err = i.turns.Lock(waiting, struct{}{})
	switch {
	case err == nil:
		return unlock, nil
	case ctx.Err() != nil:
		return nil, winerr.Wrap(op, "", ctx.Err())
	default:
		return nil, winerr.New(winerr.NoSpace, op, "", "%d others were looking at it all the time for %s; try again later",
			atOnce, patient.Round(time.Millisecond))
	}
}

// portion is how much of a limit there is, if that shall take no more than so many quarters of
// the time that is left: others come after it, and the answer has to reach the caller before
// the end.
func portion(ctx context.Context, limit time.Duration, quarters int) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return limit
	}
	return min(limit, time.Until(deadline)/4*time.Duration(quarters))
}

// look is one look at a machine.
type look struct {
	Inspector
	problems problems
	// present are the volumes that there are; nil if that could not be found out.
	present map[win.VolumeID]bool
}

// node looks at disks and volumes. Each list waits for sick disks on its own, so they are made
// at the same time.
func (l *look) node(ctx context.Context) Node {
	var node Node
	var volumes []seen
	var ids map[uint32]diskapi.DiskIDs
	var locations map[uint32]diskapi.DiskLocation
	lists := []struct {
		what string
		make func(ctx context.Context) error
	}{
		{"disks", func(ctx context.Context) (err error) { node.Disks, err = l.allDisks(ctx); return err }},
		{"volumes", func(ctx context.Context) (err error) { volumes, err = l.allVolumes(ctx); return err }},
		{"ids of disks", func(ctx context.Context) (err error) { ids, err = l.disks.WithContext(ctx).ListDiskIDs(); return err }},
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
		if told, ok := ids[*disk.Number]; ok {
			node.Disks[i].IDs = told
		} else if ids != nil && len(disk.Problems) == 0 { // the list leaves out who does not answer
			node.Disks[i].Problems = []string{"serial number, page 83: no answer"}
		}
		if at, ok := locations[*disk.Number]; ok {
			node.Disks[i].Location = &at
		}
	}
	node.Volumes = l.join(ctx, node.Disks, volumes)
	return node
}
