package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/lostvolume"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// allSessions lists the sessions of the iSCSI initiator, and the persistent logins that have none. It
// does not start the initiator: one that does not run has no sessions. Failed are the targets with a session that does not
// list its disks.
func (l *lookup) allSessions(ctx context.Context) (all []Session, failed []string, err error) {
	found, err := l.m.Sessions(ctx)
	if err != nil {
		if status, failed := l.m.ServiceStatus(ctx, lostvolume.InitiatorService); winerr.CodeOf(failed) == winerr.ServiceDoesNotExist || failed == nil && status.State == win.ServiceStopped {
			return nil, nil, nil
		}
		return nil, nil, err
	}
	logins, err := l.m.PersistentLogins(ctx)
	if err != nil {
		return nil, nil, err
	}
	all = make([]Session, 0, len(found))
	for _, s := range found {
		session, listed := l.session(ctx, s)
		all = append(all, session)
		if !listed {
			failed = append(failed, session.Target)
		}
	}
	for _, login := range logins {
		if i := slices.IndexFunc(found, func(s win.Session) bool { return s.IsOf(login.Target) }); i >= 0 {
			all[i].Persistent = true
		} else {
			all = append(all, Session{Target: login.Target, Persistent: true, Portals: l.portals(ctx, login.Target, login.Portal)})
		}
	}
	slices.SortStableFunc(all, func(a, b Session) int { return cmp.Compare(a.Target, b.Target) })
	return all, failed, nil
}

// portals returns the addresses of portals. Without any, it asks for those of the target; that one is unknown is no problem.
func (l *lookup) portals(ctx context.Context, target string, known ...win.TargetPortal) (addresses []string) {
	known = slices.DeleteFunc(slices.Clone(known), func(p win.TargetPortal) bool { return p.Address == "" })
	if len(known) == 0 && l.describes { // another target must not wait for this one
		limited, cancel := context.WithTimeout(ctx, l.objectTime(ctx))
		known, _ = l.m.ReportTargetPortals(limited, target)
		cancel()
	}
	for _, p := range known {
		if text := p.String(); !slices.Contains(addresses, text) {
			addresses = append(addresses, text)
		}
	}
	return addresses
}

var errArriving = errors.New("it is still arriving")

// session asks a session for its disks, and reports whether it listed them. A new session answers later.
func (l *lookup) session(ctx context.Context, s win.Session) (session Session, listed bool) {
	session = Session{Target: s.TargetName, Connections: s.Connections, Portals: l.portals(ctx, s.TargetName, s.Portals...)}
	limited, cancel := context.WithTimeout(ctx, l.objectTime(ctx))
	defer cancel()
	devices, err := l.m.DevicesForSession(limited, s.ID)
	var failed problems
	if !errors.Is(err, winerr.Unsupported) {
		failed.add("disks", err)
	}
	for _, device := range devices {
		switch {
		case device.Device.Number == win.NoDeviceNumber:
			failed.add(fmt.Sprintf("disk of LUN %d", device.LUN), errArriving)
		case device.Device.Type == win.DeviceTypeDisk:
			session.Disks = append(session.Disks, device.Device.Number)
		}
	}
	slices.Sort(session.Disks)
	session.Problems = failed.list()
	return session, err == nil
}

// SessionsOf returns the sessions of iSCSI targets: those with these names, and those with disks of these numbers. It
// fails if a session that may be one of these does not list its disks. Of a disk that is on another bus it asks nothing
// else, so it is quick, and does not wait for an initiator that the disk does not need.
func (n *Node) SessionsOf(ctx context.Context, targets []string, disks ...uint32) ([]Session, error) {
	const op = "describe sessions of"
	limited, cancel := context.WithTimeout(win.AsInspector(ctx), portion(ctx, limit, 3))
	defer cancel()
	for _, name := range targets {
		if err := win.CheckTargetName(name); err != nil {
			return nil, winerr.As(winerr.Invalid, op, "", err, "")
		}
	}
	object := fmt.Sprintf("targets %q and disks %d", targets, disks)
	targets = slices.Clone(targets)
	disks = slices.DeleteFunc(slices.Clone(disks), func(number uint32) bool { return !n.mayBeISCSI(limited, number) })
	if len(targets)+len(disks) == 0 {
		return nil, winerr.Wrap(op, object, ctx.Err())
	}
	l := lookup{Node: n}
	all, failed, err := l.allSessions(limited)
	if err != nil {
		return nil, winerr.Wrap(op, object, cmp.Or(ctx.Err(), err))
	}
	for _, s := range all {
		if i := slices.IndexFunc(disks, func(number uint32) bool { return slices.Contains(s.Disks, number) }); i >= 0 {
			disks = slices.Delete(disks, i, i+1)
			targets = append(targets, s.Target)
		}
	}
	wanted := func(target string) bool {
		return slices.ContainsFunc(targets, func(name string) bool { return win.SameTarget(name, target) })
	}
	if slices.ContainsFunc(failed, wanted) || len(disks) > 0 && len(failed) > 0 {
		return nil, winerr.New(winerr.Unavailable, op, object, "Windows did not list the disks of %s; try again", strings.Join(failed, ", "))
	}
	return slices.DeleteFunc(all, func(s Session) bool { return !wanted(s.Target) }), nil
}

// mayBeISCSI is true for a disk that does not answer, which nearly all do at once, unless it has said before that it is
// not.
func (n *Node) mayBeISCSI(ctx context.Context, number uint32) bool {
	ctx, cancel := context.WithTimeout(ctx, portion(ctx, time.Second, 1))
	defer cancel()
	descriptor, err := n.m.DeviceDescriptor(ctx, win.PhysicalDrive(number))
	if err != nil {
		bus := n.known.busOf(number)
		return bus == "" || bus == busName(win.BusTypeISCSI)
	}
	return descriptor.BusType == win.BusTypeISCSI
}

const (
	// lunArrival is how long Plug and Play may take for a disk that a session lists, and lunListing how
	// long a session may take to list it.
	lunArrival = 30 * time.Second
	lunListing = 5 * time.Second
)

// numberOf returns the number of the disk that is a LUN of an iSCSI target. The sessions of the target say it, and
// nothing else does: MPIO gives its disks other SCSI addresses. It waits for a disk that arrives.
func (n *Node) numberOf(ctx context.Context, q Query) (uint32, error) {
	lun, err := strconv.ParseUint(q.LUN, 10, 8)
	if err != nil {
		return 0, winerr.New(winerr.Invalid, opFind, q.String(), "the LUN of an iSCSI target is a number from 0 to 255")
	}
	var number uint32
	wait := lunArrival
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)*9/10) // so that the caller learns what was waited for
	}
	var missing error
	_, err = win.Poll(ctx, n.m, win.Backoff{First: 100 * time.Millisecond, Longest: time.Second, Limit: max(0, wait)}, func(waited time.Duration) (bool, error) {
		var failure error
		number, missing, failure = n.lun(ctx, q, uint8(lun))
		return missing == nil || errors.Is(missing, winerr.NotFound) && waited >= lunListing, failure
	})
	return number, cmp.Or(err, missing)
}

// lun looks for a LUN of a target once. Missing says why it is not there yet.
func (n *Node) lun(ctx context.Context, q Query, lun uint8) (number uint32, missing, err error) {
	sessions, err := n.m.Sessions(ctx)
	if winerr.IsBufferTooSmall(err) {
		return 0, winerr.Wrap(opFind, q.String(), err), nil
	}
	if err != nil {
		return 0, nil, err
	}
	sessions = slices.DeleteFunc(sessions, func(s win.Session) bool { return !s.IsOf(q.Adapter) })
	if len(sessions) == 0 {
		return 0, nil, winerr.New(winerr.NotFound, opFind, q.String(), "the target has no session; log in first")
	}
	sessions = slices.DeleteFunc(sessions, func(s win.Session) bool { return s.Connections == 0 })
	if len(sessions) == 0 {
		return 0, nil, winerr.New(winerr.Unavailable, opFind, q.String(), "the session of the target has lost its connection, and Windows tries to connect again; check its portals and its CHAP secret")
	}
	var found []Disk
	missing = winerr.New(winerr.NotFound, opFind, q.String(), "the target does not offer this LUN to the node")
	for _, s := range sessions {
		disks, problem := n.disksAt(ctx, s.ID, lun)
		if problem != nil {
			missing = winerr.As(winerr.Unavailable, opFind, q.String(), problem, "try again")
		}
		for _, disk := range disks {
			if !slices.ContainsFunc(found, func(other Disk) bool { return *other.Number == *disk.Number }) {
				found = append(found, disk)
			}
		}
	}
	switch len(found) {
	case 0:
		return 0, missing, nil
	case 1:
		return *found[0].Number, nil, nil
	default: // two sessions without MPIO
		return 0, nil, &AmbiguousError{Query: q, Candidates: found}
	}
}

// disksAt returns the disks at a LUN of a session, with nothing but their number. There is at most one that is ready.
func (n *Node) disksAt(ctx context.Context, id win.SessionID, lun uint8) (disks []Disk, problem error) {
	devices, err := n.m.DevicesForSession(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, d := range devices {
		number := d.Device.Number
		switch {
		case d.LUN != lun:
		case number == win.NoDeviceNumber || d.LegacyName == "":
			problem = errArriving
		case d.Device.Type == win.DeviceTypeDisk:
			disks = append(disks, Disk{Number: &number})
		}
	}
	return disks, problem
}
