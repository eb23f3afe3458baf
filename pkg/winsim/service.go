package winsim

import (
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// service is a service and its state. n.mu guards it.
type service struct {
	Service // as described
	state   ServiceState
	needs   []*service

	launched       bool   // its process has started
	exit, specific uint32 // of the last stop
	changes        int    // of its state; a transition planned before the last one is void
}

// service returns a service by name, or ERROR_SERVICE_DOES_NOT_EXIST (1060). n.mu is held.
func (n *Node) service(name string) (*service, error) {
	if s := n.services.byName[winpath.Fold(name)]; s != nil {
		return s, nil
	}
	return nil, winerr.ServiceDoesNotExist
}

// active reports whether the service manager counts the service as active.
func (s *service) active() bool { return s.state != ServiceStopped }

// enterState changes the state of a service and launches services that wait for it.
func (n *Node) enterState(s *service, state ServiceState) {
	n.changed()
	s.state, s.launched = state, false
	s.changes++
	for _, other := range n.services.all {
		if other.state == ServiceStartPending && !other.launched && other.dependsOn(s) {
			n.launch(other)
		}
	}
}

func (s *service) dependsOn(other *service) bool { return slices.Contains(s.needs, other) }

// endPending ends the pending state of a service after a delay, unless its state changes first.
func (n *Node) endPending(s *service, after time.Duration) {
	n.after(after, pendingEnd{n, s, s.changes})
}

// pendingEnd ends the pending state of a service.
type pendingEnd struct {
	n       *Node
	service *service
	changes int // of its state at the time of planning
}

func (p pendingEnd) run() {
	n, s := p.n, p.service
	switch {
	case s.changes != p.changes:
	case s.state == ServiceStopPending:
		n.stopService(s, 0, 0)
	case s.ExitCode != 0:
		n.stopService(s, s.ExitCode, s.SpecificExitCode)
	default:
		n.enterState(s, ServiceRunning)
	}
}

// beginStart starts a service as the service manager does: its dependencies first.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-startservicew
func (n *Node) beginStart(s *service) error {
	switch {
	case s.active():
		return winerr.ServiceAlreadyRunning
	case s.StartType == StartDisabled:
		return winerr.ServiceDisabled
	}
	for _, needed := range s.needs {
		if needed.state == ServiceStopPending || (!needed.active() && n.beginStart(needed) != nil) {
			return winerr.ServiceDependencyFail
		}
	}
	if s.StartCode != 0 {
		return winerr.Code(s.StartCode)
	}
	s.exit, s.specific = 0, 0
	n.enterState(s, ServiceStartPending)
	n.launch(s)
	return nil
}

// launch starts a service once all its dependencies run.
func (n *Node) launch(s *service) {
	for _, needed := range s.needs {
		switch needed.state {
		case ServiceStopped, ServiceStopPending:
			n.stopService(s, uint32(winerr.ServiceDependencyFail), 0)
			return
		case ServiceStartPending:
			return
		case ServiceRunning, ServicePaused, ServicePausePending, ServiceContinuePending:
		}
	}
	s.launched = true
	n.endPending(s, s.StartTime)
}

// stopService stops a service with an exit code.
func (n *Node) stopService(s *service, exit, specific uint32) {
	s.exit, s.specific = exit, specific
	n.enterState(s, ServiceStopped)
}

// beginStop stops a service as the service manager does.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-controlservice
func (n *Node) beginStop(s *service) error {
	switch {
	case s.state == ServiceStopped:
		return winerr.ServiceNotActive
	case s.state == ServiceStopPending:
		return winerr.ServiceCannotAcceptCtrl
	case s.RefusesStop || s.state == ServiceStartPending: // it accepts nothing yet
		return winerr.InvalidServiceControl
	case len(n.activeDependents(s)) > 0:
		return winerr.DependentServicesRunning
	}
	n.enterState(s, ServiceStopPending)
	n.endPending(s, s.StopTime)
	return nil
}

// activeDependents are the active services that depend on s, in the reverse order of their
// start.
func (n *Node) activeDependents(s *service) []*service {
	var found []*service
	seen := map[*service]bool{}
	var visit func(*service)
	visit = func(s *service) {
		for _, other := range n.services.all {
			if other.dependsOn(s) && other.active() && !seen[other] {
				seen[other] = true
				visit(other)
				found = append(found, other)
			}
		}
	}
	visit(s)
	return found
}

// status is the answer of QueryServiceStatusEx.
func (s *service) status() win.ServiceStatus {
	status := win.ServiceStatus{
		State:            serviceStates[s.state],
		ExitCode:         s.exit,
		SpecificExitCode: s.specific,
		OwnProcess:       s.Proxy && s.active(),
	}
	switch s.state {
	case ServiceStartPending:
		status.WaitHint = s.StartTime
	case ServiceStopPending:
		status.WaitHint = s.StopTime
	case ServiceStopped, ServiceRunning, ServicePaused, ServicePausePending, ServiceContinuePending:
	}
	return status
}

// ServiceInfo is a snapshot of a service.
type ServiceInfo struct {
	Name        string
	DisplayName string
	StartType   StartType
	State       ServiceState
	ExitCode    uint32 // of the last stop
}

// ServiceInfo describes a service.
func (n *Node) ServiceInfo(name string) (ServiceInfo, error) {
	n.lock()
	defer n.mu.Unlock()
	s, err := n.service(name)
	if err != nil {
		return ServiceInfo{}, winerr.Wrap("describe service", name, err)
	}
	return ServiceInfo{Name: s.Name, DisplayName: s.DisplayName, StartType: s.StartType, State: s.state, ExitCode: s.exit}, nil
}

// SetServiceState changes the state of a service at once, without regard to dependencies. From
// start-pending and stop-pending it continues by itself.
func (n *Node) SetServiceState(name string, state ServiceState) error {
	const op = "set state of service"
	if state.check("state") != nil || state == "" {
		return winerr.New(winerr.Invalid, op, name, "unknown state %q", state)
	}
	n.lock()
	defer n.mu.Unlock()
	s, err := n.service(name)
	if err != nil {
		return winerr.Wrap(op, name, err)
	}
	s.exit, s.specific = 0, 0
	n.enterState(s, state)
	n.leavePending(s)
	return nil
}

// leavePending plans the end of a service's pending state.
func (n *Node) leavePending(s *service) {
	switch s.state {
	case ServiceStartPending:
		n.launch(s)
	case ServiceStopPending:
		n.endPending(s, s.StopTime)
	case ServiceStopped, ServiceRunning, ServicePaused, ServicePausePending, ServiceContinuePending:
	}
}

// AddService installs a service. Its dependencies must exist. The default state is stopped.
func (n *Node) AddService(model Service) error {
	if model.State == "" {
		model.State = ServiceStopped
	}
	n.lock()
	defer n.mu.Unlock()
	s, err := model.build()
	if err == nil {
		err = n.services.resolve(s)
	}
	if err == nil {
		err = n.services.register(s)
	}
	if err != nil {
		return winerr.New(winerr.Invalid, "add service", "", "%v", err)
	}
	n.changed()
	n.leavePending(s)
	return nil
}
