package winsim

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// service is a service and its state. m.mu guards it.
type service struct {
	Service          // as it is now
	needs            []*service
	launched         bool // its process has started while it is pending
	lastSpecificExit uint32
	changes          int // of its state; a transition planned before the last one is void
}

type services struct {
	*clock
	byName map[string]*service // by folded name
	all    []*service          // in the order of the model
	booted time.Time           // the last start of Windows
}

// service returns a service by name, or ERROR_SERVICE_DOES_NOT_EXIST (1060). mu is held.
func (m *services) service(name string) (*service, error) {
	if s := m.byName[winpath.Fold(name)]; s != nil {
		return s, nil
	}
	return nil, winerr.ServiceDoesNotExist
}

func (s *service) active() bool { return s.State != ServiceStopped }

func (m *services) enterState(s *service, state ServiceState) {
	s.State, s.launched = state, false
	s.changes++
	for _, other := range m.all {
		if other.State == ServiceStartPending && !other.launched && other.dependsOn(s) {
			m.launch(other)
		}
	}
}

func (s *service) dependsOn(other *service) bool { return slices.Contains(s.needs, other) }

// endPending ends the pending state of a service after a delay, unless its state changes first.
func (m *services) endPending(s *service, after time.Duration) {
	m.afterUnlessChanged(&s.changes, after, func() {
		switch {
		case s.State == ServiceStopPending:
			m.stopService(s, 0, 0)
		case s.ExitCode != 0:
			m.stopService(s, s.ExitCode, s.SpecificExitCode)
		default:
			m.enterState(s, ServiceRunning)
		}
	})
}

// beginStart starts a service as the service manager does: its dependencies first.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-startservicew
func (m *services) beginStart(s *service) error {
	switch {
	case s.active():
		return winerr.ServiceAlreadyRunning
	case s.StartType == StartDisabled:
		return winerr.ServiceDisabled
	}
	for _, needed := range s.needs {
		if needed.State == ServiceStopPending || (!needed.active() && m.beginStart(needed) != nil) {
			return winerr.ServiceDependencyFail
		}
	}
	if s.StartCode != 0 {
		return winerr.Code(s.StartCode)
	}
	s.LastExit, s.lastSpecificExit = 0, 0
	m.enterState(s, ServiceStartPending)
	m.launch(s)
	return nil
}

// launch starts a service once all its dependencies run.
func (m *services) launch(s *service) {
	for _, needed := range s.needs {
		switch needed.State {
		case ServiceStopped, ServiceStopPending:
			m.stopService(s, uint32(winerr.ServiceDependencyFail), 0)
			return
		case ServiceStartPending:
			return
		case ServiceRunning, ServicePaused, servicePausePending, serviceContinuePending:
		}
	}
	s.launched = true
	m.endPending(s, s.StartTime)
}

func (m *services) stopService(s *service, exit, specific uint32) {
	s.LastExit, s.lastSpecificExit = exit, specific
	m.enterState(s, ServiceStopped)
}

// beginStop stops a service as the service manager does.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-controlservice
func (m *services) beginStop(s *service) error {
	switch {
	case s.State == ServiceStopped:
		return winerr.ServiceNotActive
	case s.State == ServiceStopPending:
		return winerr.ServiceCannotAcceptCtrl
	case s.RefusesStop || s.State == ServiceStartPending: // it accepts nothing yet
		return winerr.InvalidServiceControl
	case len(m.activeDependents(s)) > 0:
		return winerr.DependentServicesRunning
	}
	m.enterState(s, ServiceStopPending)
	m.endPending(s, s.StopTime)
	return nil
}

// activeDependents are the active services that depend on s, in the reverse order of their
// start.
func (m *services) activeDependents(s *service) []*service {
	var found []*service
	seen := map[*service]bool{}
	var visit func(*service)
	visit = func(s *service) {
		for _, other := range m.all {
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

func (m *services) leavePending(s *service) {
	switch s.State {
	case ServiceStartPending:
		m.launch(s)
	case ServiceStopPending:
		m.endPending(s, s.StopTime)
	case ServiceStopped, ServiceRunning, ServicePaused, servicePausePending, serviceContinuePending:
	}
}

// restart brings all services into their state after a start.
func (m *services) restart() {
	m.booted = m.now()
	for _, s := range m.all {
		s.State, s.launched, s.LastExit, s.lastSpecificExit = "", false, 0, 0
		s.changes++ // cancels planned transitions
	}
	m.runAtStart()
}

// status is the answer of QueryServiceStatusEx.
func (s *service) status() win.ServiceStatus {
	status := win.ServiceStatus{
		State:            serviceStates[s.State],
		ExitCode:         s.LastExit,
		SpecificExitCode: s.lastSpecificExit,
		OwnProcess:       s.Proxy && s.active(),
	}
	switch s.State {
	case ServiceStartPending:
		status.WaitHint = s.StartTime
	case ServiceStopPending:
		status.WaitHint = s.StopTime
	case ServiceStopped, ServiceRunning, ServicePaused, servicePausePending, serviceContinuePending:
	}
	return status
}

// The methods below implement the seam; internal/win documents them.

func (m *services) Uptime(context.Context) (time.Duration, error) {
	defer m.lock()()
	return m.now().Sub(m.booted), nil
}

func (m *services) ServiceConfig(_ context.Context, name string) (win.ServiceConfig, error) {
	return read(m.onService, name, func(s *service) (win.ServiceConfig, error) {
		return win.ServiceConfig{DisplayName: s.DisplayName, StartType: startTypes[s.StartType]}, nil
	})
}

func (m *services) ServiceStatus(_ context.Context, name string) (win.ServiceStatus, error) {
	return read(m.onService, name, func(s *service) (win.ServiceStatus, error) { return s.status(), nil })
}

func (m *services) StartService(_ context.Context, name string) error {
	return m.onService(name, m.beginStart)
}

func (m *services) StopService(_ context.Context, name string) error {
	return m.onService(name, m.beginStop)
}

func (m *services) ActiveDependents(_ context.Context, name string) (names []string, err error) {
	err = m.onService(name, func(s *service) error {
		for _, dependent := range m.activeDependents(s) {
			names = append(names, dependent.Name)
		}
		return nil
	})
	return names, err
}

func (m *services) onService(name string, do func(*service) error) error {
	defer m.lock()()
	s, err := m.service(name)
	if err != nil {
		return err
	}
	return do(s)
}

// ServiceInfo describes a service as Describe does.
func (n *Node) ServiceInfo(name string) (Service, error) {
	defer n.lock()()
	s, err := n.services.service(name)
	if err != nil {
		return Service{}, winerr.Wrap("describe service", name, err)
	}
	return s.Service, nil
}

// SetServiceState changes the state of a service at once, whatever its dependencies. A pending state ends by itself.
func (n *Node) SetServiceState(name string, state ServiceState) error {
	const op = "set state of service"
	if state.check("state") != nil || state == "" {
		return winerr.New(winerr.Invalid, op, name, "unknown state %q", state)
	}
	defer n.lock()()
	s, err := n.services.service(name)
	if err != nil {
		return winerr.Wrap(op, name, err)
	}
	s.LastExit, s.lastSpecificExit = 0, 0
	n.services.enterState(s, state)
	n.services.leavePending(s)
	return nil
}

// add installs a service, stopped by default. Its dependencies must exist. mu is held.
func (m *services) add(model Service) *ModelError {
	model.State = cmp.Or(model.State, ServiceStopped)
	s, err := model.build()
	if err == nil {
		err = m.resolve(s)
	}
	if err == nil {
		err = m.register(s)
	}
	if err == nil {
		m.leavePending(s)
	}
	return err
}
