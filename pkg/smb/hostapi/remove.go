package api

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// RemoveSMBGlobalMapping keeps a mapping that somebody still needs, which is a success: drivers
// ask for each volume, and all volumes of a share have one mapping. ADR 0013 has the reasons.
func (h host) RemoveSMBGlobalMapping(remotePath string) error {
	remote, err := unc.Parse(opUnmap, remotePath)
	if err != nil {
		return err
	}
	share := remote.Share()
	return h.change(change{op: opUnmap, server: remote.Server(), remote: share}, func(ctx context.Context) error {
		defer h.tidy(ctx, remote)
		if err := h.learnLinks(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			h.state.links.unwanted(remote)
			klog.FromContext(ctx).Info("The mapping of a share is kept, because links that use it may not be known", "share", share, "reason", err)
			return nil
		}
		if _, ours := h.state.mappings.of(share); !ours && h.limits == nil {
			return h.leave(ctx, share)
		}
		if path, found := h.firstLive(ctx, share, ""); found {
			h.state.links.unwanted(remote)
			klog.FromContext(ctx).V(2).Info("The mapping of a share is kept, because a link uses it", "share", share, "link", path)
			return nil
		}
		h.state.links.wanted(remote)
		return winerr.Wrap(opUnmap, share, h.drop(ctx, share))
	})
}

// leave does not remove a mapping that another process has made: without working directories
// nobody knows what uses it.
func (h host) leave(ctx context.Context, share string) error {
	switch _, err := h.m.SMBMapping(ctx, share); {
	case notMapped(err):
		return nil
	case err != nil:
		return winerr.Wrap(opUnmap, share, err)
	}
	klog.FromContext(ctx).Info("The mapping of a share is kept, because this process has not made it, and without working directories nobody knows what uses it", "share", share)
	return nil
}

const (
	// tidyMost is how many shares a call looks at besides its own.
	tidyMost = 4
	// tidyTime bounds that: nobody has asked for it now.
	tidyTime = 5 * time.Second
)

// tidy makes up for removals that had to be put off: some drivers ask for the removal first,
// and remove their link afterwards, of which nobody tells us. The next call about the same
// server, whose turn it is anyway, does what is left. It never fails.
func (h host) tidy(ctx context.Context, remote unc.Path) {
	ctx, cancel := context.WithTimeout(ctx, tidyTime)
	defer cancel()
	shares := h.state.links.unwantedOf(remote.Server(), remote.Share(), tidyMost)
	if len(shares) == 0 || h.learnLinks(ctx) != nil {
		return
	}
	for _, share := range shares {
		if _, found := h.firstLive(ctx, share, ""); found || ctx.Err() != nil {
			continue
		}
		other, err := unc.Parse(opUnmap, share)
		if err == nil {
			err = h.drop(ctx, share)
		}
		if err != nil {
			klog.FromContext(ctx).Info("The mapping of a share that nobody uses could not be removed", "share", share, "error", err)
			continue
		}
		h.state.links.wanted(other)
		klog.FromContext(ctx).V(2).Info("The mapping of a share is removed, which no link uses any more", "share", share)
	}
}
