// Package scm is the service control manager of Windows, as far as an installer needs it.
// What is decided about services is decided elsewhere, over the interfaces of this file,
// and tested on every system.
package scm

import (
	"errors"
	"time"
)

// The errors that callers tell apart.
var (
	ErrNotWindows   = errors.New("services are a matter of Windows; this is another system")
	ErrNotInstalled = errors.New("there is no such service")
	// ErrBusy is the answer to Stop while a service starts or stops.
	ErrBusy = errors.New("it takes no orders while it starts or stops")
	// ErrUnsupported is for settings that this Windows does not have. Nothing depends on
	// them, and all others are made nevertheless.
	ErrUnsupported = errors.New("this system does not support it")
)

// Manager is the service control manager. Whoever opens it closes it.
type Manager interface {
	// Open returns a service, or ErrNotInstalled. The caller closes it.
	Open(name string) (Service, error)
	// Create installs a service that runs as LocalSystem. The caller closes it. It is there
	// in spite of ErrUnsupported, as after SetConfig.
	Create(name string, config Config) (Service, error)
	// RegisterEvents makes the event log show texts of the source without a remark, and
	// RemoveEvents undoes it. Both may be repeated.
	RegisterEvents(source string) error
	RemoveEvents(source string) error
	Close()
}

// Service is an installed service.
type Service interface {
	Config() (Config, error)
	SetConfig(Config) error
	Recovery() (Recovery, error)
	SetRecovery(Recovery) error
	// SetPreshutdown sets how long Windows waits for the service when it shuts down.
	SetPreshutdown(time.Duration) error
	Status() (Status, error)
	Start() error // asks for it only
	// Stop asks for it only, and may be answered by ErrBusy.
	Stop() error
	// Kill ends the process of a service that does not end by itself.
	Kill() error
	// Dependents are the services that depend on this one and run. It does not stop as long
	// as they do.
	Dependents() ([]string, error)
	Delete() error
	Close()
}

// StartType is when a service starts.
type StartType string

// The start types.
const (
	Automatic StartType = "automatic"
	Delayed   StartType = "automatic (delayed)"
	Manual    StartType = "manual"
	Disabled  StartType = "disabled"
)

// Config is how a service is installed.
type Config struct {
	Command     string // the binary and its flags
	Start       StartType
	DisplayName string
	Description string
}

// Recovery is what Windows does when a service fails.
type Recovery struct {
	Restart  time.Duration // after which to start it again; 0: never
	Reset    time.Duration // after which failures are forgotten
	OnErrors bool          // also if it ended by itself with an error, and did not crash
}

// State is what a service does.
type State string

// The states.
const (
	Stopped      State = "stopped"
	StartPending State = "start pending"
	StopPending  State = "stop pending"
	Running      State = "running"
	Other        State = "paused or continuing" // which we never ask for
)

// Pending reports whether the state passes by itself.
func (s State) Pending() bool { return s == StartPending || s == StopPending }

// Status is the state of a service.
type Status struct {
	State    State
	PID      uint32
	ExitCode uint32 // of the service itself, if it has failed with one
}

// Connect opens the manager of this machine, or returns ErrNotWindows.
func Connect() (Manager, error) { return connect() }
