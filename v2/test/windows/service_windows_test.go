package windows_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// idleCommand is the first argument of this program as a service that does nothing; its name is the second.
const idleCommand = "service"

// onCommand is the third argument of a service that starts on command.
const onCommand = "on-command"

// services installs services whose program is this one, with the command idleCommand.
type services struct {
	missing string // a path at which nothing is
	number  int
}

func (s *services) install(t *testing.T, model serviceModel) (name string, err error) {
	t.Helper()
	s.number++
	name = fmt.Sprintf(servicePrefix+"%d-%d", os.Getpid(), s.number)
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	arguments := []string{idleCommand, name}
	switch model.program {
	case startsOnRequest:
		arguments = append(arguments, onCommand)
		event, err := newEvent(name)
		if err != nil {
			return "", err
		}
		t.Cleanup(func() { windows.CloseHandle(event) })
	case programMissing:
		program = s.missing + ".exe"
	case folderMissing:
		program = s.missing + `\missing.exe`
	}
	manager, err := mgr.Connect()
	if err != nil {
		return "", cannotf("the service manager: %v", winapi.Error(err))
	}
	defer manager.Disconnect() //nolint:errcheck // a handle
	service, err := manager.CreateService(name, program, mgr.Config{
		StartType: mgr.StartManual, DisplayName: "A question of csi-proxy-verify (" + name + ")", Dependencies: model.dependsOn,
	}, arguments...)
	if err != nil {
		return "", cannotf("install a service: %v", winapi.Error(err))
	}
	t.Cleanup(func() { removeService(t, name) })
	return name, service.Close()
}

func (s *services) pause(name string) error {
	return withService(name, func(service *mgr.Service) error {
		_, err := service.Control(svc.Pause)
		return err
	})
}

func (s *services) proceed(name string) error { return proceed(name) }

// withService does something with a service. It fails with ERROR_SERVICE_DOES_NOT_EXIST (1060) without one.
func withService(name string, do func(*mgr.Service) error) error {
	manager, err := mgr.Connect()
	if err != nil {
		return winapi.Error(err)
	}
	defer manager.Disconnect() //nolint:errcheck // a handle
	service, err := manager.OpenService(name)
	if err != nil {
		return winapi.Error(err)
	}
	defer service.Close()
	return winapi.Error(do(service))
}

// deleteService deletes a service that has stopped, unless it is gone. It is gone when the last program that looks
// at it closes it.
func deleteService(name string) error {
	err := withService(name, (*mgr.Service).Delete)
	if code := winerr.CodeOf(err); code == winerr.ServiceMarkedForDelete || code == winerr.ServiceDoesNotExist {
		return nil
	}
	return err
}

// eventName is the name of what a service waits for, in all sessions: services have one of their own.
func eventName(service string) (*uint16, error) {
	return windows.UTF16PtrFromString(`Global\` + service)
}

func newEvent(service string) (windows.Handle, error) {
	name, err := eventName(service)
	if err != nil {
		return 0, err
	}
	const byHand, unset = 1, 0
	event, err := windows.CreateEvent(nil, byHand, unset, name)
	return event, winapi.Error(err)
}

// proceed signals a service. It fails if none waits.
func proceed(service string) error {
	name, err := eventName(service)
	if err != nil {
		return err
	}
	event, err := windows.OpenEvent(windows.EVENT_MODIFY_STATE, false, name)
	if err != nil {
		return winapi.Error(err)
	}
	defer windows.CloseHandle(event)
	return winapi.Error(windows.SetEvent(event))
}

// serveIdle is the program of a service, until it is stopped. If that never happens, it ends after some minutes.
func serveIdle(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("the name of the service is missing; only the service manager starts this")
	}
	return svc.Run(arguments[0], idler{arguments[0], len(arguments) > 1 && arguments[1] == onCommand})
}

// idler is a service that does nothing.
type idler struct {
	name      string
	onCommand bool
}

// idleLimit is how long a service waits, and how long it runs.
const idleLimit = 2 * time.Minute

// answerTime is how long a service goes on after it was asked to stop. By its source, Wine (dlls/sechost/service.c)
// answers the asker from a thread that the end of the process kills. The asker then gets an error, although the
// service has stopped.
const answerTime = 200 * time.Millisecond

// Execute reports the states of the service to the service manager.
func (i idler) Execute(_ []string, requests <-chan svc.ChangeRequest, states chan<- svc.Status) (specific bool, exit uint32) {
	states <- svc.Status{State: svc.StartPending, WaitHint: uint32(idleLimit.Milliseconds())}
	if i.onCommand {
		if err := i.wait(); err != nil {
			return false, uint32(winerr.CodeOf(winapi.Error(err)))
		}
	}
	running := svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptPauseAndContinue}
	states <- running
	end := time.After(idleLimit)
	for {
		select {
		case <-end:
			return false, 0
		case request := <-requests:
			switch request.Cmd {
			case svc.Interrogate:
				states <- request.CurrentStatus
			case svc.Pause:
				states <- svc.Status{State: svc.Paused, Accepts: running.Accepts}
			case svc.Continue:
				states <- running
			case svc.Stop:
				states <- svc.Status{State: svc.StopPending, WaitHint: uint32(answerTime.Milliseconds())}
				time.Sleep(answerTime)
				return false, 0
			default: // it accepts no others
			}
		}
	}
}

// wait waits for the signal.
func (i idler) wait() error {
	name, err := eventName(i.name)
	if err != nil {
		return err
	}
	event, err := windows.OpenEvent(windows.SYNCHRONIZE, false, name)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(event)
	_, err = windows.WaitForSingleObject(event, uint32(idleLimit.Milliseconds()))
	return err
}

// removeService stops a service that was made for a question, and deletes it. One that does not stop is deleted, too,
// but Windows removes it only when it ends.
func removeService(t *testing.T, name string) {
	t.Helper()
	m, ctx := local.Machine(), context.WithoutCancel(t.Context())
	_ = proceed(name) // one that waits cannot be stopped; others do not listen
	backoff := win.Backoff{First: 20 * time.Millisecond, Longest: 200 * time.Millisecond, Limit: 20 * time.Second}
	asked := false // once: Wine kills a service that is asked twice, and then takes it for stopping for ever
	var refused error
	stopped, err := win.Poll(ctx, m, backoff, func(time.Duration) (bool, error) {
		status, err := m.ServiceStatus(ctx, name)
		if winerr.CodeOf(err) == winerr.ServiceDoesNotExist || status.State == win.ServiceStopped {
			return true, nil
		}
		if !asked {
			refused = m.StopService(ctx, name)
			asked = refused == nil
		}
		return false, err
	})
	err = errors.Join(err, deleteService(name))
	if !stopped {
		err = errors.Join(errors.New("it does not stop, but ends by itself within some minutes"), refused, err)
	}
	if err != nil {
		t.Errorf("service %s is left behind: %v", name, err)
	}
}
