package node

import (
	"cmp"
	"context"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/lostvolume"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// shareLimit is how long a server may take to answer. Windows itself waits longer than callers do.
const shareLimit = 10 * time.Second

// checkResult is what a check of a link has shown, and what that means.
type checkResult struct {
	decision
	cause    string // why it cannot be reached
	notReady string // what could hold its volume
}

// reason says why a link is kept.
func (r checkResult) reason() string {
	if r.notReady != "" {
		return r.why + ": " + r.notReady
	}
	return r.why
}

type nodeState struct {
	storage  *lostvolume.Storage
	silent   string // what of it does not answer, and could hold a volume that is not listed; empty if all answer
	mappings map[string]win.SMBStatus
	noShares error // why the mappings are unknown
}

// checkAll checks links, and everything that could still bring their volumes.
func (h *healing) checkAll(ctx context.Context, links []*stagingLink) []checkResult {
	ctx, cancel := context.WithTimeout(win.AsInspector(ctx), portion(ctx, limit, 1))
	defer cancel()
	var state nodeState
	kinds := map[target]bool{}
	for _, link := range links {
		kinds[link.kind] = true
	}
	if kinds[toVolume] {
		state.storage, state.silent = h.storage(ctx)
	}
	if kinds[toShare] {
		state.mappings, state.noShares = h.mappings(ctx)
	}
	found := make([]checkResult, len(links))
	failures := tasks.Each(ctx, len(links), portion(ctx, shareLimit, 2), func(ctx context.Context, i int) error {
		found[i] = h.check(ctx, links[i], state, h.openOnce)
		return nil
	})
	for i, err := range failures {
		if err != nil {
			logMistake(ctx, links[i].path, err)
			found[i] = checkResult{decision: decision{keep, "it could not be checked"}}
		}
	}
	return found
}

// checkAgain checks one link right before it is removed.
func (h *healing) checkAgain(ctx context.Context, link *stagingLink) checkResult {
	ctx, cancel := context.WithTimeout(ctx, shareLimit)
	defer cancel()
	var state nodeState
	switch link.kind {
	case toVolume:
		state.storage, state.silent = h.storage(ctx)
	case toShare:
		state.mappings, state.noShares = h.mappings(ctx)
	}
	return h.check(ctx, link, state, h.openShare)
}

// openOnce opens shares of a server until it refuses the account, which it may lock after a few.
func (h *healing) openOnce(ctx context.Context, link *stagingLink) error {
	h.mu.Lock()
	first := h.firsts[link.remote.Server()]
	if first == nil {
		first = &known[struct{}]{}
		h.firsts[link.remote.Server()] = first
	}
	h.mu.Unlock()
	isFirst := false
	_, err := first.get(ctx, func() (struct{}, error) {
		isFirst = true
		return struct{}{}, h.openShare(ctx, link)
	})
	if isFirst || winerr.CodeOf(err).RefusesAccount() {
		return err
	}
	return h.openShare(ctx, link)
}

func (h *healing) openShare(ctx context.Context, link *stagingLink) error {
	path := link.remote.Inside()
	if path == "" {
		path = link.remote.Share()
	}
	_, err := h.m.FileInfo(ctx, win.Following(path))
	return err
}

func (h *healing) check(ctx context.Context, link *stagingLink, state nodeState, openShare func(context.Context, *stagingLink) error) checkResult {
	s := linkCheck{target: link.kind}
	var err error
	var holder string
	switch link.kind {
	case toVolume:
		s.status = state.volumeStatus(link.id)
		if holder = cmp.Or(state.storage.NotReady(link.id), state.silent); holder != "" {
			s.ready = notReady
		}
		_, err = h.m.TargetInfo(ctx, link.at)
	case toShare:
		s.status = state.shareStatus(link.leadsTo())
		s.origin = h.originOf(link)
		if h.options.LeaveMapped && s.status != unlisted && (s.status != broken || s.origin == sinceStart) { // then it is kept anyway
			if s.status == listed {
				h.used.add(link.leadsTo())
			}
			return checkResult{decision: decision{verdict: live}}
		}
		err = openShare(ctx, link)
	}
	s.opened = openResultOf(link.kind, err)
	if s.opened == opens || s.status == listed {
		h.used.add(link.leadsTo())
	}
	result := checkResult{decision: decide(s)}
	if err != nil {
		result.cause = reasonOf(err)
	}
	if s.ready == notReady && result.verdict == keep && s.opened == missing && s.status == unlisted {
		result.notReady = holder
	}
	return result
}

func (state nodeState) volumeStatus(id win.VolumeID) listStatus {
	switch {
	case state.storage.Volumes == nil:
		return unknown
	case state.storage.Volumes[id]:
		return listed
	default:
		return unlisted
	}
}

func (state nodeState) shareStatus(share string) listStatus {
	status, mapped := state.mappings[share]
	switch {
	case state.noShares != nil:
		return unknown
	case !mapped:
		return unlisted
	case status == win.SMBOK:
		return listed
	default:
		return broken
	}
}

// mappings lists the global mappings by share.
func (h *healing) mappings(ctx context.Context) (map[string]win.SMBStatus, error) {
	all, err := h.m.SMBMappings(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]win.SMBStatus{}
	for _, mapping := range all {
		if share, ok := unc.ShareOf(mapping.Remote); ok {
			found[share] = mapping.Status
		}
	}
	return found, nil
}

// storage lists the storage, and says what of it does not answer.
func (h *healing) storage(ctx context.Context) (found *lostvolume.Storage, silent string) {
	found = lostvolume.Look(ctx, h.m)
	l := lookup{Node: h.Node}
	var disks []Disk
	var reports []volumeReport
	var system []win.VolumeID
	l.makeAll(ctx,
		list{"disks", func(ctx context.Context) (err error) { disks, err = l.allDisks(ctx); return err }},
		list{listOfVolumes, func(ctx context.Context) (err error) { reports, err = l.allVolumes(ctx); return err }},
		list{"the disk of Windows", func(ctx context.Context) (err error) { system, err = l.m.SystemVolumes(ctx); return err }},
	)
	volumes := l.join(disks, reports, system)
	if failed := l.problems.list(); len(failed) > 0 {
		return found, failed[0].Text
	}
	for _, name := range append(l.disksLeft, l.volumesLeft...) {
		return found, name + " comes or goes"
	}
	for _, d := range disks {
		if d.Number == nil || d.Online == nil || d.Size == nil || d.Style == "" {
			return found, d.name() + " does not answer"
		}
	}
	for _, v := range volumes {
		if text := v.notReady(); text != "" {
			return found, text
		}
	}
	return found, ""
}

// notReady says why a volume could be another one than it seems. Volumes on no disk, such as those of
// CD drives without a disc, say so little that they do not count.
func (v *Volume) notReady() string {
	switch {
	case len(v.Disks) == 0 && len(v.Problems) > 0 && v.State != NotReady:
		return "the volume " + v.ID + " does not answer"
	case len(v.Disks) == 0:
		return ""
	case v.State == NotReady:
		return "the volume " + v.ID + " is not ready"
	case v.State == Unknown:
		return "the volume " + v.ID + " does not answer"
	}
	return ""
}
