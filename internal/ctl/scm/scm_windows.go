package scm

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
	"golang.org/x/sys/windows/svc/mgr"
)

func connect() (Manager, error) {
	m, err := mgr.Connect()
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		return nil, fmt.Errorf("connect to the service manager: run this from an elevated prompt: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the service manager: %w", err)
	}
	return manager{m}, nil
}

type manager struct{ *mgr.Mgr }

func (m manager) Close() { _ = m.Disconnect() }

func (m manager) Open(name string) (Service, error) {
	s, err := m.OpenService(name)
	if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		return nil, fmt.Errorf("service %s: %w", name, ErrNotInstalled)
	}
	if err != nil {
		return nil, fmt.Errorf("open service %s: %w", name, err)
	}
	return service{s}, nil
}

// Create makes the service with a harmless command line first, because mgr.CreateService
// quotes what it is given, and ours is complete.
func (m manager) Create(name string, config Config) (Service, error) {
	s, err := m.CreateService(name, `C:\unset`, mgr.Config{StartType: mgr.StartManual})
	if err != nil {
		return nil, fmt.Errorf("create service %s: %w", name, err)
	}
	created := service{s}
	if err := created.SetConfig(config); err != nil {
		_ = s.Delete()
		created.Close()
		return nil, err
	}
	return created, nil
}

const eventTypes = eventlog.Error | eventlog.Warning | eventlog.Info

// sourceKey is where the event log has its sources.
// https://learn.microsoft.com/windows/win32/eventlog/event-sources
const sourceKey = `SYSTEM\CurrentControlSet\Services\EventLog\Application\`

func (manager) RegisterEvents(source string) error {
	if key, err := registry.OpenKey(registry.LOCAL_MACHINE, sourceKey+source, registry.QUERY_VALUE); err == nil {
		return key.Close()
	}
	return eventlog.InstallAsEventCreate(source, eventTypes)
}

func (manager) RemoveEvents(source string) error {
	if err := eventlog.Remove(source); err != nil && !errors.Is(err, registry.ErrNotExist) {
		return err
	}
	return nil
}

type service struct{ *mgr.Service }

func (s service) Close() { _ = s.Service.Close() }

var startTypes = map[uint32]StartType{
	mgr.StartAutomatic: Automatic,
	mgr.StartManual:    Manual,
	mgr.StartDisabled:  Disabled,
}

func (s service) Config() (Config, error) {
	c, err := s.Service.Config()
	if err != nil {
		return Config{}, fmt.Errorf("configuration of service %s: %w", s.Name, err)
	}
	start := startTypes[c.StartType]
	if start == Automatic && c.DelayedAutoStart {
		start = Delayed
	}
	return Config{Command: c.BinaryPathName, Start: start, DisplayName: c.DisplayName, Description: c.Description}, nil
}

func (s service) SetConfig(config Config) error {
	c, err := s.Service.Config()
	if err != nil {
		return fmt.Errorf("configuration of service %s: %w", s.Name, err)
	}
	c.BinaryPathName, c.DisplayName, c.Description = config.Command, config.DisplayName, config.Description
	c.DelayedAutoStart = config.Start == Delayed
	switch config.Start {
	case Automatic, Delayed:
		c.StartType = mgr.StartAutomatic
	case Disabled:
		c.StartType = mgr.StartDisabled
	case Manual:
		c.StartType = mgr.StartManual
	}
	// Naming the account again would ask for its password.
	c.ServiceStartName = ""
	if err := s.UpdateConfig(c); err != nil {
		return fmt.Errorf("configure service %s: %w", s.Name, err)
	}
	return nil
}

func (s service) Recovery() (Recovery, error) {
	actions, err := s.RecoveryActions()
	if err != nil {
		return Recovery{}, fmt.Errorf("recovery of service %s: %w", s.Name, err)
	}
	var r Recovery
	if len(actions) > 0 && actions[0].Type == mgr.ServiceRestart {
		r.Restart = max(actions[0].Delay, time.Millisecond) // 0 would mean never
	}
	reset, err := s.ResetPeriod()
	if err != nil {
		return Recovery{}, fmt.Errorf("recovery of service %s: %w", s.Name, err)
	}
	r.Reset = time.Duration(reset) * time.Second
	r.OnErrors, err = s.RecoveryActionsOnNonCrashFailures()
	return r, err
}

func (s service) SetRecovery(r Recovery) error {
	action := mgr.RecoveryAction{Type: mgr.ServiceRestart, Delay: r.Restart}
	if r.Restart == 0 {
		action.Type = mgr.NoAction
	}
	err := s.SetRecoveryActions([]mgr.RecoveryAction{action}, uint32(r.Reset/time.Second))
	if err == nil {
		err = s.SetRecoveryActionsOnNonCrashFailures(r.OnErrors)
	}
	if err != nil {
		return fmt.Errorf("set the recovery of service %s: %w", s.Name, err)
	}
	return nil
}

// SetPreshutdown fills SERVICE_PRESHUTDOWN_INFO, one DWORD of milliseconds.
// https://learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_preshutdown_info
func (s service) SetPreshutdown(timeout time.Duration) error {
	milliseconds := uint32(timeout / time.Millisecond)
	err := windows.ChangeServiceConfig2(s.Handle, windows.SERVICE_CONFIG_PRESHUTDOWN_INFO, (*byte)(unsafe.Pointer(&milliseconds)))
	if err != nil {
		return fmt.Errorf("set the shutdown time of service %s: %w", s.Name, err)
	}
	return nil
}

var states = map[svc.State]State{
	svc.Stopped:      Stopped,
	svc.StartPending: StartPending,
	svc.StopPending:  StopPending,
	svc.Running:      Running,
}

func (s service) Status() (Status, error) {
	status, err := s.Query()
	if err != nil {
		return Status{}, fmt.Errorf("status of service %s: %w", s.Name, err)
	}
	state, ok := states[status.State]
	if !ok {
		state = Other
	}
	code := status.ServiceSpecificExitCode
	if code == 0 {
		code = status.Win32ExitCode
	}
	return Status{State: state, PID: status.ProcessId, ExitCode: code}, nil
}

func (s service) Start() error {
	if err := s.Service.Start(); err != nil && !errors.Is(err, windows.ERROR_SERVICE_ALREADY_RUNNING) {
		return fmt.Errorf("start service %s: %w", s.Name, err)
	}
	return nil
}

func (s service) Stop() error {
	if _, err := s.Control(svc.Stop); err != nil && !errors.Is(err, windows.ERROR_SERVICE_NOT_ACTIVE) {
		return fmt.Errorf("stop service %s: %w", s.Name, err)
	}
	return nil
}

func (s service) Delete() error {
	if err := s.Service.Delete(); err != nil && !errors.Is(err, windows.ERROR_SERVICE_MARKED_FOR_DELETE) {
		return fmt.Errorf("delete service %s: %w", s.Name, err)
	}
	return nil
}
