package service

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
)

// Run hands the process to the service manager, and returns when the service has stopped. The caller
// then ends the process. By then everything that the service opened is closed, except for calls to
// Windows that have not returned.
//
// The service can have any name, because the process has only one service. Run ignores the arguments
// of StartService: the command line comes from the installation.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-startservicectrldispatcherw
func Run(s Service) (exitCode uint32, err error) {
	h := &handler{service: s}
	err = svc.Run("", h)
	if errors.Is(err, windows.ERROR_FAILED_SERVICE_CONTROLLER_CONNECT) {
		return 0, ErrNotStarted
	}
	if err != nil {
		return 0, fmt.Errorf("connect to the service manager: %w", err)
	}
	return h.exitCode, nil
}

// handler adapts a service to package svc.
type handler struct {
	service  Service
	exitCode uint32
}

// Execute runs on a goroutine of package svc. When it returns, svc reports the service as stopped,
// with ERROR_SERVICE_SPECIFIC_ERROR (1066) and our exit code unless that is 0.
func (h *handler) Execute(args []string, changes <-chan svc.ChangeRequest, statuses chan<- svc.Status) (specific bool, exitCode uint32) {
	var events *eventlog.Log
	if len(args) > 0 { // the first is the name of the service
		// If the source is not registered, Windows writes to the application log. So an error
		// here means that there is no event log, and the service runs without one.
		// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-registereventsourcew
		if log, err := eventlog.Open(args[0]); err == nil {
			defer log.Close()
			events = log
		}
		if err := ensureShutdownTime(args[0], h.service.StopTimeout+stopMargin); err != nil && events != nil {
			_ = events.Warning(EventWarning, fmt.Sprintf("When the machine shuts down, Windows may not wait for calls in flight: %v", err))
		}
	}
	requests, over := make(chan Request), make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case change := <-changes:
				select {
				case requests <- Request(change.Cmd):
				case <-over:
					return
				}
			case <-over:
				return
			}
		}
	}()
	h.exitCode = h.service.run(&scm{statuses: statuses, events: events}, requests)
	return true, h.exitCode
}

// ensureShutdownTime makes Windows wait for a service at Preshutdown at least as long as its stop takes.
// Since Windows 10 1709 it waits 10 s for a service that was installed without a time of its own, as
// Wine's tests on Windows show (dlls/advapi32/tests/service.c).
// https://learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_preshutdown_info
func ensureShutdownTime(name string, stop time.Duration) error {
	manager, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT)
	if err != nil {
		return fmt.Errorf("connect to the service manager: %w", err)
	}
	defer func() { _ = windows.CloseServiceHandle(manager) }()
	text, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return err
	}
	service, err := windows.OpenService(manager, text, windows.SERVICE_QUERY_CONFIG|windows.SERVICE_CHANGE_CONFIG)
	if err != nil {
		return fmt.Errorf("open service %s: %w", name, err)
	}
	defer func() { _ = windows.CloseServiceHandle(service) }()
	var milliseconds, size uint32
	const length = uint32(unsafe.Sizeof(milliseconds))
	if err := windows.QueryServiceConfig2(service, windows.SERVICE_CONFIG_PRESHUTDOWN_INFO, (*byte)(unsafe.Pointer(&milliseconds)), length, &size); err != nil {
		return fmt.Errorf("shutdown time of service %s: %w", name, err)
	}
	want := uint32(stop / time.Millisecond)
	if milliseconds >= want {
		return nil
	}
	if err := windows.ChangeServiceConfig2(service, windows.SERVICE_CONFIG_PRESHUTDOWN_INFO, (*byte)(unsafe.Pointer(&want))); err != nil {
		return fmt.Errorf("set the shutdown time of service %s: %w", name, err)
	}
	return nil
}

// scm is the manager of a service that Execute runs.
type scm struct {
	statuses chan<- svc.Status
	events   *eventlog.Log // may be nil
}

func (m *scm) report(status Status) {
	s := svc.Status{State: svc.State(status.State), CheckPoint: status.CheckPoint, WaitHint: uint32(status.WaitHint / time.Millisecond)}
	if status.State == Running {
		// A pending service accepts nothing; the manager would not send it anyway.
		s.Accepts = svc.AcceptStop | svc.AcceptShutdown | svc.AcceptPreShutdown
	}
	m.statuses <- s
}

func (m *scm) info(id uint32, text string) {
	if m.events != nil {
		_ = m.events.Info(id, text) // the log has it too
	}
}

func (m *scm) warn(id uint32, text string) {
	if m.events != nil {
		_ = m.events.Warning(id, text)
	}
}

func (m *scm) fail(id uint32, text string) {
	if m.events != nil {
		_ = m.events.Error(id, text)
	}
}
