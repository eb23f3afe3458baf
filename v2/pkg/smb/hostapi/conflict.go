package api

import (
	"context"
	"slices"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// maxProbed is how many disconnected mappings of a server are examined before all of them
// count as stale. They have one session, so one would do.
const maxProbed = 3

// removeStale deals with a conflict of users (1219) that is not about the share's own mapping.
// After a restart, the mappings of a server block each other until all are removed. If one of
// them works, or can work again, the conflict is real and the failure stays.
func (h host) removeStale(ctx context.Context, r mapRequest, failure error) error {
	mappings, err := h.m.SMBMappings(ctx)
	if err != nil {
		return err
	}
	var connected, others []string
	for _, mapping := range mappings {
		other, err := unc.Parse(opMap, mapping.Remote)
		switch {
		case err != nil || other.Server() != r.server || other.Share() == r.Remote:
		case mapping.Status == win.SMBOK:
			connected = append(connected, other.Share())
		default:
			others = append(others, other.Share())
		}
	}
	if len(connected)+len(others) == 0 {
		return failure
	}
	for _, share := range slices.Concat(connected, others[:min(len(others), maxProbed)]) {
		stale, err := h.stale(ctx, r, share)
		if err != nil {
			return err
		}
		if !stale {
			return failure
		}
	}
	for _, share := range slices.Concat(connected, others) {
		klog.FromContext(ctx).V(2).Info("Removing the stale mapping of another share of the server", "share", r.Remote, "other", share)
		if err := h.drop(ctx, share); err != nil {
			return err
		}
	}
	return h.m.CreateSMBMapping(ctx, r.SMBMappingRequest)
}

// stale reports whether the mapping of another share cannot work again. A mapping without
// encryption or for another user works: the request is not about it.
func (h host) stale(ctx context.Context, r mapRequest, share string) (bool, error) {
	seen, err := h.examine(ctx, share, "", needs{})
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil, seen.state == stateConnected && seen.cause == causeDenied:
		return false, nil //nolint:nilerr // what cannot be judged may be in use
	}
	switch decided, _ := h.judge(ctx, r, share, seen); decided.action {
	case actionCreate, actionRecreate:
		return true, nil
	case actionAsk:
		// The answer about a mapping whose credentials Windows has does not depend on the
		// account that asks.
		request := r.SMBMappingRequest
		request.Remote = share
		return winerr.CodeOf(h.m.CreateSMBMapping(ctx, request)) == winerr.CredentialConflict, nil
	case actionUse, actionFail:
	}
	return false, nil
}
