// Package service runs a program as a Windows service: it reports to the service control manager
// while the program starts, runs and stops, and writes to the event log.
//
// The state machine in this file does not depend on Windows and is tested on every system.
// manager_windows.go connects it to the service control manager.
package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
)

// Service is a program that the service manager starts and stops.
type Service struct {
	// Name of the program, with its version, for the event log.
	Name string
	// Serve works until ctx ends, and then for StopTimeout at most.
	Serve func(ctx context.Context, notify Notify) error
	// Failed gets the error of Serve and returns the exit code for the service manager, never 0.
	Failed func(error) uint32
	// StopTimeout is the time that Serve needs to stop.
	StopTimeout time.Duration
}

// Notify reports the progress of a program. In a console only Warn does something.
type Notify struct {
	Progress func()            // one more step of the start is done
	Ready    func()            // the program serves
	Warn     func(text string) // a problem for operators; the program continues
	// Storage says that a problem of the storage hurts pods, or no longer does.
	Storage func(hurts bool, text string)
}

// State is a state of the service, SERVICE_..., with the numbers of Windows.
// https://learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_status
type State uint32

// The states that we report. Package svc reports the stopped state when the service returns.
const (
	StartPending State = 2
	StopPending  State = 3
	Running      State = 4
)

// Status is a report to the service manager.
type Status struct {
	State State
	// CheckPoint grows while a start or stop is pending. If it does not grow for WaitHint, the
	// manager takes the service for hung.
	CheckPoint uint32
	WaitHint   time.Duration
}

// Request is a request of the service manager, SERVICE_CONTROL_..., with the numbers of Windows.
// https://learn.microsoft.com/windows/win32/services/service-control-handler-function
type Request uint32

// The requests that we accept. Preshutdown, which comes before Shutdown and gives more time, is not one of them: the
// kubelet unmounts the volumes of pods when it gets it, and needs us until it has stopped.
const (
	Stop        Request = 1
	Interrogate Request = 4
	Shutdown    Request = 5
)

// Events of the event log. The viewer has texts for 1 to 1000 if the source was registered with the
// message file of EventCreate.exe. Otherwise it shows our text below a note.
const (
	EventStarted = 1
	EventStopped = 2
	EventFailed  = 3
	EventWarning = 4
	EventHurts   = 5
	EventHealed  = 6
)

// ErrNotStarted means that the process was not started by the service manager.
var ErrNotStarted = errors.New("the Windows service manager did not start this process")

const (
	// stepHint is the limit of one step of the start. Listening on a pipe that another process
	// owns takes a second.
	stepHint = 10 * time.Second
	// stopMargin is the time for a stop beyond the time for calls in flight. After that the
	// process ends, even if something still runs.
	stopMargin = 5 * time.Second
	// stopInterval is the time between reports of a stop in progress.
	stopInterval = time.Second
)

// manager is the service control manager, and the event log.
type manager interface {
	// report sends the status to the manager. It may be called by one goroutine only.
	report(Status)
	// The event log. Failures to write it are ignored.
	info(id uint32, text string)
	warn(id uint32, text string)
	fail(id uint32, text string)
}

type life struct {
	Service
	manager
	status Status
	stop   context.CancelFunc // ends Serve
	// Both are nil until the stop begins.
	goesOn  <-chan time.Time
	overdue <-chan time.Time
	until   time.Time
}

// run runs the service. The exit code is 0 after a requested stop.
func (s Service) run(m manager, requests <-chan Request) (exitCode uint32) {
	ctx, stop := context.WithCancel(context.Background()) //nolint:forbidigo // ends with the service
	defer stop()
	l := &life{Service: s, manager: m, stop: stop}
	l.tell(Status{State: StartPending, CheckPoint: 1, WaitHint: stepHint})

	over := make(chan struct{}) // ends the notifications
	defer close(over)
	steps, ready, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	signal := func(to chan<- struct{}) {
		select {
		case to <- struct{}{}:
		case <-over:
		}
	}
	go func() {
		done <- tasks.Recover(ctx, func(ctx context.Context) error { // so that the manager gets to know of a panic
			return s.Serve(ctx, Notify{
				Progress: func() { signal(steps) },
				Ready:    func() { signal(ready) },
				Warn:     func(text string) { m.warn(EventWarning, text) },
				Storage: func(hurts bool, text string) {
					if hurts {
						m.warn(EventHurts, text)
					} else {
						m.info(EventHealed, text)
					}
				},
			})
		})
	}()

	for {
		select {
		case <-steps:
			l.step()
		case <-ready:
			l.ready()
		case request := <-requests:
			l.answer(request)
		case <-l.goesOn:
			l.tell(Status{State: StopPending, CheckPoint: l.status.CheckPoint + 1, WaitHint: time.Until(l.until)})
		case <-l.overdue:
			return l.end(fmt.Errorf("it did not stop within %v", s.StopTimeout+stopMargin))
		case err := <-done:
			return l.end(err)
		}
	}
}

func (l *life) tell(status Status) {
	l.status = status
	l.report(status)
}

func (l *life) step() {
	if l.status.State == StartPending {
		l.tell(Status{State: StartPending, CheckPoint: l.status.CheckPoint + 1, WaitHint: stepHint})
	}
}

func (l *life) ready() {
	if l.status.State == StartPending {
		l.tell(Status{State: Running})
		l.info(EventStarted, l.Name+" has started.")
	}
}

func (l *life) answer(request Request) {
	switch request {
	case Stop, Shutdown:
		if l.stopping() { // a repeated request gets the current status
			l.report(l.status)
			return
		}
		total := l.StopTimeout + stopMargin
		l.goesOn, l.overdue, l.until = time.Tick(stopInterval), time.After(total), time.Now().Add(total)
		l.tell(Status{State: StopPending, CheckPoint: 1, WaitHint: total})
		l.stop()
	case Interrogate:
		l.report(l.status)
	}
}

func (l *life) stopping() bool { return l.status.State == StopPending }

// end writes the last event. If Serve returns without a stop request it has failed, even without an
// error. After a stop request the error of its context is not a failure.
func (l *life) end(err error) (exitCode uint32) {
	switch {
	case l.stopping() && (err == nil || errors.Is(err, context.Canceled)):
		l.info(EventStopped, l.Name+" has stopped.")
		return 0
	case err == nil:
		err = errors.New("it ended without a stop request")
	}
	what := "failed"
	if l.status.State == StartPending {
		what = "could not start"
	}
	l.fail(EventFailed, fmt.Sprintf("%s %s: %v", l.Name, what, err))
	return l.Failed(err)
}
