package api

import (
	"context"
	"errors"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// links are the links to shares that we know of: those we made, and those a scan found. Each
// is looked at again before it counts, since nobody tells us when one is removed. The zero
// value is ready.
type links struct {
	mu      sync.Mutex
	byShare map[string]map[string]link // by share, then by folded path
	roomy   map[string]int             // up to how many links of a share are kept unseen
	putOff  map[string]map[string]bool // removals that links have prevented: by server, shares
}

// link is where a link stood, and who could reach it.
type link struct {
	path   string
	limits *policy.Policy
}

// fewLinks is how many links of a share are remembered without a look at whether they still
// exist. Some drivers never ask for the removal of a mapping, which is when they are forgotten.
const fewLinks = 256

// add remembers a link, and reports whether there are so many that it is time to look which
// of them are still there. That is whenever their number has doubled since the last look.
func (l *links) add(share string, added link) (crowded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byShare == nil {
		l.byShare, l.roomy = map[string]map[string]link{}, map[string]int{}
	}
	if l.byShare[share] == nil {
		l.byShare[share] = map[string]link{}
	}
	l.byShare[share][winpath.Fold(added.path)] = added
	return len(l.byShare[share]) > max(fewLinks, l.roomy[share])
}

// tidied notes that all links of a share were looked at.
func (l *links) tidied(share string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.byShare[share]); n > 0 {
		l.roomy[share] = 2 * n
	}
}

func (l *links) forget(share string, gone link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byShare[share], winpath.Fold(gone.path))
	if len(l.byShare[share]) == 0 {
		delete(l.byShare, share)
		delete(l.roomy, share)
	}
}

// of returns the links of a share.
func (l *links) of(share string) []link {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]link, 0, len(l.byShare[share]))
	for _, link := range l.byShare[share] {
		all = append(all, link)
	}
	return all
}

// unwanted notes that a mapping should go when the last link to its share has gone.
func (l *links) unwanted(remote unc.Path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.putOff == nil {
		l.putOff = map[string]map[string]bool{}
	}
	if l.putOff[remote.Server()] == nil {
		l.putOff[remote.Server()] = map[string]bool{}
	}
	l.putOff[remote.Server()][remote.Share()] = true
}

// wanted takes that back.
func (l *links) wanted(remote unc.Path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.putOff[remote.Server()], remote.Share())
	if len(l.putOff[remote.Server()]) == 0 {
		delete(l.putOff, remote.Server())
	}
}

// unwantedOf returns some shares of a server whose mappings should go, without a given one.
func (l *links) unwantedOf(server, except string, most int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var shares []string
	for share := range l.putOff[server] {
		if share != except && len(shares) < most {
			shares = append(shares, share)
		}
	}
	return shares
}

// firstLive returns a link that still leads to a share and is not at a given path, and forgets
// those that do not. Whether it can be followed does not matter. A link that cannot be looked
// at counts.
func (h host) firstLive(ctx context.Context, share, except string) (path string, found bool) {
	for _, known := range h.state.links.of(share) {
		if winpath.Equal(known.path, except) {
			continue
		}
		if h.leadsInto(ctx, known, share) {
			return known.path, true
		}
		h.state.links.forget(share, known)
	}
	return "", false
}

// forgetGone forgets all links of a share that are gone.
func (h host) forgetGone(ctx context.Context, share string) {
	for _, known := range h.state.links.of(share) {
		if !h.leadsInto(ctx, known, share) {
			h.state.links.forget(share, known)
		}
	}
	h.state.links.tidied(share)
}

func (h host) leadsInto(ctx context.Context, known link, share string) bool {
	_, point, err := known.limits.Reach(h.m).Link(ctx, opUnmap, known.path)
	if err != nil {
		return !errors.Is(err, winerr.NotFound) // which "it is not a link" is as well
	}
	target, ok := shareOf(point)
	return ok && target == share
}

// shareOf returns the share that a symbolic link leads to.
func shareOf(point win.ReparsePoint) (share string, ok bool) {
	if point.Tag != win.TagSymlink {
		return "", false
	}
	return unc.ShareOf(point.Target())
}
