package api

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// unmap succeeds without removing a mapping that a link, other than one at the path except, still uses: drivers
// ask for each volume, and all volumes of a share have one mapping. ADR 0013 has the reasons.
func (h host) unmap(ctx context.Context, remotePath, except string) error {
	remote, err := unc.Parse(opUnmap, remotePath)
	if err != nil {
		return err
	}
	share := remote.Share()
	if h.nothingToUnmap(ctx, remote) {
		return ctx.Err()
	}
	return h.change(ctx, change{op: opUnmap, server: remote.Server(), remote: share, local: except}, func(ctx context.Context) error {
		defer h.removePostponed(ctx, remote)
		if err := h.learnLinks(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if _, ours := h.state.mappings.of(share); !ours {
				if _, err := h.m.SMBMapping(ctx, share); notMapped(err) { // or removals of nothing would pile up
					return nil
				}
			}
			h.state.links.postponeRemoval(remote)
			h.tryLater(ctx, remote)
			if last, _ := h.state.scans.last(h.limits.String()); except != "" && last.passes(h.m.Elapsed()) { // its caller repeats the call
				return winerr.As(winerr.Unavailable, opUnmap, share, err, "it is not known which links use it; try again")
			}
			klog.FromContext(ctx).Info("Kept the mapping of a share, because unknown links may use it", "share", share, "reason", err)
			return nil
		}
		if _, ours := h.state.mappings.of(share); !ours && h.limits == nil {
			return h.leave(ctx, share)
		}
		// First, so that the end of a link that is seen below cannot be missed.
		if h.state.links.postponeIfLinked(remote) {
			path, found, err := h.firstLive(ctx, share, except)
			if err != nil { // perhaps the link has just gone, and no call asks again
				h.tryLater(ctx, remote)
			}
			if found {
				klog.FromContext(ctx).V(2).Info("Kept the mapping of a share, because a link uses it", "share", share, "link", path)
				return nil
			}
		}
		h.state.links.cancelRemoval(remote)
		return winerr.Wrap(opUnmap, share, h.drop(ctx, share))
	})
}

// nothingToUnmap reports whether a share is certainly not mapped, and nothing else about its server
// waits to be done. Drivers repeat removals, and most find nothing: those need no turn in the queue.
func (h host) nothingToUnmap(ctx context.Context, remote unc.Path) bool {
	_, ours := h.state.mappings.of(remote.Share())
	if ours || h.limits == nil || h.state.links.isPostponedOn(remote.Server()) || !h.state.changes.Idle(remote.Server()) {
		return false
	}
	_, err := h.m.SMBMapping(ctx, remote.Share())
	return notMapped(err)
}

// leave keeps a mapping that another process has created: without working directories there is
// no way to know what uses it.
func (h host) leave(ctx context.Context, share string) error {
	switch _, err := h.m.SMBMapping(ctx, share); {
	case notMapped(err):
		return nil
	case err != nil:
		return winerr.Wrap(opUnmap, share, err)
	}
	klog.FromContext(ctx).Info("Kept the mapping of a share, because another process created it; set working directories to find what uses it", "share", share)
	return nil
}

// Limits of removals whose caller asked for something else.
const (
	postponedMost = 4 // shares
	postponedTime = 5 * time.Second
)

// removePostponed carries out removals that links had prevented, for drivers that remove their
// links without this process. The next call about the same server, whose turn it is, does the
// rest. It never fails.
func (h host) removePostponed(ctx context.Context, remote unc.Path) {
	shares := h.state.links.postponedOn(remote.Server(), remote.Share(), postponedMost)
	if len(shares) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, postponedTime)
	defer cancel()
	for _, share := range shares {
		h.removeUnused(ctx, share)
	}
}

// linksGone carries out the removals that waited for links at or below a path. csi-driver-smb
// asks for the removal first and removes its link afterwards. It never fails; after
// postponedTime it leaves a removal that has begun to itself, and others to a later attempt.
func (h host) linksGone(ctx context.Context, path string) {
	shares := h.state.links.postponedBelow(path)
	tasks.Each(ctx, len(shares), postponedTime, func(ctx context.Context, i int) error {
		remote, err := unc.Parse(opUnmap, shares[i])
		if err == nil {
			h.tryUnused(ctx, remote)
		}
		return err
	})
}

// tryUnused is removeUnused in the turn of the server.
func (h host) tryUnused(ctx context.Context, remote unc.Path) {
	share := remote.Share()
	err := h.change(ctx, change{op: opUnused, server: remote.Server(), remote: share}, func(ctx context.Context) error {
		h.removeUnused(ctx, share)
		return nil
	})
	if err != nil {
		klog.FromContext(ctx).Info("Postponed the removal of the unused mapping of a share again", "share", share, "error", err)
		h.tryLater(ctx, remote)
	}
}

// retryPause is from one attempt to remove what could not be removed to the next. Its callers do not ask again.
const retryPause = time.Minute

// tryLater tries a removal again that has failed, with the working directories of the host that it was asked of. It does not
// wait for it. What only waits for a link is not tried.
func (h host) tryLater(ctx context.Context, remote unc.Path) {
	if _, waits := h.state.trying.LoadOrStore(remote.Share(), true); waits {
		return
	}
	ctx = context.WithoutCancel(ctx)
	time.AfterFunc(retryPause, func() {
		h.state.trying.Delete(remote.Share())
		if h.state.links.isPostponed(remote) {
			ctx, cancel := context.WithTimeout(ctx, retryPause)
			defer cancel()
			h.tryUnused(ctx, remote)
		}
	})
}

// removeUnused removes a mapping whose removal is postponed, if no link uses it. It never fails.
func (h host) removeUnused(ctx context.Context, share string) {
	remote, err := unc.Parse(opUnmap, share)
	if err != nil || !h.state.links.isPostponed(remote) {
		return
	}
	if h.learnLinks(ctx) != nil {
		h.tryLater(ctx, remote)
		return
	}
	h.dropUnlinked(ctx, remote)
}

// dropUnlinked removes a mapping whose removal is postponed, if no known link uses it. It never fails.
func (h host) dropUnlinked(ctx context.Context, remote unc.Path) {
	share := remote.Share()
	_, found, err := h.firstLive(ctx, share, "")
	if err != nil || ctx.Err() != nil {
		h.tryLater(ctx, remote)
		return
	}
	if found {
		return
	}
	if _, ours := h.state.mappings.of(share); !ours && h.limits == nil { // another process has made it again
		h.state.links.cancelRemoval(remote)
		return
	}
	if err := h.drop(ctx, share); err != nil {
		klog.FromContext(ctx).Info("Could not remove the unused mapping of a share", "share", share, "error", err)
		h.tryLater(ctx, remote)
		return
	}
	h.state.links.cancelRemoval(remote)
	klog.FromContext(ctx).V(2).Info("Removed the mapping of a share, which no link uses any more", "share", share)
}
