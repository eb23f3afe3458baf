package thismachine

import (
	"context"
	"errors"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// ServiceCommand is the first argument of this program as a service for questions; the name of the service is the
// second.
const ServiceCommand = "service"

// removeService stops a service that was made for a question, and deletes it. It may be gone. One that does not stop
// is deleted, too, but Windows removes it only when it ends: then it fails, so that the next run looks again.
func removeService(ctx context.Context, m win.Machine, name string) error {
	_ = proceed(name) // one that waits cannot be stopped; others do not listen
	patience := win.Backoff{First: 20 * time.Millisecond, Longest: 200 * time.Millisecond, Limit: 20 * time.Second}
	asked := false // once: Wine kills a service that is asked twice, and then takes it for stopping for ever
	var refused error
	stopped, err := win.Poll(ctx, m, patience, func(time.Duration) (bool, error) {
		status, err := m.ServiceStatus(ctx, name)
		if winerr.CodeOf(err) == winerr.ServiceDoesNotExist || status.State == win.ServiceStopped {
			return true, nil
		}
		if !asked {
			refused = m.StopService(ctx, name)
			asked = refused == nil
		}
		return false, err
	})
	if err != nil {
		return err
	}
	err = deleteService(name)
	if !stopped {
		err = errors.Join(errors.New("it does not stop, but ends by itself within some minutes"), refused, err)
	}
	return err
}
