package api

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

const opStop = "stop service"

// StopService stops a service and waits until it has stopped, with force also those that depend
// on it.
func (b boundHost) StopService(name string, force bool) error {
	ctx, h := b.ctx, b.host
	return h.change(ctx, opStop, name, func() error { return h.stop(ctx, name, force) })
}

// stop stops a service. It asks for dependent services only when Windows refuses because of them.
// They may start again while others are being stopped, so it tries up to three times.
// https://learn.microsoft.com/windows/win32/services/stopping-a-service
func (h host) stop(ctx context.Context, name string, force bool) error {
	const rounds = 3
	w := h.newWaitBudget(ctx)
	for round := 1; ; round++ {
		err := h.stopOne(ctx, w, name)
		if winerr.CodeOf(err) != winerr.DependentServicesRunning {
			return failed(opStop, name, err)
		}
		dependents, listErr := h.m.ActiveDependents(ctx, name)
		switch list := strings.Join(dependents, ", "); {
		case listErr != nil:
			return failed(opStop, name, listErr)
		case len(dependents) > 0 && !force:
			return winerr.As(winerr.InUse, opStop, name, fmt.Errorf("%w: %s", err, list), "stop them first, or set force")
		case round > rounds:
			return winerr.As(winerr.Busy, opStop, name, fmt.Errorf("%w repeatedly: %s", err, list), "find out what starts them")
		}
		if err := h.mayStop(ctx, name, dependents); err != nil {
			return err
		}
		if err := h.stopDependents(ctx, w, name, dependents); err != nil {
			return err
		}
	}
}

// mayStop checks all services that a forced stop would stop, before it stops the first.
func (h host) mayStop(ctx context.Context, name string, dependents []string) error {
	if h.list == nil {
		return nil
	}
	for _, dependent := range dependents {
		refusal := h.list.Refusal(dependent)
		if refusal == "" {
			status, err := h.m.ServiceStatus(ctx, dependent)
			switch {
			case err != nil && winerr.CodeOf(err) != winerr.ServiceDoesNotExist:
				return failed(opStop, name, fmt.Errorf("look at %s, which depends on it: %w", dependent, err))
			case err == nil && status.OwnProcess:
				refusal = itself
			}
		}
		if refusal != "" {
			return winerr.New(winerr.Denied, opStop, name, "%s, which depends on it, would also be stopped: %s", dependent, refusal)
		}
	}
	return nil
}

const itself = "this is csi-proxy itself"

// stopDependents stops services in the order in which Windows lists them: those without dependents
// come first. If one cannot be stopped because its dependents have started again, the rest waits
// for the next round.
//
// Each is locked while it is being stopped. This cannot deadlock: locks are taken only in the
// direction of dependents.
func (h host) stopDependents(ctx context.Context, w *waitBudget, name string, dependents []string) error {
	for _, dependent := range dependents {
		unlock, err := h.services.Lock(ctx, winpath.Fold(dependent))
		if err != nil {
			return winerr.Wrap(opStop, name, err)
		}
		err = h.stopOne(ctx, w, dependent)
		unlock()
		switch winerr.CodeOf(err) {
		case winerr.DependentServicesRunning:
			return nil
		case winerr.ServiceDoesNotExist: // uninstalled meanwhile
		default:
			if err != nil {
				return failed(opStop, name, fmt.Errorf("%s, which depends on it: %w", dependent, err))
			}
		}
	}
	return nil
}

// stopOne asks a service to stop, and waits until it has. Its errors are not wrapped yet.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-controlservice
func (h host) stopOne(ctx context.Context, w *waitBudget, name string) error {
	for asked := false; ; {
		status, err := h.m.ServiceStatus(ctx, name)
		switch {
		case err != nil:
			return err
		case status.State == win.ServiceStopped:
			return nil
		case h.list != nil && status.OwnProcess:
			return fmt.Errorf("%w: %s", winerr.Denied, itself)
		case status.State != win.ServiceStopPending && !asked:
			switch err := h.m.StopService(ctx, name); {
			case err == nil:
				asked = true
				continue // some have stopped at once
			case winerr.CodeOf(err) == winerr.ServiceNotActive:
				return nil
			case !isPending(err, status.State):
				return err
			}
		}
		if err := w.pause(ctx, status); err != nil {
			return err
		}
	}
}

// isPending reports whether a stop can succeed later, because the service starts or stops. One that starts, and
// accepts no request yet, refuses it with the code of one that never accepts a stop.
func isPending(err error, state win.ServiceState) bool {
	code := winerr.CodeOf(err)
	return code == winerr.ServiceCannotAcceptCtrl || (code == winerr.InvalidServiceControl && state == win.ServiceStartPending)
}
