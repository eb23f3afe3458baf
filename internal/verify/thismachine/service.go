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

// removeService stops a service that was made for a question, and deletes it. It may be gone.
func removeService(ctx context.Context, m win.Machine, name string) error {
	_ = proceed(name) // one that waits cannot be stopped; others do not listen
	patience := win.Backoff{First: 20 * time.Millisecond, Longest: 200 * time.Millisecond, Limit: 30 * time.Second}
	var refused error
	stopped, err := win.Poll(ctx, m, patience, func(time.Duration) (bool, error) {
		refused = m.StopService(ctx, name)
		code := winerr.CodeOf(refused)
		return code == winerr.ServiceNotActive || code == winerr.ServiceDoesNotExist, nil
	})
	switch {
	case err != nil:
		return err
	case !stopped:
		return errors.Join(errors.New("it does not stop"), refused)
	case winerr.CodeOf(refused) == winerr.ServiceDoesNotExist:
		return nil
	}
	return deleteService(name)
}
