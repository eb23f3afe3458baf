package winsim

import (
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// service is a service and what it does. n.mu guards it.
type service struct {
	Service // as described
	state   ServiceState
	needs   []*service

	launched       bool   // its process, while it is starting
	exit, specific uint32 // with which it ended last
	changes        int    // of its state; what was planned before the last one does not happen
}

// service returns the service with a name, or 1060. n.mu is held.
func (n *Node) service(name string) (*service, error) {
	if s := n.services.byName[winpath.Fold(name)]; s != nil {
		return s, nil
	}
	return nil, winerr.ServiceDoesNotExist
}

// active reports whether the service manager counts it among the active ones.
func (s *service) active() bool { return s.state != ServiceStopped }

// enterState changes the state of a service, and lets those get on that wait for it.
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

// endPending lets a service come out of its pending state after a while, unless somebody else
// changes its state before.
func (n *Node) endPending(s *service, after time.Duration) {
	n.after(after, pendingEnd{s, s.changes})
}

// pendingEnd is what becomes of a service that is starting or stopping.
type pendingEnd struct {
	service *service
	changes int // of its state, when this was planned
}

func (p pendingEnd) run(n *Node) {
	s := p.service
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

// beginStart is what the service manager does when it is asked to start a service: what it
// depends on comes first.
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
	s.exit, s.specific = 0, 0
	n.enterState(s, ServiceStartPending)
	n.launch(s)
	return nil
}

// launch begins to start a service once all it depends on is running.
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

// beginStop is what the service manager does when it is asked to stop a service.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-controlservice
func (n *Node) beginStop(s *service) error {
	switch {
	case s.state == ServiceStopped:
		return winerr.ServiceNotActive
	case s.state == ServiceStartPending || s.state == ServiceStopPending:
		return winerr.ServiceCannotAcceptCtrl
	case s.RefusesStop:
		return winerr.InvalidServiceControl
	case len(n.activeDependents(s)) > 0:
		return winerr.DependentServicesRunning
	}
	n.enterState(s, ServiceStopPending)
	n.endPending(s, s.StopTime)
	return nil
}

// activeDependents are the services that depend on one, those first on which nobody
// depends: in the reverse of the order in which they are started.
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

// status is what QueryServiceStatusEx answers.
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

// ServiceInfo is a service as it is at one moment.
type ServiceInfo struct {
	Name        string
	DisplayName string
	StartType   StartType
	State       ServiceState
	ExitCode    uint32 // with which it has stopped
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

// SetServiceState puts a service into a state at once, as if somebody else had done so,
// whatever its dependencies and dependents do. From start-pending and stop-pending it goes
// on by itself.
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

// leavePending lets a service come out of the pending state it is in.
func (n *Node) leavePending(s *service) {
	switch s.state {
	case ServiceStartPending:
		n.launch(s)
	case ServiceStopPending:
		n.endPending(s, s.StopTime)
	case ServiceStopped, ServiceRunning, ServicePaused, ServicePausePending, ServiceContinuePending:
	}
}

// AddService installs a service, as a model would describe it. What it depends on must be
// there. Without a state it is stopped.
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
