package api

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// links are the known links to shares: those this process made, and those a scan found. Each
// is read again before it counts, since other processes remove links. The zero value is ready.
type links struct {
	mu         sync.Mutex
	byShare    map[string]map[string]link // by share, then by folded path
	checkAbove map[string]int             // how many links of a share are kept without a check
	postponed  map[string]map[string]bool // removals that links have prevented: by server, shares
}

// link is where a link was, and the limits under which it can be reached.
type link struct {
	path   string
	limits *policy.Policy
}

// uncheckedLinks is how many links of a share are remembered without a check that they still
// exist. A removal of the mapping checks them, but some drivers never ask for one.
const uncheckedLinks = 256

// add remembers a link, and reports whether it is time to check which links still exist: their
// number has doubled since the last check.
func (l *links) add(share string, added link) (crowded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byShare == nil {
		l.byShare, l.checkAbove = map[string]map[string]link{}, map[string]int{}
	}
	if l.byShare[share] == nil {
		l.byShare[share] = map[string]link{}
	}
	l.byShare[share][winpath.Fold(added.path)] = added
	return len(l.byShare[share]) > max(uncheckedLinks, l.checkAbove[share])
}

func (l *links) checked(share string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.byShare[share]); n > 0 {
		l.checkAbove[share] = 2 * n
	}
}

func (l *links) forget(share string, gone link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byShare[share], winpath.Fold(gone.path))
	if len(l.byShare[share]) == 0 {
		delete(l.byShare, share)
		delete(l.checkAbove, share)
	}
}

// of returns the links of a share, sorted by path.
func (l *links) of(share string) []link {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]link, 0, len(l.byShare[share]))
	for _, link := range l.byShare[share] {
		all = append(all, link)
	}
	slices.SortFunc(all, func(a, b link) int { return cmp.Compare(a.path, b.path) })
	return all
}

// postponeIfLinked is postponeRemoval, unless no link to the share is known.
func (l *links) postponeIfLinked(remote unc.Path) (linked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.byShare[remote.Share()]) == 0 {
		return false
	}
	l.postpone(remote)
	return true
}

// postponeRemoval notes that a mapping should go when no link to its share is left.
func (l *links) postponeRemoval(remote unc.Path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.postpone(remote)
}

// postpone is postponeRemoval with l.mu held.
func (l *links) postpone(remote unc.Path) {
	if l.postponed == nil {
		l.postponed = map[string]map[string]bool{}
	}
	if l.postponed[remote.Server()] == nil {
		l.postponed[remote.Server()] = map[string]bool{}
	}
	l.postponed[remote.Server()][remote.Share()] = true
}

// cancelRemoval takes that back.
func (l *links) cancelRemoval(remote unc.Path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.postponed[remote.Server()], remote.Share())
	if len(l.postponed[remote.Server()]) == 0 {
		delete(l.postponed, remote.Server())
	}
}

// postponedOn returns some shares of a server whose mappings should go, without a given one.
func (l *links) postponedOn(server, except string, most int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var shares []string
	for share := range l.postponed[server] {
		if share != except && len(shares) < most {
			shares = append(shares, share)
		}
	}
	return shares
}

// isPostponed reports whether a mapping should go when no link to its share is left.
func (l *links) isPostponed(remote unc.Path) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.postponed[remote.Server()][remote.Share()]
}

// isPostponedOn reports whether a mapping of a server should go.
func (l *links) isPostponedOn(server string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.postponed[server]) > 0
}

// postponedBelow returns, in order, the shares whose mappings should go and that had a link at
// or below a path.
func (l *links) postponedBelow(path string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var shares []string
	for _, waiting := range l.postponed {
		for share := range waiting {
			for _, known := range l.byShare[share] {
				if winpath.Contains(path, known.path) {
					shares = append(shares, share)
					break
				}
			}
		}
	}
	slices.Sort(shares)
	return shares
}

// firstLive returns a link that still leads to a share and is not at a given path, and forgets
// those that do not. It need not be possible to follow the link. A link that cannot be read
// counts; err says why.
func (h host) firstLive(ctx context.Context, share, except string) (path string, found bool, err error) {
	for _, known := range h.state.links.of(share) {
		if winpath.Equal(known.path, except) {
			continue
		}
		if leads, err := h.leadsInto(ctx, known, share); leads {
			return known.path, true, err
		}
		h.state.links.forget(share, known)
	}
	return "", false, nil
}

// forgetGone forgets the links of a share that do not exist any more.
func (h host) forgetGone(ctx context.Context, share string) {
	for _, known := range h.state.links.of(share) {
		if leads, _ := h.leadsInto(ctx, known, share); !leads {
			h.state.links.forget(share, known)
		}
	}
	h.state.links.checked(share)
}

// leadsInto is true with an error for a link that cannot be read.
func (h host) leadsInto(ctx context.Context, known link, share string) (bool, error) {
	_, point, err := known.limits.Reach(h.m).Link(ctx, opUnmap, known.path)
	if errors.Is(err, winerr.NotFound) { // a path that is not a link is NotFound, too
		return false, nil
	}
	if err != nil {
		return true, err
	}
	target, ok := shareOf(point)
	return ok && target == share, nil
}

func shareOf(point win.ReparsePoint) (share string, ok bool) {
	if point.Tag != win.TagSymlink {
		return "", false
	}
	return unc.ShareOf(point.Target())
}
