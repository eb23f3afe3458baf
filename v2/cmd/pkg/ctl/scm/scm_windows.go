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
		return nil, fmt.Errorf("connect to the service manager: %w; run this from an elevated prompt", err)
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

// Create creates the service with a placeholder, because mgr.CreateService quotes its
// arguments and our command line is complete.
func (m manager) Create(name string, config Config) (Service, error) {
	s, err := m.CreateService(name, `C:\unset`, mgr.Config{StartType: mgr.StartManual})
	if err != nil {
		return nil, fmt.Errorf("create service %s: %w", name, err)
	}
	created := service{s}
	err = created.SetConfig(config)
	if err != nil && !errors.Is(err, ErrUnsupported) {
		_ = s.Delete()
		created.Close()
		return nil, err
	}
	return created, err
}

const eventTypes = eventlog.Error | eventlog.Warning | eventlog.Info

// sourceKey is the registry key of event sources.
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

// Config queries only what it needs. mgr's Config fails if any setting is not supported.
func (s service) Config() (Config, error) {
	basic, err := query(func(buffer []byte, needed *uint32) error {
		return windows.QueryServiceConfig(s.Handle, (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&buffer[0])), uint32(len(buffer)), needed)
	})
	if err != nil {
		return Config{}, fmt.Errorf("configuration of service %s: %w", s.Name, err)
	}
	c := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&basic[0]))
	config := Config{
		Command:     windows.UTF16PtrToString(c.BinaryPathName),
		Start:       startTypes[c.StartType],
		DisplayName: windows.UTF16PtrToString(c.DisplayName),
		Interactive: c.ServiceType&windows.SERVICE_INTERACTIVE_PROCESS != 0,
	}
	description, err := s.optional(windows.SERVICE_CONFIG_DESCRIPTION)
	if err != nil {
		return Config{}, fmt.Errorf("description of service %s: %w", s.Name, err)
	}
	if description != nil {
		config.Description = windows.UTF16PtrToString((*windows.SERVICE_DESCRIPTION)(unsafe.Pointer(&description[0])).Description)
	}
	delayed, err := s.optional(windows.SERVICE_CONFIG_DELAYED_AUTO_START_INFO)
	if err != nil {
		return Config{}, fmt.Errorf("delayed start of service %s: %w", s.Name, err)
	}
	if config.Start == Automatic && delayed != nil && (*windows.SERVICE_DELAYED_AUTO_START_INFO)(unsafe.Pointer(&delayed[0])).IsDelayedAutoStartUp != 0 {
		config.Start = Delayed
	}
	return config, nil
}

// query2 returns a setting that not every version of Windows supports.
func (s service) query2(level uint32) ([]byte, error) {
	return query(func(buffer []byte, needed *uint32) error {
		return windows.QueryServiceConfig2(s.Handle, level, &buffer[0], uint32(len(buffer)), needed)
	})
}

// optional returns a setting, or nil if it is not supported.
func (s service) optional(level uint32) ([]byte, error) {
	buffer, err := s.query2(level)
	if errors.Is(err, windows.ERROR_INVALID_LEVEL) {
		return nil, nil
	}
	return buffer, err
}

// query retries with a larger buffer. Go aligns buffers of this size for any structure.
func query(ask func(buffer []byte, needed *uint32) error) ([]byte, error) {
	for size := uint32(1 << 10); ; {
		buffer := make([]byte, size)
		err := ask(buffer, &size)
		if errors.Is(err, windows.ERROR_INSUFFICIENT_BUFFER) && size > uint32(len(buffer)) {
			continue
		}
		return buffer, err
	}
}

// SetConfig does not set the account, which would require its password. The type that it sets is
// not interactive.
func (s service) SetConfig(config Config) error {
	start := uint32(mgr.StartAutomatic)
	for number, word := range startTypes {
		if word == config.Start {
			start = number
		}
	}
	var text [3]*uint16
	for i, word := range []string{config.Command, config.DisplayName, config.Description} {
		var err error
		if text[i], err = windows.UTF16PtrFromString(word); err != nil {
			return fmt.Errorf("configure service %s: %q: %w", s.Name, word, err)
		}
	}
	err := windows.ChangeServiceConfig(s.Handle, windows.SERVICE_WIN32_OWN_PROCESS, start, windows.SERVICE_NO_CHANGE, text[0], nil, nil, nil, nil, nil, text[1])
	if err != nil {
		return fmt.Errorf("configure service %s: %w", s.Name, err)
	}
	description := windows.SERVICE_DESCRIPTION{Description: text[2]}
	delayed := windows.SERVICE_DELAYED_AUTO_START_INFO{}
	if config.Start == Delayed {
		delayed.IsDelayedAutoStartUp = 1
	}
	return settingErrors(
		s.set("description", windows.SERVICE_CONFIG_DESCRIPTION, unsafe.Pointer(&description)),
		s.set("delayed start", windows.SERVICE_CONFIG_DELAYED_AUTO_START_INFO, unsafe.Pointer(&delayed)),
	)
}

// settingErrors returns the first error of settings that is not ErrUnsupported, or else all of them.
func settingErrors(all ...error) error {
	for _, err := range all {
		if err != nil && !errors.Is(err, ErrUnsupported) {
			return err
		}
	}
	return errors.Join(all...)
}

// set applies a setting that not every version of Windows supports.
func (s service) set(what string, level uint32, value unsafe.Pointer) error {
	return s.settingError(what, windows.ChangeServiceConfig2(s.Handle, level, (*byte)(value)))
}

func (s service) settingError(what string, err error) error {
	if errors.Is(err, windows.ERROR_INVALID_LEVEL) {
		err = ErrUnsupported
	}
	if err != nil {
		return fmt.Errorf("%s of service %s: %w", what, s.Name, err)
	}
	return nil
}

func (s service) Recovery() (Recovery, error) {
	actions, err := s.RecoveryActions()
	if err != nil {
		return Recovery{}, s.settingError("recovery", err)
	}
	var r Recovery
	if len(actions) > 0 && actions[0].Type == mgr.ServiceRestart {
		r.Restart = max(actions[0].Delay, time.Millisecond) // 0 would mean never
	}
	reset, err := s.ResetPeriod()
	if err != nil {
		return Recovery{}, s.settingError("recovery", err)
	}
	r.Reset = time.Duration(reset) * time.Second
	r.OnErrors, err = s.RecoveryActionsOnNonCrashFailures()
	return r, s.settingError("recovery", err)
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
	return s.settingError("recovery", err)
}

func (s service) ServiceSID() (bool, error) {
	sid, err := s.query2(windows.SERVICE_CONFIG_SERVICE_SID_INFO)
	if err != nil {
		return false, s.settingError("service SID", err)
	}
	return *(*uint32)(unsafe.Pointer(&sid[0])) != windows.SERVICE_SID_TYPE_NONE, nil
}

func (s service) SetServiceSID(on bool) error {
	sid := uint32(windows.SERVICE_SID_TYPE_NONE)
	if on {
		sid = windows.SERVICE_SID_TYPE_UNRESTRICTED
	}
	return s.set("service SID", windows.SERVICE_CONFIG_SERVICE_SID_INFO, unsafe.Pointer(&sid))
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
	_, err := s.Control(svc.Stop)
	switch {
	case err == nil, errors.Is(err, windows.ERROR_SERVICE_NOT_ACTIVE):
		return nil
	case errors.Is(err, windows.ERROR_SERVICE_CANNOT_ACCEPT_CTRL):
		err = ErrBusy
	}
	return fmt.Errorf("stop service %s: %w", s.Name, err)
}

func (s service) Kill() error {
	status, err := s.Status()
	if err != nil || status.PID == 0 {
		return err
	}
	process, err := windows.OpenProcess(windows.PROCESS_TERMINATE, false, status.PID)
	if err != nil {
		return fmt.Errorf("kill process %d of service %s: %w", status.PID, s.Name, err)
	}
	defer func() { _ = windows.CloseHandle(process) }()
	if err := windows.TerminateProcess(process, 1); err != nil {
		return fmt.Errorf("kill process %d of service %s: %w", status.PID, s.Name, err)
	}
	return nil
}

func (s service) Dependents() ([]string, error) {
	names, err := s.ListDependentServices(svc.Active)
	if err != nil {
		return nil, fmt.Errorf("services that depend on %s: %w", s.Name, err)
	}
	return names, nil
}

func (s service) Delete() error {
	if err := s.Service.Delete(); err != nil && !errors.Is(err, windows.ERROR_SERVICE_MARKED_FOR_DELETE) {
		return fmt.Errorf("delete service %s: %w", s.Name, err)
	}
	return nil
}
