// Package service is the life of a program as a Windows service: what it tells the service
// control manager while it starts, runs and stops, and what it writes to the event log.
//
// The life itself, in this file, knows no Windows and is tested everywhere. The manager
// behind it is reached in manager_windows.go.
package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/work/guard"
)

// Service is a program that the service manager starts and stops.
type Service struct {
	// Name of the program, with its version, for the event log.
	Name string
	// Serve works until ctx ends, and then for StopTimeout at most.
	Serve func(ctx context.Context, notify Notify) error
	// Failed is told why Serve has failed, and returns the exit code that the service
	// manager shows. It is not 0.
	Failed func(error) uint32
	// StopTimeout is the time that Serve says it needs to stop.
	StopTimeout time.Duration
}

// Notify is how a program says how far it has come. In a console nobody listens.
type Notify struct {
	Progress func()            // the start has come a step further
	Ready    func()            // everything is there
	Warn     func(text string) // operators should know, though the program goes on
}

// State is what the service manager shows, SERVICE_..., with its numbers.
// https://learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_status
type State uint32

// The states that we report. That the service is stopped follows from the end of the life.
const (
	StartPending State = 2
	StopPending  State = 3
	Running      State = 4
)

// Status is what the service manager is told.
type Status struct {
	State State
	// CheckPoint grows while something is pending; when it does not for longer than
	// WaitHint, the manager takes the service for hung.
	CheckPoint uint32
	WaitHint   time.Duration
}

// Request is what the service manager asks for, SERVICE_CONTROL_..., with its numbers.
// https://learn.microsoft.com/windows/win32/services/service-control-handler-function
type Request uint32

// The requests that we accept. The last is sent before other services stop, and gives more
// time than Shutdown, which Windows cuts off after a few seconds.
const (
	Stop        Request = 1
	Interrogate Request = 4
	Shutdown    Request = 5
	Preshutdown Request = 15
)

// Events of the event log. Its viewer has texts for 1 to 1000 if the source was registered
// with the message file of EventCreate.exe, and shows ours below a remark otherwise.
const (
	EventStarted = 1
	EventStopped = 2
	EventFailed  = 3
	EventWarning = 4
)

// ErrNotStarted is the answer if no service manager has started the process.
var ErrNotStarted = errors.New("the service manager of Windows has not started this process")

const (
	// stepHint is how long one step of the start may take. To listen on a pipe that
	// somebody else has takes a second.
	stepHint = 10 * time.Second
	// stopMargin is what a stop may take beyond the time for calls in flight. After that
	// the service counts as stopped, and the process ends with whatever still runs.
	stopMargin = 5 * time.Second
	// stopInterval is how often a stop is reported to go on.
	stopInterval = time.Second
)

// manager is the service control manager, and the event log.
type manager interface {
	// report tells the manager the status. It may be called by one goroutine only.
	report(Status)
	// The event log; failures are nobody's business.
	info(id uint32, text string)
	warn(id uint32, text string)
	fail(id uint32, text string)
}

// life is a service that runs.
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

// run is the whole life. The exit code is 0 after a stop that was asked for.
func (s Service) run(m manager, requests <-chan Request) (exitCode uint32) {
	ctx, stop := context.WithCancel(context.Background()) //nolint:forbidigo // ends with the service
	defer stop()
	l := &life{Service: s, manager: m, stop: stop}
	l.tell(Status{State: StartPending, CheckPoint: 1, WaitHint: stepHint})

	over := make(chan struct{}) // nobody listens any more
	defer close(over)
	steps, ready, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	signal := func(to chan<- struct{}) {
		select {
		case to <- struct{}{}:
		case <-over:
		}
	}
	go func() {
		done <- guard.Run(ctx, func(ctx context.Context) error { // so that the manager is told of a panic
			return s.Serve(ctx, Notify{
				Progress: func() { signal(steps) },
				Ready:    func() { signal(ready) },
				Warn:     func(text string) { m.warn(EventWarning, text) },
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
	case Stop, Shutdown, Preshutdown:
		if l.stopping() { // whoever asks twice wants to see it go on
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

// end writes the last event. Serve that ends without being asked to has failed, even if it
// does not know why; one that was asked may say so with its context's error.
func (l *life) end(err error) (exitCode uint32) {
	switch {
	case l.stopping() && (err == nil || errors.Is(err, context.Canceled)):
		l.info(EventStopped, l.Name+" has stopped.")
		return 0
	case err == nil:
		err = errors.New("it ended without being asked to")
	}
	what := "failed"
	if l.status.State == StartPending {
		what = "could not start"
	}
	l.fail(EventFailed, fmt.Sprintf("%s %s: %v", l.Name, what, err))
	return l.Failed(err)
}
