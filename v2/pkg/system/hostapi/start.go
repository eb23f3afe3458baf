package api

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const opStart = "start service"

// StartService starts a service and waits until it runs. The service manager starts what it
// depends on.
func (b boundHost) StartService(name string) error {
	ctx, h := b.ctx, b.host
	return h.change(ctx, opStart, name, func() error { return h.start(ctx, name) })
}

// start asks for a start at most once: a service that ends by itself, after our start or an earlier
// one, would most likely end again.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-startservicew
func (h host) start(ctx context.Context, name string) error {
	for w, asked := h.newWaitBudget(ctx), false; ; {
		status, err := h.m.ServiceStatus(ctx, name)
		if err != nil {
			return failed(opStart, name, err)
		}
		switch status.State {
		case win.ServiceRunning:
			return nil
		case win.ServicePaused:
			return winerr.New(winerr.InUse, opStart, name, "it is paused; resume it first")
		case win.ServiceStopped:
			if asked {
				return ended(opStart, name, status)
			}
			asked = true
			if err := h.m.StartService(ctx, name); err != nil && winerr.CodeOf(err) != winerr.ServiceAlreadyRunning {
				return failed(opStart, name, err)
			}
			continue // some run at once
		case win.ServiceStartPending:
			asked = true
		default: // it is on its way to another state, and can be started then
		}
		if err := w.pause(ctx, status); err != nil {
			return winerr.Wrap(opStart, name, err)
		}
	}
}
