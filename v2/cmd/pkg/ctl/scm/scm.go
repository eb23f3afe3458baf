// Package scm accesses the service control manager of Windows. Package installation decides
// what to do, through the interfaces of this file, and is tested on every system.
package scm

import (
	"errors"
	"time"
)

// The errors that callers distinguish.
var (
	ErrNotWindows   = errors.New("services exist only on Windows")
	ErrNotInstalled = errors.New("not installed")
	// ErrBusy is returned by Stop while a service starts or stops.
	ErrBusy = errors.New("service is starting or stopping")
	// ErrUnsupported is returned for an optional setting that this version of Windows does
	// not have. The other settings are applied.
	ErrUnsupported = errors.New("not supported by this version of Windows")
)

// Manager is the service control manager. The caller of Connect closes it.
type Manager interface {
	// Open returns a service, or ErrNotInstalled. The caller closes it.
	Open(name string) (Service, error)
	// Create installs a service that runs as LocalSystem. The caller closes it. With
	// ErrUnsupported the service exists.
	Create(name string, config Config) (Service, error)
	// RegisterEvents makes the event log show the source's texts without a remark.
	// RemoveEvents undoes it. Both are idempotent.
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
	// ServiceSID says that the process has the SID of the service, NT SERVICE\name, among its groups, by which others
	// can tell it from other services of its account. SetServiceSID takes effect with the next start. Both may return
	// ErrUnsupported.
	ServiceSID() (bool, error)
	SetServiceSID(bool) error
	Status() (Status, error)
	Start() error // does not wait
	// Stop does not wait, and may return ErrBusy.
	Stop() error
	// Kill ends the process of the service.
	Kill() error
	// Dependents returns the running services that depend on this one. Windows does not stop
	// a service while they run.
	Dependents() ([]string, error)
	Delete() error
	Close()
}

// StartType says when a service starts.
type StartType string

// The start types.
const (
	Automatic StartType = "automatic"
	Delayed   StartType = "automatic (delayed)"
	Manual    StartType = "manual"
	Disabled  StartType = "disabled"
)

// Config is the configuration of a service.
type Config struct {
	Command     string // the binary and its flags
	Start       StartType
	DisplayName string
	Description string
	// Interactive says that the service may use the desktop of a user. SetConfig ends it.
	Interactive bool
}

// Recovery is what Windows does when a service fails.
type Recovery struct {
	Restart  time.Duration // delay before a restart; 0: no restart
	Reset    time.Duration // after which Windows forgets failures
	OnErrors bool          // also after an exit with an error, not only after a crash
}

// State is the state of a service.
type State string

// The states.
const (
	Stopped      State = "stopped"
	StartPending State = "start pending"
	StopPending  State = "stop pending"
	Running      State = "running"
	Other        State = "paused or continuing" // we never request it
)

// Pending reports whether the state is transient.
func (s State) Pending() bool { return s == StartPending || s == StopPending }

// Status is the state of a service.
type Status struct {
	State    State
	PID      uint32
	ExitCode uint32 // service-specific, or else the Windows code
}

// Connect opens the manager of this machine, or returns ErrNotWindows.
func Connect() (Manager, error) { return connect() }
