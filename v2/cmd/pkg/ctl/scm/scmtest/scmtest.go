// Package scmtest is a fake service control manager.
package scmtest

import (
	"errors"
	"fmt"
	"os"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
)

// Manager has at most one service.
type Manager struct {
	Name    string
	Service *Service // nil: not installed
	Events  map[string]bool
	Fail    map[string]error // by method

	// OnStart and OnStop are the callbacks of created services.
	OnStart, OnStop func()
}

// New returns a manager without a service.
func New() *Manager { return &Manager{Events: map[string]bool{}, Fail: map[string]error{}} }

// Open returns the service if the name matches.
func (m *Manager) Open(name string) (scm.Service, error) {
	if m.Service == nil || m.Name != name {
		return nil, fmt.Errorf("service %s: %w", name, scm.ErrNotInstalled)
	}
	return m.Service, m.Fail["Open"]
}

// Create installs a stopped service.
func (m *Manager) Create(name string, config scm.Config) (scm.Service, error) {
	if m.Service != nil {
		return nil, errors.New("it exists")
	}
	m.Name = name
	m.Service = &Service{manager: m, Settings: config, Now: scm.Status{State: scm.Stopped}, OnStart: m.OnStart, OnStop: m.OnStop}
	return m.Service, m.Fail["Create"]
}

// RegisterEvents records the source.
func (m *Manager) RegisterEvents(source string) error {
	m.Events[source] = true
	return m.Fail["RegisterEvents"]
}

// RemoveEvents forgets it.
func (m *Manager) RemoveEvents(source string) error {
	delete(m.Events, source)
	return m.Fail["RemoveEvents"]
}

// Close does nothing.
func (*Manager) Close() {}

// Service changes its state at the second Status after a request. Its process is the test,
// which serves the endpoints.
type Service struct {
	manager    *Manager
	Settings   scm.Config
	Restarts   scm.Recovery
	SID        bool
	Now        scm.Status
	Configured int    // number of SetConfig calls
	OnStart    func() // runs when the process starts; may change the state
	OnStop     func()
	Depending  []string // running services that depend on it
	Killed     int      // number of Kill calls
}

// Config returns the settings.
func (s *Service) Config() (scm.Config, error) { return s.Settings, s.manager.Fail["Config"] }

// SetConfig replaces the settings.
func (s *Service) SetConfig(c scm.Config) error {
	c.Interactive = false
	s.Settings = c
	s.Configured++
	return s.manager.Fail["SetConfig"]
}

// Recovery returns the recovery settings.
func (s *Service) Recovery() (scm.Recovery, error) { return s.Restarts, s.manager.Fail["Recovery"] }

// SetRecovery replaces the recovery settings.
func (s *Service) SetRecovery(r scm.Recovery) error {
	s.Restarts = r
	return s.manager.Fail["SetRecovery"]
}

// ServiceSID returns SID.
func (s *Service) ServiceSID() (bool, error) { return s.SID, s.manager.Fail["ServiceSID"] }

// SetServiceSID replaces SID.
func (s *Service) SetServiceSID(on bool) error {
	s.SID = on
	return s.manager.Fail["SetServiceSID"]
}

// Status returns the state and completes a pending change.
func (s *Service) Status() (scm.Status, error) {
	now := s.Now
	switch s.Now.State {
	case scm.StartPending:
		s.Now = scm.Status{State: scm.Running, PID: uint32(os.Getpid())}
		if s.OnStart != nil {
			s.OnStart()
		}
	case scm.StopPending:
		s.Now = scm.Status{State: scm.Stopped}
		if s.OnStop != nil {
			s.OnStop()
		}
	default:
	}
	return now, s.manager.Fail["Status"]
}

// Start makes the start pending.
func (s *Service) Start() error {
	if s.Now.State == scm.Stopped {
		s.Now.State = scm.StartPending
	}
	return s.manager.Fail["Start"]
}

// Stop makes the stop pending. Like Windows, it refuses while another change is pending or a
// dependent service runs.
func (s *Service) Stop() error {
	switch {
	case s.manager.Fail["Stop"] != nil:
		return s.manager.Fail["Stop"]
	case s.Now.State.Pending():
		return scm.ErrBusy
	case len(s.Depending) > 0:
		return errors.New("services that run depend on it (Windows error 1051)")
	case s.Now.State == scm.Running:
		s.Now.State = scm.StopPending
	}
	return nil
}

// Kill stops the service at once.
func (s *Service) Kill() error {
	s.Killed++
	s.Now = scm.Status{State: scm.Stopped, ExitCode: 1}
	return s.manager.Fail["Kill"]
}

// Dependents returns Depending.
func (s *Service) Dependents() ([]string, error) { return s.Depending, s.manager.Fail["Dependents"] }

// Delete removes the service.
func (s *Service) Delete() error {
	s.manager.Service = nil
	return s.manager.Fail["Delete"]
}

// Close does nothing.
func (*Service) Close() {}
