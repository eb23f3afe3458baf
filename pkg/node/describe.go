package node

import (
	"context"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
)

const (
	op = "describe node"

	// objectLimit is how long one object may delay the answer, if there is twice as much
	// time for those after it. A disk whose controller is resetting answers after 10 to 60
	// seconds, or never.
	objectLimit = 5 * time.Second

	// limit is how long the whole may take if the caller sets no deadline.
	limit = 30 * time.Second

	// atOnce is how many callers may describe the node at the same time; others wait for their
	// turn.
	atOnce = 2

	// turnLimit is how long to wait for a turn. It is short, so that a caller that is refused
	// still has time to ask the API.
	turnLimit = 5 * time.Second
)

// Describe looks at the machine's disks and volumes, and at the parts that the caller asks for. What
// does not answer is part of the description. Describe fails if ctx ends, or if too many other
// callers look at the same time.
func (n *Node) Describe(ctx context.Context, parts ...Part) (*Description, error) {
	unlock, err := n.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	limited, cancel := context.WithTimeout(win.AsInspector(ctx), portion(ctx, limit, 3))
	defer cancel()

	l := lookup{Node: n, reads: true}
	description := l.node(limited, parts)
	if slices.Contains(parts, Links) && n.limits != nil {
		description.Links, description.LinksSearched = l.allLinks(limited), true
		l.addFoundLinks(&description)
	} else {
		l.addKnownLinks(limited, description.Shares)
	}
	description.LinksFailed = l.linksFailed
	description.Problems = l.problems.texts()
	if err := ctx.Err(); err != nil {
		return nil, winerr.Wrap(op, "", err)
	}
	return &description, nil
}

// turn waits until fewer than atOnce look.
func (n *Node) turn(ctx context.Context) (unlock func(), err error) {
	wait := portion(ctx, turnLimit, 1)
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	unlock, err = n.turns.Lock(waiting, struct{}{})
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

// lookup is one description of a machine in progress.
type lookup struct {
	*Node
	reads    bool // disks, to see whether they can be read
	problems problems
	// present are the existing volumes; nil if unknown.
	present map[win.VolumeID]bool
	// disksLeft and volumesLeft were listed, but did not exist a moment later.
	disksLeft, volumesLeft []string
	// unanswered are the questions that disks did not answer, by path.
	unanswered map[string]questions
	// intoShares are the links that lead into a share, by share.
	intoShares map[string][]string
	// linksFailed means that the search has missed links because of a fault.
	linksFailed bool
}

// list is something that is listed at the same time as other lists: each may wait for disks that
// hang.
type list struct {
	what string
	make func(ctx context.Context) error
}

func (l *lookup) makeAll(ctx context.Context, lists ...list) []error {
	failures := tasks.Each(ctx, len(lists), portion(ctx, limit, 3), func(ctx context.Context, i int) error { return lists[i].make(ctx) })
	for i, err := range failures {
		l.problems.add(lists[i].what, err)
	}
	return failures
}

// node looks at everything except links.
func (l *lookup) node(ctx context.Context, parts []Part) Description {
	answers := slices.Contains(parts, ShareAnswers)
	shares := answers || slices.Contains(parts, Shares)
	var node Description
	var volumes []volumeReport
	var locations map[uint32]diskapi.DiskLocation
	lists := append(l.diskLists(&node.Disks, &locations, true),
		list{"volumes", func(ctx context.Context) (err error) { volumes, err = l.allVolumes(ctx); return err }})
	volumesAt := len(lists) - 1
	if shares {
		lists = append(lists, list{"shares", func(ctx context.Context) (err error) { node.Shares, err = l.allShares(ctx, answers); return err }})
	}
	sharesAt := len(lists) - 1
	sessions := slices.Contains(parts, Sessions)
	if sessions {
		lists = append(lists, list{"iSCSI sessions", func(ctx context.Context) (err error) { node.Sessions, _, err = l.allSessions(ctx); return err }})
	}
	failures := l.makeAll(ctx, lists...)
	node.VolumesFailed = failures[volumesAt] != nil
	node.SharesFailed = shares && failures[sharesAt] != nil
	node.SharesListed = shares && !node.SharesFailed
	node.SessionsListed = sessions && failures[len(failures)-1] == nil
	addLocations(node.Disks, locations)
	l.explainOffline(ctx, node.Disks)
	node.Volumes = l.join(ctx, node.Disks, volumes)
	return node
}

// diskLists are the lists of disks and their locations. With guess, a disk that does not report its
// number may get it, see numberLast.
func (l *lookup) diskLists(disks *[]Disk, locations *map[uint32]diskapi.DiskLocation, guess bool) []list {
	return []list{
		{"disks", func(ctx context.Context) (err error) {
			*disks, err = l.allDisks(ctx)
			if guess {
				l.numberLast(ctx, *disks)
			}
			sortDisks(*disks)
			return err
		}},
		{"locations of disks", func(ctx context.Context) (err error) {
			*locations, err = l.disks.WithContext(ctx).ListDiskLocations()
			return err
		}},
	}
}

func addLocations(disks []Disk, locations map[uint32]diskapi.DiskLocation) {
	for i, disk := range disks {
		if disk.Number == nil {
			continue
		}
		if at, ok := locations[*disk.Number]; ok {
			disks[i].Location = &at
		}
	}
}
