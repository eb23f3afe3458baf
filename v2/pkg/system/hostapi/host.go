package api

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// host is a machine with services. Hosts of the same machine share the locks of its services.
type host struct {
	m        win.Machine
	services *tasks.Locks[string] // by folded name
	list     *servicelist.List    // nil if every service may be started and stopped
}

// change starts or stops a service while no other caller does. Unlike changes of disks it ends
// with its caller: the service manager goes on by itself, and the next caller finds the service
// in the state it has reached.
func (h host) change(ctx context.Context, op, name string, do func() error) error {
	if err := h.list.Guard(op, name); err != nil {
		return err
	}
	unlock, err := h.services.Lock(ctx, winpath.Fold(name))
	if err != nil {
		return winerr.Wrap(op, name, err)
	}
	defer unlock()
	return do()
}
