package system

import (
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
)

// Option changes what a System does.
type Option func(*System) error

// AllowedServices limits StartService and StopService to services with these short names;
// "*" stands for all. Without this option there is no limit: a program that links the library
// already has the rights it runs with. The daemon of CSI Proxy always sets one.
//
// With it, some services are neither started nor stopped whatever the list says: this
// program itself if it runs as a service, csi-proxy, kubelet, containerd, and what Windows
// and pods cannot do without. A forced stop is refused before it begins if it would stop a
// service that is not allowed. All of these are fs.ErrPermission.
func AllowedServices(names ...string) Option {
	return func(s *System) error {
		list, err := servicelist.New(names)
		if err != nil {
			return winerr.As(winerr.Invalid, opOpen, "", err, "")
		}
		s.allowed = list
		return nil
	}
}

// limit hands the list to the host, which knows the services that depend on others. Hosts that
// drivers write do not take it.
func (s *System) limit() {
	if host, ok := s.host.(systemapi.Extended); ok && s.allowed != nil {
		s.host, s.hostLimits = host.OnlyServices(s.allowed), true
	}
}

// guard checks that a service may be started or stopped. A host that does not take the list must
// not force a stop: we could not check what else it stops.
func (s *System) guard(op, name string, force bool) error {
	if err := s.allowed.Guard(op, name); err != nil {
		return err
	}
	if force && s.allowed != nil && !s.hostLimits {
		return winerr.New(winerr.Denied, op, name, "this host cannot tell which other services a forced stop would stop; stop them one by one")
	}
	return nil
}
