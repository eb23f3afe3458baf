package api

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/work/keylock"
)

// host implements HostAPI over the seam.
type host struct {
	m      win.Machine
	shared *shared
	list   *servicelist.List // nil if every service may be started and stopped
	ctx    context.Context   //nolint:containedctx // HostAPI's published methods take none, see WithContext
}

// shared is what all hosts of a machine must have in common. The zero value is ready.
type shared struct {
	services keylock.Locks[string] // by folded name
}

// WithContext returns the same host, its calls bounded by ctx.
func (h host) WithContext(ctx context.Context) HostAPI {
	h.ctx = ctx
	return h
}

// OnlyServices returns the same host, which starts and stops only services that the list
// allows. It holds also for those that a forced stop would stop.
func (h host) OnlyServices(list *servicelist.List) HostAPI {
	h.list = list
	return h
}

// change starts or stops a service while nobody else does so. Unlike changes of disks it
// ends with its caller: what the service manager was asked to do goes on by itself, and
// whoever comes next finds the service in the state it has reached.
func (h host) change(op, name string, do func(ctx context.Context) error) error {
	if err := h.list.Guard(op, name); err != nil {
		return err
	}
	unlock, err := h.shared.services.Lock(h.ctx, winpath.Fold(name))
	if err != nil {
		return winerr.Wrap(op, name, err)
	}
	defer unlock()
	return do(h.ctx)
}
