package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/lostvolume"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// What a start of Windows has lost only a driver can bring back. A device that drops off its bus, and
// a share whose password is rotated under running pods, look the same, but come back by themselves.
// Only time distinguishes them: these have worked since the start.

// beginLimit is how long after Windows a Node may begin and still know that it has seen every use of a
// target since. Windows starts services within minutes; containers follow.
const beginLimit = 30 * time.Minute

// usedTargets are the volumes and shares that have worked since a Node began.
type usedTargets struct {
	mu    sync.Mutex
	names map[string]bool
}

func (u *usedTargets) add(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names == nil {
		u.names = map[string]bool{}
	}
	u.names[name] = true
}

func (u *usedTargets) has(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.names[name]
}

// clockStep is by how much the clock may have been set between the start of Windows and that of a Node: machines whose
// hardware keeps local time start an hour early or late, and time services correct it.
const clockStep = time.Hour

// noteStart notes the date of the start of Windows, by the clock as it was when this Node first looked or earlier. The
// clock may have been set since: links have dates of their own time, so the earliest guess of all calls counts.
func (h *healing) noteStart() {
	guess := h.m.Now().Round(0).Add(-h.uptime)
	if h.started.IsZero() || guess.Before(h.started) {
		h.started = guess
	}
}

// originOf says whether a link can have been in use since Windows started.
func (h *healing) originOf(link *stagingLink) origin {
	start := h.started
	if link.kind == toVolume {
		// A volume then only has to be gone for longer. A share would be kept for good.
		start = start.Add(-clockStep)
	}
	switch {
	case h.noUptime != nil || link.noDate != nil || link.changed.After(start):
		return sinceStart
	case h.uptime-(h.m.Elapsed()-h.began) > beginLimit || link.kind == toVolume && !h.watched: // it has not seen everything
		return sinceStart
	case h.used.has(link.leadsTo()):
		return sinceStart
	}
	if h.smb != nil && link.kind == toShare && h.smb.MappingFacts(link.leadsTo()).Created {
		return sinceStart
	}
	return beforeStart
}

// lostAtStart reports whether a volume was lost with the start of Windows. One that has worked since then may come back, and a
// pod may use it: so this Node must have seen all since the start.
func (h *healing) lostAtStart(link *stagingLink) bool {
	return link.kind == toVolume && h.originOf(link) == beforeStart
}

// linkIdentity changes when a link is replaced.
type linkIdentity struct {
	path, target string
	changed      time.Time
}

// absence is for how long calls of Heal have seen that the target of a link is gone, by the time
// since Windows started, a clock that is never set.
type absence struct{ first, last time.Duration }

// tooEarly says why a link whose target is gone is not removed yet, if it is not.
func (h *healing) tooEarly(link *stagingLink) string {
	switch {
	case h.noUptime != nil:
		return "the time since Windows started is unknown: " + reasonOf(h.noUptime)
	case link.noDate != nil:
		return "its age is unknown: " + reasonOf(link.noDate)
	}
	absent := h.goneFor(link)
	if absent >= h.options.MinAge {
		return ""
	}
	h.retryAfter = max(h.retryAfter, h.options.MinAge-absent)
	return fmt.Sprintf("gone for %s of %s; it may come back", short(absent), short(h.options.MinAge))
}

// goneFor is how long the target of a link is known to be gone.
func (h *healing) goneFor(link *stagingLink) time.Duration {
	id := linkIdentity{link.path, link.target(), link.changed}
	a, known := h.Node.gone[id]
	// It may have come and gone between calls that are far apart.
	if !known || farApart(h.uptime-a.last, h.options.MinAge) {
		a.first = h.uptime
	}
	a.last = h.uptime
	h.gone[id] = a
	if h.originOf(link) == beforeStart {
		return h.uptime
	}
	return h.uptime - a.first
}

// Recheck makes Heal forget that a volume was gone if it is back. A device can return and drop off again between two
// calls of Heal; who calls Recheck every minute meanwhile notices. It costs one call for each volume that was gone.
func (n *Node) Recheck(ctx context.Context) error {
	unlock, err := n.heals.Lock(ctx, struct{}{})
	if err != nil {
		return winerr.Wrap(opHeal, "", err)
	}
	defer unlock()
	for id := range n.gone {
		if volume, ok := win.ParseVolumeID(id.target); ok && !lostvolume.Missing(ctx, n.m, volume) {
			n.used.add(id.target)
			delete(n.gone, id)
		}
	}
	return ctx.Err()
}

type healCalls struct {
	last   time.Duration // that did not fail, by Elapsed
	any    bool          // there was one
	missed bool          // targets may have been used unseen
}

// follows reports whether all calls since a Node began, and the one that begins, have followed each other closely.
func (c *healCalls) follows(now, began, minAge time.Duration) bool {
	before := c.last
	if !c.any {
		before = began
	}
	c.missed = c.missed || farApart(now-before, minAge)
	return !c.missed
}

// farApart reports whether a target may have come back and gone again between two calls of Heal.
func farApart(gap, minAge time.Duration) bool { return gap < 0 || gap > minAge+maxHealTime }

// maxHealTime is what calls of Heal that follow each other after MinAge take themselves.
const maxHealTime = 2 * time.Minute

// short is a duration without zeros: 10m, not 10m0s.
func short(d time.Duration) string {
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}
