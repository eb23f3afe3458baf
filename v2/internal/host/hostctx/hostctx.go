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

// Binder is a host of type H whose calls can be bound to a context.
type Binder[H any] interface {
	// WithContext returns the same host, its calls bounded by ctx.
	WithContext(ctx context.Context) H
}

// Do is a method of a group: run gets the host bound to ctx, and fills in the response. After an error there is none.
func Do[H, R, A any](ctx context.Context, op string, host H, request *R, run func(host H, out *A) error) (*A, error) {
	out, err := Fill(ctx, op, host, request, run)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Fill is Do with an empty response after an error, for groups whose callers have always got one.
func Fill[H, R, A any](ctx context.Context, op string, host H, request *R, run func(host H, out *A) error) (*A, error) {
	host, err := Begin(ctx, op, host, request)
	out := new(A)
	if err == nil {
		err = run(host, out)
	}
	if err != nil {
		return new(A), err
	}
	return out, nil
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

// Extended returns a host as one that can do what was added to its HostAPI, which hosts that drivers write need not do.
func Extended[X any](host any, op, object string) (X, error) {
	x, ok := host.(X)
	if !ok {
		return x, winerr.New(winerr.Unsupported, op, object, "a host of type %T cannot do it; use one of package hostapi or winsim", host)
	}
	return x, nil
}
