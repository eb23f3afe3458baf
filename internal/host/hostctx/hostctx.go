// Package hostctx carries the caller's context across the published HostAPI
// interfaces, whose methods have no context parameter.
//
// Our own hosts are Binders. Hosts that drivers write, such as fakes in their tests, need
// not be.
package hostctx

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Binder is a host of type H whose calls can be bound to a context. Each hostapi package names
// it for its own HostAPI: ContextBinder.
type Binder[H any] interface {
	// WithContext returns the same host, its calls bounded by ctx.
	WithContext(ctx context.Context) H
}

// Begin is how every method of a group starts. It returns host bound to ctx, or host
// itself if it cannot be bound. It refuses a missing request, and fails if ctx has already
// ended, so that no work begins for a caller that has left; op names that work in the error.
func Begin[H, R any](ctx context.Context, op string, host H, request *R) (H, error) {
	if request == nil {
		return host, winerr.New(winerr.Invalid, op, "", "the request is missing")
	}
	if err := ctx.Err(); err != nil {
		return host, winerr.Wrap(op, "", err)
	}
	if binder, ok := any(host).(Binder[H]); ok {
		return binder.WithContext(ctx), nil
	}
	return host, nil
}
