// Package installation installs the daemon as a Windows service and upgrades it, through
// package scm.
package installation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
)

// DefaultName is the name of the service on most nodes.
const DefaultName = "csi-proxy"

const (
	displayName = "CSI Proxy"
	description = "Performs privileged storage operations for CSI drivers on this node."

	// restartAfter gives another owner of a pipe time to end. sc.exe lines in use have it too.
	restartAfter = 10 * time.Second
	forgetAfter  = 24 * time.Hour

	// pollInterval is the pause between two checks of the service or its endpoints.
	pollInterval = 200 * time.Millisecond
	// healthTimeout limits how long a new program takes to answer.
	healthTimeout = 30 * time.Second
	// killAfter is how long a rollback waits for a service to start or stop before it kills
	// the process: more than the daemon's default -stop-timeout and its margin of 5 s.
	killAfter = 30 * time.Second
)

// Installer manages the service of one name.
type Installer struct {
	Manager scm.Manager
	Name    string
	// Check checks all endpoints of the machine.
	Check func(ctx context.Context) []endpoint.Health
	// After is time.After, except in tests.
	After func(time.Duration) <-chan time.Time
	// Progress prints a step.
	Progress func(text string)
	// Access is AccessOf, except in tests.
	Access func(path string) (Access, error)
	// Change makes one change of a file; tests end the machine there. Nil makes it.
	Change func(do func() error) error
	// Beside is the program of a new service that has no other: that of the release, or none.
	Beside string
	// Force accepts programs that are not csi-proxy, or that others than administrators can change.
	Force bool
}

// Options are the options of Install. Empty ones keep the value of an installed service.
type Options struct {
	Binary string
	Flags  []string // nil: keep the flags, or use the defaults for a new service
}

// Outcome is the result of Install.
type Outcome struct {
	Created bool
	// Outdated says that the service still runs with its old command line or without its SID.
	Outdated bool
}

// Install creates the service or corrects its settings, but not when it starts, which is the operator's. It is
// idempotent. It reports and skips settings that this version of Windows does not support.
func (i *Installer) Install(options Options) (Outcome, error) {
	if options.Binary != "" {
		if err := i.checkProgram(options.Binary); err != nil {
			return Outcome{}, err
		}
	}
	var outcome Outcome
	service, err := i.Manager.Open(i.Name)
	switch {
	case errors.Is(err, scm.ErrNotInstalled):
		service, err = i.create(options)
		outcome.Created = true
	case err == nil:
		outcome.Outdated, err = i.correct(service, options)
	}
	if service != nil {
		defer service.Close()
	}
	if err != nil {
		return Outcome{}, err
	}
	added, err := i.addSID(service)
	if err != nil {
		return outcome, err
	}
	if added {
		status, err := service.Status()
		if err != nil {
			return outcome, err
		}
		outcome.Outdated = outcome.Outdated || status.State != scm.Stopped
	}
	if err := i.tolerate("skipped", service.SetRecovery(scm.Recovery{Restart: restartAfter, Reset: forgetAfter, OnErrors: true})); err != nil {
		return outcome, err
	}
	if err := i.Manager.RegisterEvents(i.Name); err != nil {
		return outcome, fmt.Errorf("register %s in the event log: %w", i.Name, err)
	}
	return outcome, nil
}

// addSID gives the service its SID, so that operators can give it access to files that other services do not have. It
// reports whether the next start has more than now.
func (i *Installer) addSID(service scm.Service) (added bool, err error) {
	have, err := service.ServiceSID()
	if err != nil && !errors.Is(err, scm.ErrUnsupported) || have {
		return false, err
	}
	err = service.SetServiceSID(true)
	return !errors.Is(err, scm.ErrUnsupported), i.tolerate("skipped", err)
}

// checkProgram returns an error if a file cannot be the program of a service. The service
// manager accepts any text, and resolves a relative path in its own directory.
func (i *Installer) checkProgram(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s is not a full path; the service manager needs one", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", path)
	}
	return i.trust(path)
}

// trust returns an error if a program is not csi-proxy, or if others than administrators can change it: they would
// run as LocalSystem.
func (i *Installer) trust(path string) error {
	if err := i.identify(path); err != nil {
		return err
	}
	return i.protect(path, "")
}

// protect returns an error if others than administrators can change a program, unless that is accepted.
func (i *Installer) protect(path, remedy string) error {
	err := Protected(path, i.Access)
	if exposure := new(ExposureError); errors.As(err, &exposure) {
		err = fmt.Errorf("%w, so others than administrators could decide what the service runs as LocalSystem; move the program to C:\\Program Files\\csi-proxy, or: %s", err, cmp.Or(remedy, exposure.Remedy))
	}
	if err != nil && i.Force {
		i.Progress("accepted: " + err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w; --force accepts it as it is", err)
	}
	return nil
}

// tolerate reports an unsupported setting and drops the error.
func (i *Installer) tolerate(what string, err error) error {
	if errors.Is(err, scm.ErrUnsupported) {
		i.Progress(what + ": " + strings.ReplaceAll(err.Error(), "\n", "; "))
		return nil
	}
	return err
}

func (i *Installer) create(options Options) (scm.Service, error) {
	if options.Binary == "" {
		if options.Binary = i.Beside; options.Binary == "" {
			return nil, fmt.Errorf("service %s is not installed, and csi-proxy.exe is not beside this program; use --binary to install it", i.Name)
		}
		if err := i.checkProgram(options.Binary); err != nil {
			return nil, err
		}
	}
	flags := options.Flags
	if flags == nil {
		flags = defaultFlags
	}
	service, err := i.Manager.Create(i.Name, config(scm.Automatic, join(options.Binary, asService(quote(flags)))))
	return service, i.tolerate("skipped", err)
}

// config is the configuration of the service. A new one starts with the machine, as the kubelet does, and not later:
// Windows starts delayed services two minutes after the others.
func config(start scm.StartType, command string) scm.Config {
	return scm.Config{Command: command, Start: start, DisplayName: displayName, Description: description}
}

// correct updates an installed service. It keeps the operator's flags and start type.
func (i *Installer) correct(service scm.Service, options Options) (outdated bool, err error) {
	have, err := service.Config()
	if err != nil {
		return false, err
	}
	binary, flags := split(have.Command)
	check := i.trust
	if options.Binary != "" {
		check = i.identify // it is replaced
	}
	if err := check(binary); err != nil {
		return false, err
	}
	if options.Binary != "" {
		binary = options.Binary
	}
	if options.Flags != nil {
		flags = quote(options.Flags)
	}
	want := config(have.Start, join(binary, asService(flags)))
	if have == want {
		return false, nil
	}
	if err := i.tolerate("skipped", service.SetConfig(want)); err != nil {
		return false, err
	}
	status, err := service.Status()
	return have.Command != want.Command && status.State != scm.Stopped, err
}

// Uninstall stops and removes the service. It is idempotent.
func (i *Installer) Uninstall(ctx context.Context) (removed bool, err error) {
	service, err := i.Manager.Open(i.Name)
	if errors.Is(err, scm.ErrNotInstalled) {
		return false, i.Manager.RemoveEvents(i.Name)
	}
	if err != nil {
		return false, err
	}
	defer service.Close()
	config, err := service.Config()
	if err != nil {
		return false, err
	}
	if err := i.removable(config.Command); err != nil {
		return false, err
	}
	if err := i.stop(ctx, service, neverKill); err != nil {
		return false, err
	}
	if err := service.Delete(); err != nil {
		return false, err
	}
	return true, i.Manager.RemoveEvents(i.Name)
}

// Start starts the service and waits until it runs. It is idempotent.
func (i *Installer) Start(ctx context.Context) error {
	service, err := i.Manager.Open(i.Name)
	if err != nil {
		return err
	}
	defer service.Close()
	return i.start(ctx, service)
}

// Stop stops the service and waits until it has stopped. It is idempotent.
func (i *Installer) Stop(ctx context.Context) error {
	service, err := i.Manager.Open(i.Name)
	if err != nil {
		return err
	}
	defer service.Close()
	return i.stop(ctx, service, neverKill)
}

// start waits for a pending stop first, because Windows treats a stopping service as running.
func (i *Installer) start(ctx context.Context, service scm.Service) error {
	for asked := false; ; {
		status, err := service.Status()
		if err != nil {
			return err
		}
		switch {
		case status.State == scm.Running:
			return nil
		case status.State == scm.Stopped && asked:
			return fmt.Errorf("service %s stopped again with exit code %d; read its log and the event log", i.Name, status.ExitCode)
		case status.State == scm.Stopped:
			i.Progress("starting")
			if err := service.Start(); err != nil {
				return err
			}
			asked = true
			continue
		case status.State == scm.StartPending:
			asked = true // by us or another process
		}
		if err := i.pause(ctx, "start"); err != nil {
			return err
		}
	}
}

// killPolicy says what stop does with a service that hangs.
type killPolicy bool

const (
	neverKill  killPolicy = false // waits until ctx ends
	killIfHung killPolicy = true  // kills the process after killAfter
)

// stop waits for a pending start first, because Windows does not stop a starting service. It
// asks once: Windows refuses a second stop.
func (i *Installer) stop(ctx context.Context, service scm.Service, kill killPolicy) error {
	for polls, asked := 0, false; ; polls++ {
		status, err := service.Status()
		switch {
		case err != nil:
			return err
		case status.State == scm.Stopped:
			return nil
		case kill == killIfHung && polls == int(killAfter/pollInterval):
			i.Progress("killing its process, which hangs")
			if err := service.Kill(); err != nil {
				return err
			}
		case !status.State.Pending() && !asked:
			if err := i.checkDependents(service); err != nil {
				return err
			}
			i.Progress("stopping")
			err := service.Stop()
			if err != nil && !errors.Is(err, scm.ErrBusy) { // retried
				return err
			}
			asked = err == nil
		}
		if err := i.pause(ctx, "stop"); err != nil {
			return err
		}
	}
}

// checkDependents returns an error if running services depend on this one. Windows then does
// not stop it, and the operator decides whether to stop them.
func (i *Installer) checkDependents(service scm.Service) error {
	names, err := service.Dependents()
	if err != nil || len(names) == 0 {
		return err
	}
	err = fmt.Errorf("service %s cannot stop: running services depend on it (%s); stop them first, for example with 'sc.exe stop %s', and start them again afterwards",
		i.Name, strings.Join(names, ", "), names[0])
	if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, "kubelet") }) {
		err = fmt.Errorf("%w; a pod cannot do that, because it needs the kubelet: remove the service from takeOver.services of the chart, and see \"Platforms\" in operations.md", err)
	}
	return err
}

// pause waits between two checks.
func (i *Installer) pause(ctx context.Context, what string) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("service %s did not %s in time: %w", i.Name, what, ctx.Err())
	case <-i.After(pollInterval):
		return nil
	}
}

// State is the result of Status.
type State struct {
	Name        string `json:"name"`
	State       string `json:"state"`
	PID         uint32 `json:"pid"`
	ExitCode    uint32 `json:"exitCode"`
	Start       string `json:"start"`
	Command     string `json:"command"`
	Restarts    bool   `json:"restarts"`
	Endpoints   int    `json:"endpoints"`
	ServiceSID  bool   `json:"serviceSid"`
	Interactive bool   `json:"interactive"`
}

// Status returns the state of the service, and how many endpoints answer.
func (i *Installer) Status(ctx context.Context) (State, error) {
	service, err := i.Manager.Open(i.Name)
	if err != nil {
		return State{}, err
	}
	defer service.Close()
	status, err := service.Status()
	if err != nil {
		return State{}, err
	}
	config, err := service.Config()
	if err != nil {
		return State{}, err
	}
	recovery, err := service.Recovery()
	if err := i.tolerate("unknown", err); err != nil {
		return State{}, err
	}
	sid, err := service.ServiceSID()
	if err := i.tolerate("unknown", err); err != nil {
		return State{}, err
	}
	health := i.Check(ctx)
	if ctx.Err() != nil { // the checks were cut short
		return State{}, ctx.Err()
	}
	return State{
		Name: i.Name, State: string(status.State), PID: status.PID, ExitCode: status.ExitCode,
		Start: string(config.Start), Command: config.Command, Restarts: recovery.Restart > 0,
		Endpoints: len(answering(health)), ServiceSID: sid, Interactive: config.Interactive,
	}, nil
}

func answering(all []endpoint.Health) map[endpoint.Name]bool {
	names := map[endpoint.Name]bool{}
	for _, h := range all {
		if h.State.Answers() {
			names[h.Name] = true
		}
	}
	return names
}
