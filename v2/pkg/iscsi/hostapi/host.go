package api

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/queue"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// host is a machine with an initiator, and the queues of its changes.
type host struct {
	m       win.Machine
	changes queue.Queues[change]
	// secretSet is when this process has set the mutual secret, by Elapsed; nil if it has not, or has forgotten it.
	secretSet atomic.Pointer[time.Duration]
}

// change names something that is done to a portal or a target. Callers of equal changes share
// one run: a retry joins a login that has outlived its caller.
type change struct {
	op     string
	object object
	// as distinguishes callers with different credentials: a login that fails because of its
	// secret must not be the answer to a caller with the right one.
	as fingerprint
	// fresh is for questions: one that already runs may have its answer already.
	fresh bool
}

// object is a portal, a target or the secret. Changes of the same object wait for each other.
type object string

func portalObject(portal win.TargetPortal) object { return object("portal " + portal.Key()) }

func targetObject(target string) object { return object("target " + win.FoldTarget(target)) }

const initiatorSecret object = "initiator secret"

func (c change) Objects() []string { return []string{string(c.object)} }

func (c change) Fresh() bool { return c.fresh }

// changeLimit ends a change whose callers have all left. A logout can take minutes.
const changeLimit = 5 * time.Minute

// change does something in its turn. A caller whose context ends leaves at once. A change that
// has begun goes on, and later changes wait until it has ended. One that has not begun is dropped
// with its last caller.
func (h *host) change(ctx context.Context, c change, name string, do func(ctx context.Context) error) error {
	return winerr.Wrap(c.op, name, h.changes.Do(ctx, c, changeLimit, do))
}

// timeLeft is how long to wait for something that may never come: limit, or less if ctx ends
// earlier. It ends before ctx does, so that the caller learns what was waited for.
func timeLeft(ctx context.Context, limit time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return limit
	}
	return min(limit, max(0, time.Until(deadline)*9/10))
}

// clockUntil is a clock whose pauses end at a given time. A poll by it also counts the time that
// calls take, which can be seconds here: the caller's time must not run out in a pause.
type clockUntil struct {
	win.Clock
	end time.Duration // by Elapsed
}

// left is the time until the end, or 0.
func (c clockUntil) left() time.Duration { return max(0, c.end-c.Elapsed()) }

func (c clockUntil) Sleep(ctx context.Context, d time.Duration) error {
	return c.Clock.Sleep(ctx, min(d, c.left()))
}

func parsePortal(op string, portal *TargetPortal) (win.TargetPortal, error) {
	switch {
	case portal == nil:
		return win.TargetPortal{}, winerr.New(winerr.Invalid, op, "", "the target portal is missing")
	case portal.Port == 0 || portal.Port > math.MaxUint16:
		return win.TargetPortal{}, winerr.New(winerr.Invalid, op, "", "port %d of the target portal is invalid; use 1 to 65535", portal.Port)
	}
	return win.TargetPortal{Address: portal.Address, Port: uint16(portal.Port)}, nil
}

func failed(op, name string, err error) error {
	switch kind := winerr.KindOf(err); {
	case serviceDown(err):
		return winerr.As(winerr.InUse, op, name, err, "start the service MSiSCSI first, for instance with StartService")
	case winerr.CodeOf(err) != 0 && kind == winerr.Unavailable:
		return winerr.As(kind, op, name, err, "check the portal's address and port, and that the server runs")
	default:
		return winerr.Wrap(op, name, err)
	}
}

// serviceDown reports whether the service of the initiator does not run, which is the default of
// Windows. We do not start it: that is the administrator's decision.
func serviceDown(err error) bool {
	const rpcServerUnavailable winerr.Code = 1722 // RPC_S_SERVER_UNAVAILABLE
	switch winerr.CodeOf(err) {
	case winerr.ISCSIServiceNotRunning, winerr.ISCSIServiceDidNotRespond, rpcServerUnavailable:
		return true
	default:
		return false
	}
}

// sessions returns the sessions of a target. The list may grow while the machine makes room for
// it, for instance during a failover.
func (h *host) sessions(ctx context.Context, target string) ([]win.Session, error) {
	const pause, repeats = 100 * time.Millisecond, 4
	var all []win.Session
	var failure error
	_, err := win.Poll(ctx, h.m, win.Backoff{First: pause, Longest: pause, Limit: repeats * pause}, func(time.Duration) (bool, error) {
		all, failure = h.m.Sessions(ctx)
		return !winerr.IsBufferTooSmall(failure), nil
	})
	if err := cmp.Or(err, failure); err != nil {
		return nil, err
	}
	return sessionsOf(all, target), nil
}

func sessionsOf(all []win.Session, target string) (own []win.Session) {
	for _, session := range all {
		if session.IsOf(target) {
			own = append(own, session)
		}
	}
	return own
}

// errUnknown is the answer about a target that was not discovered. At least one driver,
// democratic-csi, matches its last word.
var errUnknown = errors.New("the target is not known (ObjectNotFound)")

// checkKnown fails unless the target was discovered at any portal: arrays report targets at other
// addresses than the one that was asked.
func (h *host) checkKnown(ctx context.Context, op string, portal win.TargetPortal, target string) error {
	known, err := h.m.ReportTargets(ctx)
	if err != nil {
		return failed(op, target, err)
	}
	if slices.ContainsFunc(known, func(name string) bool { return win.SameTarget(name, target) }) {
		return nil
	}
	return unknown(op, portal, target, errUnknown)
}

// unknown is the error about a target that was not discovered.
func unknown(op string, portal win.TargetPortal, target string, err error) error {
	return winerr.As(winerr.NotFound, op, target, err, "call AddTargetPortal and DiscoverTargetPortal for portal "+portal.String()+" first")
}
