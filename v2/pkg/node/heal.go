package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/lostvolume"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

const (
	opHeal = "heal node"

	// DefaultMinAge is how long the target of a link must have been gone. A slow iSCSI login or disk
	// arrives within minutes of a start, and a device that drops off its bus returns within minutes.
	DefaultMinAge = 10 * time.Minute

	// healLimit is how long the whole may take if the caller sets no deadline.
	healLimit = 3 * time.Minute

	// removeLimit is how long one removal may wait for drivers' calls that are about its volume or
	// server.
	removeLimit = 30 * time.Second
)

// HealOptions say what Heal does.
type HealOptions struct {
	// Remove removes the links whose volume or share is certainly gone. Without it, Heal only says
	// which it would remove.
	Remove bool
	// AfterRestart limits Remove to what only a start of Windows can have lost: links to volumes that are older than the start,
	// and whose volume has not worked since this Node began.
	AfterRestart bool
	// MinAge is how long the target of a link must have been gone before the link is removed: in all
	// calls of Heal since the first that saw it gone, which are at most MinAge and two minutes apart, or
	// since Windows started. 0 means DefaultMinAge.
	MinAge time.Duration
	// LeaveMapped leaves links to shares alone that have a mapping, and opens none that an account could be locked for.
	LeaveMapped bool
}

// Healing is what Heal has found and done.
type Healing struct {
	// Stale are the staging links that lead nowhere, by path.
	Stale []StaleMount
	// Live is the number of staging links that lead somewhere, or are left alone.
	Live int
	// Problems say which directories could not be searched, each with the reason.
	Problems []Problem
	// RetryAfter is when all targets that are gone now can have been gone for MinAge; 0 if they have.
	RetryAfter time.Duration
}

// StaleMount is the link at which kubelet has staged a volume that cannot be reached. Kubelet then
// fails to make the directory, and calls no driver.
// https://github.com/kubernetes/kubernetes/issues/130300
type StaleMount struct {
	Path   string
	Driver string // as kubelet names it; empty for links of kubelet before 1.24
	Volume string // kubelet's name of the volume: a hash, or before 1.24 the persistent volume
	Target string // \\?\Volume{GUID}\, or \\server\share\directory
	Cause  string // why it cannot be reached
	// Changed is when the link was made or changed. It is zero if that is unknown.
	Changed time.Time
	State   StaleState
	Reason  string // for the state
}

// StaleState is what Heal did about a stale mount.
type StaleState string

// The states. The words are those on the wire.
const (
	Kept      StaleState = "kept"      // its volume or share may come back
	Removable StaleState = "removable" // it is certainly gone, but the options do not say that it is to be removed
	Removed   StaleState = "removed"
)

// OnRemove calls f after Heal has removed the link at a path. SMB.LinksGone of package smb is meant
// for it.
func OnRemove(f func(ctx context.Context, path string)) Option {
	return func(n *Node) error {
		n.onRemove = f
		return nil
	}
}

// VolumeHost is the host that mounts volumes. Heal must not disturb its calls, nor those of SMBHost.
// New needs no such option: its hosts share their locks with all others of this process.
func VolumeHost(host volumeapi.HostAPI) Option {
	return func(n *Node) error {
		n.volumeHost, _ = host.(volumeapi.Extended)
		return nil
	}
}

// Heal looks for staging links, plugins\kubernetes.io\csi\DRIVER\VOLUME\globalmount in the working
// directories, whose volume or share cannot be reached. It removes those that are certainly gone if
// the options say so: the same answer before and after a rescan of all disks, unless the last one was within a minute, and
// once more right before the removal. It never removes anything but such a link.
//
// A target must have been gone for a while, see MinAge. A Node remembers that from earlier calls, if they are not
// further apart than MinAge. One that began with Windows and has called Heal ever since also removes what was gone
// each time.
//
// Heal fails if it can decide nothing. What does not answer keeps its links.
func (n *Node) Heal(ctx context.Context, o HealOptions) (*Healing, error) {
	if n.limits == nil {
		return nil, winerr.New(winerr.Invalid, opHeal, "", "there are no working directories; set them with the option WorkingDirs")
	}
	if o.MinAge <= 0 {
		o.MinAge = DefaultMinAge
	}
	unlock, err := n.heals.Lock(ctx, struct{}{})
	if err != nil {
		return nil, winerr.Wrap(opHeal, "", err)
	}
	defer unlock()
	limited, cancel := context.WithTimeout(ctx, portion(ctx, healLimit, 3))
	defer cancel()
	h := healing{Node: n, options: o, reach: n.limits.Reach(n.m), gone: map[linkIdentity]absence{}, firsts: map[string]*known[struct{}]{}}
	result, err := h.run(limited)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, winerr.Wrap(opHeal, "", err)
	}
	return result, nil
}

type healing struct {
	*Node
	options HealOptions
	reach   policy.Reach

	uptime     time.Duration
	noUptime   error                    // why it is unknown
	watched    bool                     // whether calls of Heal have seen every use of a target since this Node began
	gone       map[linkIdentity]absence // of this call
	retryAfter time.Duration

	mu     sync.Mutex
	firsts map[string]*known[struct{}] // by server
}

func (h *healing) run(ctx context.Context) (*Healing, error) {
	links, searched := h.search(win.AsInspector(ctx))
	result := &Healing{Problems: searched.list()}
	h.uptime, h.noUptime = h.m.Uptime(ctx)
	now := h.m.Elapsed()
	if h.noUptime == nil {
		h.noteStart()
	}
	h.watched = h.healCalls.follows(now, h.began, h.options.MinAge)
	h.date(win.AsInspector(ctx), links)
	var dead []*stagingLink
	for i, checked := range h.checkAll(ctx, links) {
		if checked.verdict == live {
			result.Live++
			continue
		}
		links[i].first = checked
		dead = append(dead, links[i])
	}
	if len(dead) == 0 {
		h.Node.gone, h.healCalls.last, h.healCalls.any = nil, now, true
		return result, ctx.Err()
	}
	rescan := h.lost.Rescan(ctx, h.m)
	if err := h.m.Sleep(ctx, lostvolume.SettleTime); err != nil {
		return nil, err
	}
	for i, checked := range h.checkAll(ctx, dead) {
		link := dead[i]
		if checked.verdict == live {
			result.Live++
			continue
		}
		link.second = checked
		stale := StaleMount{Path: link.path, Driver: link.driver, Volume: link.volume, Target: link.target(), Cause: checked.cause, Changed: link.changed}
		stale.State, stale.Reason = h.judge(ctx, link, rescan)
		result.Stale = append(result.Stale, stale)
	}
	h.Node.gone, h.healCalls.last, h.healCalls.any, result.RetryAfter = h.gone, now, true, h.retryAfter
	return result, ctx.Err()
}

// judge decides after both checks, and removes the link if it is gone.
func (h *healing) judge(ctx context.Context, link *stagingLink, rescan error) (StaleState, string) {
	switch {
	case link.first.verdict != remove:
		return Kept, link.first.reason()
	case link.second.verdict != remove:
		return Kept, link.second.reason()
	case rescan != nil:
		return Kept, "the disks could not be rescanned: " + reasonOf(rescan)
	}
	if early := h.tooEarly(link); early != "" {
		return Kept, early
	}
	if !h.options.Remove || h.options.AfterRestart && !h.lostAtStart(link) {
		return Removable, link.second.why
	}
	kept, err := h.remove(ctx, link)
	switch {
	case err != nil:
		return Kept, "it could not be removed: " + reasonOf(err)
	case kept != "":
		return Kept, kept
	}
	if h.onRemove != nil {
		h.onRemove(ctx, link.path)
	}
	return Removed, link.second.why
}

// remove removes a link while no driver's call can use it, if it is still the same and its target
// still gone. kept says why it is not removed.
func (h *healing) remove(ctx context.Context, link *stagingLink) (kept string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	// A removal that has begun ends, so that what was removed is known.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	var result string // is read only after do has returned
	do := func(ctx context.Context) (err error) {
		result, err = h.removeNow(ctx, link)
		return err
	}
	if link.kind == toVolume {
		err = h.inTurnOfVolume(ctx, link.id, link.path, do)
	} else {
		err = h.inTurnOfShare(ctx, link, do)
	}
	if err != nil {
		return "", err
	}
	return result, nil
}

var errNoTurn = errors.New("this host cannot keep its other calls away from it")

func (n *Node) inTurnOfVolume(ctx context.Context, id win.VolumeID, path string, do func(context.Context) error) error {
	if n.volumeHost == nil {
		return errNoTurn
	}
	return n.volumeHost.Exclusively(ctx, string(id), path, do)
}

func (h *healing) inTurnOfShare(ctx context.Context, link *stagingLink, do func(context.Context) error) error {
	if h.smb == nil {
		return errNoTurn
	}
	return h.smb.Exclusively(ctx, link.target(), link.path, do)
}

// removeNow is remove in its turn. Nothing happens between the last check and the removal.
func (h *healing) removeNow(ctx context.Context, link *stagingLink) (kept string, err error) {
	entry, err := h.reach.Open(ctx, opHeal, link.path, policy.Remove)
	if err != nil {
		return "", err
	}
	defer entry.Close()
	if checked := h.checkAgain(ctx, link); checked.verdict != remove {
		return "it changed meanwhile: " + checked.reason(), nil
	}
	switch removed, err := entry.Dir.RemoveLink(ctx, entry.Name, link.point, link.changed); {
	case err != nil:
		return "", err
	case !removed:
		return "it changed meanwhile", nil
	}
	klog.FromContext(ctx).Info("Removed a stale mount", "path", link.path, "target", link.target(), "driver", link.driver, "volume", link.volume,
		"changed", link.changed, "cause", link.second.cause, "reason", link.second.why)
	return "", nil
}
