package service

import (
	"errors"
	"fmt"
	"time"

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

// scm is the manager of a service that Execute runs.
type scm struct {
	statuses chan<- svc.Status
	events   *eventlog.Log // may be nil
}

func (m *scm) report(status Status) {
	s := svc.Status{State: svc.State(status.State), CheckPoint: status.CheckPoint, WaitHint: uint32(status.WaitHint / time.Millisecond)}
	if status.State == Running {
		// A pending service accepts nothing; the manager would not send it anyway.
		s.Accepts = svc.AcceptStop | svc.AcceptShutdown
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
