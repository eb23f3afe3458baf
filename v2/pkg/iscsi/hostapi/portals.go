package api

import (
	"context"
	"errors"
	"slices"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	opAddPortal    = "add target portal"
	opDiscover     = "discover target portal"
	opListPortals  = "list target portals"
	opRemovePortal = "remove target portal"
)

func (b boundHost) AddTargetPortal(portal *TargetPortal) error {
	ctx, h := b.ctx, b.host
	at, err := parsePortal(opAddPortal, portal)
	if err != nil {
		return err
	}
	return h.change(ctx, change{op: opAddPortal, object: portalObject(at)}, at.String(), func(ctx context.Context) error {
		return h.addPortal(ctx, at)
	})
}

// addPortal registers a portal. Windows keeps it, and asks it for its targets. A registered portal
// is asked again: drivers with one target per volume call only this before they connect. If it
// does not answer, the call succeeds: the target may have a session already, and ConnectTarget
// fails otherwise.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-addiscsisendtargetportalw
func (h *host) addPortal(ctx context.Context, portal win.TargetPortal) error {
	registered, err := h.m.ReportSendTargetPortals(ctx)
	if err != nil {
		return failed(opAddPortal, portal.String(), err)
	}
	if slices.ContainsFunc(registered, func(p win.SendTargetPortal) bool { return p.Portal.Same(portal) }) {
		return h.refreshKnown(ctx, portal)
	}
	if err := h.m.AddSendTargetPortal(ctx, portal); err != nil && !errors.Is(err, winerr.Exists) {
		return failed(opAddPortal, portal.String(), err)
	}
	return nil
}

func (h *host) refreshKnown(ctx context.Context, portal win.TargetPortal) error {
	err := h.m.RefreshSendTargetPortal(ctx, portal)
	switch {
	case err == nil:
		return nil
	case winerr.CodeOf(err) == 0: // the caller has left
		return failed(opAddPortal, portal.String(), err)
	}
	klog.FromContext(ctx).Info("Could not ask a registered portal for its targets", "portal", portal, "error", err)
	return nil
}

func (b boundHost) ListTargetPortals() ([]TargetPortal, error) {
	ctx, h := b.ctx, b.host
	registered, err := h.m.ReportSendTargetPortals(ctx)
	if err != nil {
		return nil, failed(opListPortals, "", err)
	}
	var portals []TargetPortal
	for _, p := range registered {
		// One portal may be registered with several initiators.
		portal := TargetPortal{Address: p.Portal.Address, Port: uint32(p.Portal.Port)}
		if !slices.Contains(portals, portal) {
			portals = append(portals, portal)
		}
	}
	return portals, nil
}

func (b boundHost) RemoveTargetPortal(portal *TargetPortal) error {
	ctx, h := b.ctx, b.host
	at, err := parsePortal(opRemovePortal, portal)
	if err != nil {
		return err
	}
	return h.change(ctx, change{op: opRemovePortal, object: portalObject(at)}, at.String(), func(ctx context.Context) error {
		return h.removePortal(ctx, at)
	})
}

// removePortal removes all registrations of a portal. Windows finds one only by the values it has
// reported.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-removeiscsisendtargetportalw
func (h *host) removePortal(ctx context.Context, portal win.TargetPortal) error {
	registered, err := h.m.ReportSendTargetPortals(ctx)
	if err != nil {
		return failed(opRemovePortal, portal.String(), err)
	}
	for _, p := range registered {
		if !p.Portal.Same(portal) {
			continue
		}
		if err := h.m.RemoveSendTargetPortal(ctx, p); err != nil && !errors.Is(err, winerr.NotFound) {
			return failed(opRemovePortal, portal.String(), err)
		}
	}
	return nil
}

func (b boundHost) DiscoverTargetPortal(portal *TargetPortal) ([]string, error) {
	ctx, h := b.ctx, b.host
	at, err := parsePortal(opDiscover, portal)
	if err != nil {
		return nil, err
	}
	ask := change{op: opDiscover, object: portalObject(at), fresh: true}
	err = h.change(ctx, ask, at.String(), func(ctx context.Context) error {
		switch err := h.m.RefreshSendTargetPortal(ctx, at); {
		case errors.Is(err, winerr.NotFound):
			return winerr.As(winerr.NotFound, opDiscover, at.String(), err, "register it with AddTargetPortal first")
		case err != nil:
			return failed(opDiscover, at.String(), err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return h.targetsOf(ctx, at)
}

// targetsOf returns the targets that a portal offers. Windows keeps one list for all portals.
func (h *host) targetsOf(ctx context.Context, portal win.TargetPortal) ([]string, error) {
	all, err := h.m.ReportTargets(ctx)
	if err != nil {
		return nil, failed(opDiscover, portal.String(), err)
	}
	var offered []string
	for _, target := range all {
		if slices.ContainsFunc(offered, func(other string) bool { return win.SameTarget(other, target) }) {
			continue
		}
		switch ok, err := h.offers(ctx, portal, target); {
		case err != nil:
			return nil, failed(opDiscover, portal.String(), err)
		case ok:
			offered = append(offered, target)
		}
	}
	return offered, nil
}

// offers reports whether a target was discovered at a portal. A portal known by name reports its
// targets' addresses as numbers: then only the port can be compared.
func (h *host) offers(ctx context.Context, portal win.TargetPortal, target string) (bool, error) {
	portals, err := h.m.ReportTargetPortals(ctx, target)
	if errors.Is(err, winerr.NotFound) { // it has just gone
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(portals, func(p win.TargetPortal) bool {
		return p.Same(portal) || (!portal.IsIP() && p.IsIP() && p.Port == portal.Port)
	}), nil
}
