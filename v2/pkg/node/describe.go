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

	// lookLimit is how long a description takes, whatever hangs: all objects are asked at once. A disk whose
	// controller is resetting answers after 10 to 60 seconds, or never, and a person does not wait for that.
	lookLimit = 4 * time.Second

	// objectLimit is how long one object may delay a search for a disk, or Heal, if there is twice as much time for
	// those after it.
	objectLimit = 5 * time.Second

	// limit is how long such a search may take if the caller sets no deadline.
	limit = 30 * time.Second

	// atOnce is how many callers may describe the node at the same time; others wait for their
	// turn.
	atOnce = 8

	// turnLimit is how long to wait for a turn. It is short, so that a caller that is refused
	// still has time to ask the API.
	turnLimit = time.Second
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
	limited, cancel := context.WithTimeout(win.AsInspector(ctx), portion(ctx, lookLimit, 3))
	defer cancel()

	l := lookup{Node: n, describes: true}
	description := l.node(limited, parts)
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
	describes bool // for people: it reads disks, and has one limit for all objects
	problems  problems
	// present are the existing volumes; nil if unknown.
	present map[win.VolumeID]bool
	// noMedium are the numbers of disks without a medium. Windows lists a volume of each.
	noMedium map[uint32]bool
	// disksLeft and volumesLeft were listed, but did not exist a moment later.
	disksLeft, volumesLeft []string
	// unanswered are the questions that disks did not answer, by path.
	unanswered map[string]questions
}

// objectTime is how long one object may take.
func (l *lookup) objectTime(ctx context.Context) time.Duration {
	if l.describes {
		return lookLimit
	}
	return portion(ctx, objectLimit, 2)
}

// list is something that is listed at the same time as other lists: each may wait for disks that
// hang.
type list struct {
	what string
	make func(ctx context.Context) error
}

// makeAll returns the failures in the order of the lists.
func (l *lookup) makeAll(ctx context.Context, lists ...list) []error {
	limit := portion(ctx, limit, 3)
	if l.describes {
		limit = lookLimit
	}
	failures := tasks.Each(ctx, len(lists), limit, func(ctx context.Context, i int) error { return lists[i].make(ctx) })
	for i, err := range failures {
		l.problems.add(lists[i].what, err)
	}
	return failures
}

// What problems call the lists of which a description says whether they failed.
const (
	listOfVolumes  = "volumes"
	listOfShares   = "shares"
	listOfSessions = "iSCSI sessions"
)

// node looks at everything at once.
func (l *lookup) node(ctx context.Context, parts []Part) Description {
	answers, sessions := slices.Contains(parts, ShareAnswers), slices.Contains(parts, Sessions)
	shares, links := answers || slices.Contains(parts, Shares), slices.Contains(parts, Links) && l.limits != nil
	var node Description
	var volumes []volumeReport
	var system []win.VolumeID
	var locations map[uint32]diskapi.DiskLocation
	var found linkSearch
	var health health
	policy := win.SANOnlineAll
	ask := func(asked bool, what string, make func(ctx context.Context) error) list {
		if !asked {
			make = func(context.Context) error { return nil }
		}
		return list{what, make}
	}
	lists := append(append(l.diskLists(&node.Disks, &locations), health.lists(l)...),
		ask(true, "the disk of Windows", func(ctx context.Context) (err error) { system, err = l.m.SystemVolumes(ctx); return err }),
		ask(true, "SAN policy", func(ctx context.Context) error { return l.sanPolicy(ctx, &policy) }),
		ask(links, "pods", func(ctx context.Context) error { node.Pods = l.allPods(ctx); return nil }),
		ask(true, listOfVolumes, func(ctx context.Context) (err error) { volumes, err = l.allVolumes(ctx); return err }),
		ask(shares, listOfShares, func(ctx context.Context) (err error) { node.Shares, err = l.allShares(ctx, answers); return err }),
		ask(sessions, listOfSessions, func(ctx context.Context) (err error) { node.Sessions, _, err = l.allSessions(ctx); return err }),
		ask(links, "links", func(ctx context.Context) error { found = l.allLinks(ctx); return nil }))
	failed := map[string]bool{}
	for i, err := range l.makeAll(ctx, lists...) {
		failed[lists[i].what] = err != nil
	}
	node.VolumesFailed, node.SharesFailed = failed[listOfVolumes], failed[listOfShares]
	node.SharesListed, node.SessionsListed, node.LinksSearched = shares && !failed[listOfShares], sessions && !failed[listOfSessions], links
	addLocations(node.Disks, locations)
	explainOffline(policy, node.Disks)
	node.Volumes = l.join(node.Disks, volumes, system)
	health.join(&node)
	if links {
		found.report(&node, l.present)
	} else {
		l.addKnownLinks(ctx, node.Shares)
	}
	node.Problems = append(l.problems, found.problems...).list()
	return node
}

func (l *lookup) diskLists(disks *[]Disk, locations *map[uint32]diskapi.DiskLocation) []list {
	return []list{
		{"disks", func(ctx context.Context) (err error) {
			*disks, err = l.allDisks(ctx)
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
